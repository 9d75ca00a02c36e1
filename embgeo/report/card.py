"""The card of a result: headline, map and three numbers, 1200 × 630, for slides and messages."""

from __future__ import annotations

import io

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
from embgeo.report.analysis import name_model
from embgeo.report.tables import headline_rows
from embgeo.result.analysis import Analysis

#: Inches at 100 dots an inch, characters of a line of the headline, and of its name, at most.
SIZE, LINE, LONGEST = (12.0, 6.3), 26, 44
NUMBERS = 3


def draw_card(result: Analysis | Comparison) -> tuple[str, bytes]:
    """Draw the card as SVG and as PNG; of a comparison or track, the map is of the last member."""
    from textwrap import fill

    from matplotlib.figure import Figure

    shown = result if isinstance(result, Analysis) else result.members[-1].analysis
    text = shown.verdict.headline if isinstance(result, Analysis) else headline(result)
    name = name_model(shown.provenance) if isinstance(result, Analysis) else join_ends(result)
    with settings():
        figure = Figure(figsize=SIZE, dpi=100, facecolor="white")
        said = fill(visible_text(text), LINE, max_lines=5, placeholder=" …")
        figure.text(0.05, 0.9, visible(name)[:LONGEST], fontsize=17, va="top")
        figure.text(0.05, 0.79, said, fontsize=26, fontweight="bold", va="top", linespacing=1.25)
        for at, (row, scalar) in enumerate(headline_rows(shown)[:NUMBERS]):
            number = format_brief(scalar.value, scalar.quantity.unit)
            left = 0.05 + 0.17 * at
            figure.text(left, 0.2, number, fontsize=24, fontweight="bold")
            figure.text(left, 0.13, fill(row.label, 18), fontsize=11, va="top")
        figure.text(0.95, 0.03, "embgeo", fontsize=11, ha="right", color=theme.GRAY.light)
        if shown.points:
            ax = figure.add_axes((0.57, 0.1, 0.39, 0.8))
            xy = shown.points[0].xy
            popular = shown.popular
            cloud = Cloud(xy, np.ones(len(xy), bool) if popular is None else popular)
            handles, labels = draw_marks([ax], [cloud], [fit_view(xy)])
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            ax.axhline(0.0, lw=0.6, color=theme.GRAY.light, zorder=0)
            ax.axvline(0.0, lw=0.6, color=theme.GRAY.light, zorder=0)
            if popular is not None:
                ax.legend(handles, labels, loc="lower right", fontsize=11)
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=100, metadata={"Software": None})
        svg = write_svg(figure, "card", text)
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1), png.getvalue()


def join_ends(result: Comparison) -> str:
    return f"{result.members[0].name} → {result.members[-1].name}"
