"""Perplexity against geometry: whether a method that helps the one helps the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from embgeo.charts import specification as spec
from embgeo.charts.items import ChartItem, Unrelated
from embgeo.charts.panels import find_span
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import cosine, frequency, isotropy
from embgeo.core.values import Cell

if TYPE_CHECKING:
    from embgeo.training.study.record import Role

TITLES = tuple((q.name, q.label) for q in (cosine.MEAN, isotropy.I1_UNIT_ROWS, frequency.PROBE_AUC))


MATRICES = (
    " Of a model with several matrices, the one is shown that the method acts on; of a control, "
    "each that one of its methods acts on."
)


def refuse(item: ChartItem, _choices: spec.Choices) -> str:
    from embgeo.training.study.deciding import quality_name  # charts of studies alone need it

    held = {name for run in item.runs for name in run.numbers if not item.group}
    is_shown = quality_name(item.runs) in held and any(name in held for name, _ in TITLES)
    return "" if is_shown else Unrelated.NO_METHOD


def build(items: spec.StyledItems, _choices: spec.Choices) -> spec.Specification:
    from embgeo.training.study.deciding import quality_name
    from embgeo.training.study.wording import describe_quality, spell_score

    across = quality_name([run for item, _ in items for run in item.runs])
    held = {name for item, _ in items for run in item.runs for name in run.numbers}
    shown = [(name, title) for name, title in TITLES if name in held]
    quality = describe_quality(across)
    panels = []
    rows: list[tuple[Cell, ...]] = []
    for name, title in shown:
        lines: list[spec.Line] = []
        for item, style in items:
            for role in list_roles(item, items):
                pairs = list_pairs(item, across, name, role)
                if not pairs:
                    continue
                rows += [(item.label, name, *cells) for cells in pairs]
                x, y = np.array([p[1] for p in pairs]), np.array([p[2] for p in pairs])
                if len(pairs) > 1:
                    lines.append(spec.Line(x, y, style, item.label, form="dots"))
                lines.append(mark_mean(x, y, style, item.label))
        controls = {item.label: item for item, _ in items}
        for item, style in items:
            control = controls.get(item.reference)
            if control is None:
                continue
            both = [list_pairs(one, across, name, item.role) for one in (control, item)]
            if all(both):
                ends = np.array([np.mean(pairs, axis=0)[1:] for pairs in both])
                look = style if is_distinct(*both) else spec.MemberStyle("guide")
                lines.append(spec.Line(ends[:, 0], ends[:, 1], look, item.label, form="arrow"))
        panels.append(
            spec.Panel(
                spec.Axis(quality, shows=find_span(across, np.concatenate([p.x for p in lines]))),
                spec.Axis("", shows=find_span(name, np.concatenate([p.y for p in lines]))),
                tuple(lines),
                key=name,
                title=title,
            )
        )
    side = " (to the left is better)" if across.endswith(".perplexity") else ""
    return spec.Specification(
        tuple(panels),
        f"Each method by its {spell_score(across)}{side} and its geometry. "
        "With several seeds the large mark is their mean with its standard deviation, the dots are "
        "the seeds. "
        "Arrows go from the control to the method, gray ones where neither number differs by "
        "more than the seeds do."
        + (MATRICES if any(run.others for one, _ in items for run in one.runs) else ""),
        table=spec.FigureTable(("method", "name", "seed", across, "value"), rows),
    )


def list_roles(item: ChartItem, items: spec.StyledItems) -> list[Role]:
    """List the shown matrices of a method: its own; for a control, those of its methods."""
    of_methods = [one.role for one, _ in items if one.reference == item.label]
    several = any(run.others for run in item.runs)
    return list(dict.fromkeys((item.role, *of_methods))) if several else [item.role]


def list_pairs(
    item: ChartItem, across: str, name: str, role: Role
) -> list[tuple[int, float, float]]:
    """Seed, score and number of every run that has both; the number is of the role's matrix."""
    return [
        (run.seed, run.numbers[across], run.select_numbers(role)[name])
        for run in sorted(item.runs, key=lambda run: run.seed)
        if across in run.numbers and name in run.select_numbers(role)
    ]


def is_distinct(
    control: Sequence[tuple[int, float, float]], method: Sequence[tuple[int, float, float]]
) -> bool:
    """Tell whether the interval of a difference over common seeds leaves out 0."""
    from embgeo.training.study.spread import compare_seeds

    differences = (
        compare_seeds(*({pair[0]: pair[k] for pair in pairs} for pairs in (control, method)))
        for k in (1, 2)
    )
    return any(held is not None and held.side() != "open" for held in differences)


def mark_mean(x: FloatArray, y: FloatArray, style: spec.MemberStyle, label: str) -> spec.Line:
    """Return the mean over seeds, with bars of one standard deviation along both axes."""
    mean = np.array([x.mean()]), np.array([y.mean()])
    if len(x) < 2:
        return spec.Line(*mean, style, label, form="marks")
    bars = [np.array([values.std(ddof=1)]) for values in (y, x)]
    return spec.Line(*mean, style, label, form="marks", error=bars[0], error_x=bars[1])


CHART = spec.Chart(
    "balance",
    "Scatter of methods: perplexity across, geometry upwards",
    refuse,
    build,
    section="balance",
    pages=("training",),
    least=2,
)
