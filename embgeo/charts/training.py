"""Numbers over the steps of training, one panel per number and one line per run or method."""

from collections.abc import Sequence

import numpy as np

from embgeo.charts import specification as spec
from embgeo.charts.items import ChartItem, StepCurve, Unrelated
from embgeo.charts.panels import find_span, is_wide
from embgeo.core.quantities import cosine, frequency, isotropy, spectrum, subspace, tokens
from embgeo.core.values import Cell
from embgeo.training.study.log import OF_OUTPUT

#: The first panels, in this order, with short titles. The name of a number of two matrices ends in
#: the other member.
TITLES: dict[str, str] = {
    "valid.perplexity": "validation perplexity",
    "train.loss": "training loss",
    cosine.MEAN.name: cosine.MEAN.label,
    spectrum.EFFECTIVE_RANK.name: spectrum.EFFECTIVE_RANK.label,
    spectrum.TOP_SHARE.name: spectrum.TOP_SHARE.label,
    isotropy.I1_UNIT_ROWS.name: isotropy.I1_UNIT_ROWS.label,
    frequency.PROBE_AUC.name: frequency.PROBE_AUC.label,
    tokens.NORM_MEDIAN.name: tokens.NORM_MEDIAN.label,
    isotropy.I1.name: isotropy.I1.label,
    isotropy.I1_UNIT.name: isotropy.I1_UNIT.label,
    isotropy.I2.name: isotropy.I2.label,
    **{
        f"{OF_OUTPUT}{quantity.name}": f"{quantity.label}, output matrix"
        for quantity in (cosine.MEAN, isotropy.I1_UNIT, spectrum.EFFECTIVE_RANK)
    },
    isotropy.ISOSCORE.name: isotropy.ISOSCORE.label,
    frequency.NORM_RATIO.name: frequency.NORM_RATIO.label,
    subspace.DISTANCE.name: subspace.DISTANCE.label,
    "compare.token_cosine.first": "cosine by token with the first",
    "compare.neighbor_overlap.first": "neighbor overlap with the first",
    "compare.neighbor_overlap.previous": "neighbor overlap with the one before",
    "compare.subspace_distance.first": "subspace distance from the first",
    "compare.cka.first": "linear CKA with the first",
}
#: Panels without a choice of the user.
MOST_PANELS = 4
#: Perplexities that span more than this ratio have a logarithmic axis: they may fall from the size
#: of the vocabulary. Within less, an axis of powers of ten would have one label.
WIDE = 30.0


def refuse(item: ChartItem, choices: spec.Choices) -> str:
    if not item.step_curves:
        return Unrelated.NO_LOG
    if choices.scalars and not set(choices.scalars) & set(item.step_curves):
        return f"its log holds no {' and no '.join(choices.scalars)}"
    return ""


def page_names(items: Sequence[ChartItem]) -> tuple[str, ...]:
    """Return the numbers of a report: those of `TITLES` with two points of some item."""
    return tuple(
        name
        for name in TITLES
        if any(is_drawn(s.step_curves[name]) for s in items if name in s.step_curves)
    )


def is_drawn(curve: StepCurve) -> bool:
    """Tell whether a curve shows something: two points, and not only 0."""
    return len(curve.steps) > 1 and bool(np.any(curve.values))


def choose_names(items: spec.StyledItems, choices: spec.Choices) -> tuple[list[str], int]:
    """Choose the numbers with a panel, and how many others there are."""
    held = dict.fromkeys(name for item, _ in items for name in item.step_curves)
    if choices.scalars:
        return [name for name in choices.scalars if name in held], 0
    titled = [name for name in TITLES if name in held]
    names = [*titled, *(name for name in held if name not in TITLES)][:MOST_PANELS]
    return names, len(held) - len(names)


def build(items: spec.StyledItems, choices: spec.Choices) -> spec.Specification:
    names, others = choose_names(items, choices)
    panels = tuple(panel(items, name) for name in names)
    rows: list[tuple[Cell, ...]] = [
        (item.label, name, step, value)
        for name in names
        for item, _ in items
        if name in item.step_curves
        for step, value in zip(
            item.step_curves[name].steps.tolist(),
            item.step_curves[name].values.tolist(),
            strict=True,
        )
    ]
    return spec.Specification(
        panels,
        describe(items),
        f"{'; '.join(panel.title for panel in panels)}: over the steps of training.",
        table=spec.FigureTable(("run", "name", "step", "value"), rows),
        notes=(f"{others:,} more in the logs: choose with --scalar",) if others else (),
    )


def describe(items: spec.StyledItems) -> str:
    """Write the caption, which explains lines, bars and bands."""
    if any(item.runs for item, _ in items):
        return (
            "Numbers over the steps of training, a line a method. With several seeds the line is "
            "their mean and the band reaches from the lowest to the highest."
        )
    said = (
        "Numbers over training; bars are two standard errors where a number was sampled. The "
        "dashed line marks the step at which two straight lines fit the curve best, where they fit "
        "it clearly better than one."
    )
    if any(c.duplicates is not None for item, _ in items for c in item.step_curves.values()):
        said += " Hollow: a checkpoint that holds the same matrix as an earlier one."
    return said


def panel(items: spec.StyledItems, name: str) -> spec.Panel:
    """Return one number of all items that have it."""
    held = [(s, style, s.step_curves[name]) for s, style in items if name in s.step_curves]
    alone = len(items) == 1
    lines = tuple(
        spec.Line(
            curve.steps,
            curve.values,
            style,
            "" if alone else item.label,
            low=curve.low,
            high=curve.high,
            error=curve.error,
        )
        for item, style, curve in held
    )
    lines += tuple(
        spec.Line(*curve.duplicates, style, form="hollow")
        for _, style, curve in held
        if curve.duplicates is not None
    )
    values = np.concatenate([line.y for line in lines])
    quantity = next((curve.quantity for _, _, curve in held if curve.quantity), name)
    log = name.endswith(".perplexity") and bool(values.min() > 0) and is_wide(values, WIDE)
    return spec.Panel(
        spec.Axis("training step", whole=True),
        spec.Axis("", log=log, shows=None if log else find_span(quantity, values)),
        lines,
        tuple(
            spec.Guide(curve.bend, f"bend at {curve.bend:,.10g}", listed=False)
            for _, _, curve in held
            if alone and curve.bend is not None
        ),
        key=name,
        title=TITLES.get(name) or next((c.title for _, _, c in held if c.title), name),
        quantity=quantity,
    )


CHART = spec.Chart(
    "training",
    "Small line charts of the main numbers over training steps",
    refuse,
    build,
    section="training",
    pages=("comparison", "training"),
)
