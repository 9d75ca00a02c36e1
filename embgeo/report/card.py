"""The card of a result: headline, map and three numbers, 1200 × 630, for slides and messages."""

from __future__ import annotations

import io
from collections.abc import Iterator
from statistics import fmean

import numpy as np

from embgeo.charts import theme
from embgeo.charts.render.marks import draw_marks
from embgeo.charts.render.svg import settings, write_svg
from embgeo.charts.render.view import fit_view
from embgeo.charts.specification import Cloud
from embgeo.comparison.comparison import Comparison
from embgeo.comparison.sentences import headline
from embgeo.core.numbers import format_brief
from embgeo.core.text import visible, visible_text
from embgeo.report import study
from embgeo.report.analysis import name_model
from embgeo.report.tables import headline_rows
from embgeo.result.analysis import Analysis
from embgeo.training.study import deciding, wording
from embgeo.training.study.record import Study, StudyMethod
from embgeo.training.study.spread import LEAST_SEEDS

#: Inches at 100 dots an inch, characters of a line of the headline, and of its name, at most.
SIZE, LINE, LONGEST = (12.0, 6.3), 26, 44
NUMBERS = 3
#: Characters of a number in large type, at most.
SHORT = 9


def draw_card(
    result: Analysis | Comparison | Study, compared: Comparison | None = None
) -> tuple[str, bytes]:
    """Draw the card as SVG and as PNG; of a comparison or track, the map is of the last member.

    Of a study, it is that of its best method, among the embeddings `compared`.
    """
    from textwrap import fill

    from matplotlib.figure import Figure

    shown: Analysis | None
    numbers: list[tuple[str, str]] = []
    if isinstance(result, Study):
        best = find_best(result)
        members = () if compared is None else compared.members
        shown = next((one.analysis for one in members if one.name == best.name), None)
        name, text = study.subject(result), study.headlines(result)[0]
        if len(result.seeds) < LEAST_SEEDS:  # where the headline has a sentence for each method
            text = wording.describe_what_happened(result, best) or text
        numbers = list(compare_numbers(result, best))
    else:
        shown = result if isinstance(result, Analysis) else result.members[-1].analysis
        text = shown.verdict.headline if isinstance(result, Analysis) else headline(result)
        name = name_model(shown.provenance) if isinstance(result, Analysis) else join_ends(result)
        first = shown if isinstance(result, Analysis) else result.members[0].analysis
        for quantity, _, scalar in headline_rows(shown):
            before = None if first is shown else first.find_scalar(quantity.name)
            known = (end.value for end in (before, scalar) if end is not None)
            brief = (format_brief(value, quantity.unit) for value in known)
            numbers.append((" → ".join(brief), quantity.title))
    with settings():
        figure = Figure(figsize=SIZE, dpi=100, facecolor="white")
        said = fill(visible_text(text), LINE, max_lines=5, placeholder=" …")
        figure.text(0.05, 0.9, visible(name)[:LONGEST], fontsize=17, va="top")
        figure.text(0.05, 0.79, said, fontsize=26, fontweight="bold", va="top", linespacing=1.25)
        numbers = numbers[:NUMBERS]
        size = 24 if all(len(number) <= SHORT for number, _ in numbers) else 14
        for at, (number, label) in enumerate(numbers):
            left = 0.05 + 0.17 * at
            figure.text(left, 0.2, visible_text(number), fontsize=size, fontweight="bold")
            figure.text(left, 0.13, fill(visible_text(label), 18), fontsize=11, va="top")
        figure.text(0.95, 0.03, "embgeo", fontsize=11, ha="right", color=theme.GRAY.light)
        if shown is not None and shown.points:
            ax = figure.add_axes((0.57, 0.1, 0.39, 0.8))
            xy = shown.points[0].xy
            popular = shown.popular
            cloud = Cloud(xy, np.ones(len(xy), bool) if popular is None else popular)
            view = fit_view(xy)
            view.frame(ax)
            handles, labels = draw_marks([ax], [cloud], [view])
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            if popular is not None:
                ax.legend(handles, labels, loc="lower right", fontsize=11)
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=100, metadata={"Software": None})
        svg = write_svg(figure, "card", text)
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1), png.getvalue()


def join_ends(result: Comparison) -> str:
    return f"{result.members[0].name} → {result.members[-1].name}"


def find_best(trained: Study) -> StudyMethod:
    """Find the method, other than a control, with the best score against its control."""
    name = deciding.quality_name(trained.runs)
    quantity = trained.quantity(name)
    sign = 1.0 if quantity is not None and quantity.better == "higher" else -1.0
    controls = {method.reference for method in trained.methods}
    known = {
        method.name: (sign * held.difference, method)
        for method in trained.methods
        if method.reference and method.name not in controls
        if deciding.has_same_size(trained, method)
        if (held := deciding.compare_with_control(trained, method, name)) is not None
    }
    return max(known.values(), key=lambda pair: pair[0])[1] if known else trained.baseline


def compare_numbers(trained: Study, best: StudyMethod) -> Iterator[tuple[str, str]]:
    """Yield the score and the geometry of a method behind those of its control, with labels."""
    name = deciding.quality_name(trained.runs)
    against = f", {visible(best.name)} against {visible(best.reference)}" if best.reference else ""
    yield from (
        (
            " → ".join(
                format_brief(fmean(values.values()))
                for method in (best.reference, best.name)
                if (values := trained.values(method, number, role))
            ),
            label,
        )
        for number, label, role in (
            (name, f"{wording.describe_quality(name)}{against}", None),
            *((quantity.name, quantity.label, best.role) for quantity in wording.GEOMETRY[:2]),
        )
    )
