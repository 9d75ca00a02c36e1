"""Numbers of groups, such as the seeds of a method: each member, and their mean and spread."""

import numpy as np

from embgeo.charts import specification as spec
from embgeo.charts.balance import mark_mean
from embgeo.charts.items import ChartItem, Unrelated
from embgeo.charts.panels import find_span
from embgeo.charts.training import TITLES
from embgeo.core.quantities import cosine, frequency, isotropy, spectrum
from embgeo.core.values import Cell

#: The panels without a choice of the user.
NAMES = tuple(
    q.name
    for q in (cosine.MEAN, spectrum.EFFECTIVE_RANK, isotropy.I1_UNIT_ROWS, frequency.PROBE_AUC)
)
#: Where the members of a group stand, from its place; their mean is to the right of them.
LEFT, RIGHT, MEAN = -0.3, 0.0, 0.25


def refuse(item: ChartItem, choices: spec.Choices) -> str:
    if item.group or not item.runs:
        return Unrelated.NO_GROUP
    names = choices.scalars or NAMES
    if not any(name in run.select_numbers(item.role) for run in item.runs for name in names):
        return f"its members hold no {' and no '.join(names)}"
    return ""


def build(items: spec.StyledItems, choices: spec.Choices) -> spec.Specification:
    panels = []
    rows: list[tuple[Cell, ...]] = []
    for name in choices.scalars or NAMES:
        lines: list[spec.Line] = []
        for place, (item, style) in enumerate(items):
            held = [(run.seed, run.select_numbers(item.role).get(name)) for run in item.runs]
            pairs = [(seed, value) for seed, value in sorted(held) if value is not None]
            if not pairs:
                continue
            rows += [(item.label, name, *pair) for pair in pairs]
            y = np.array([value for _, value in pairs])
            x = place + np.linspace(LEFT, RIGHT, len(y)) if len(y) > 1 else np.array([place + LEFT])
            mean = mark_mean(np.full(len(y), place + MEAN), y, style, item.label)
            lines += [spec.Line(x, y, style, item.label, form="dots"), mean]
        if not lines:
            continue
        values = np.concatenate([line.y for line in lines])
        panels.append(
            spec.Panel(
                spec.Axis("", low=-0.6, high=len(items) - 0.4, numbered=False),
                spec.Axis("", shows=find_span(name, values)),
                tuple(lines),
                key=name,
                title=TITLES.get(name, name),
                quantity=name,
            )
        )
    return spec.Specification(
        tuple(panels),
        "Dots are the members of a group, such as seeds, in order; the large mark is their mean "
        "with its standard deviation over them.",
        table=spec.FigureTable(("group", "name", "seed", "value"), rows),
    )


CHART = spec.Chart(
    "seeds",
    "Numbers by group, with each member, the mean and the standard deviation",
    refuse,
    build,
    pages=(),
)
