"""A scalar against a swept parameter, as in Inan et al. 2017 (Fig. 1)."""

from collections.abc import Sequence

import numpy as np

from embgeo.charts import specification as spec
from embgeo.charts.items import ChartItem, Unrelated
from embgeo.charts.panels import empty_cells, is_wide
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import subspace
from embgeo.core.values import Cell, Scalar

DEFAULT = subspace.DISTANCE.name
CAPTIONS = {
    DEFAULT: "Subspace distance between input and output embedding (Inan et al. 2017, appendix B): "
    "0 for the same subspace, 1 for orthogonal ones."
}


def choose_names(choices: spec.Choices) -> tuple[str, ...]:
    """Choose the shown scalars, one panel each."""
    return choices.scalars or (DEFAULT,)


def find_value(item: ChartItem, name: str) -> tuple[float | None, Scalar | None]:
    """Find the value and scalar of the analysis, else the last value over training."""
    # Names come from the user and may be those of a log, which an analysis does not know.
    scalars = () if item.analysis is None else item.analysis.scalars
    scalar = next((one for one in scalars if one.name == name), None)
    if scalar is not None:
        return scalar.value, scalar
    curve = item.step_curves.get(name)
    return (None if curve is None or curve.lost is not None else float(curve.values[-1])), None


def refuse(item: ChartItem, choices: spec.Choices) -> str:
    if item.x is None:
        return Unrelated.NO_VALUE
    reasons = [explain_absence(item, name) for name in choose_names(choices)]
    return "" if "" in reasons else reasons[0]


def explain_absence(item: ChartItem, name: str) -> str:
    """Explain why the item has no value of that name; empty if it has one."""
    value, scalar = find_value(item, name)
    if value is not None:
        return ""
    if scalar is not None:
        return f"{name} is not defined: {scalar.undefined}"
    if name in item.step_curves:
        return f"its {name} cannot be drawn at step {item.step_curves[name].lost:,.15g}"
    absent = {} if item.analysis is None else item.analysis.absent
    return absent.get(name.partition(".")[0]) or f"it holds no {name}"


def build(items: spec.StyledItems, choices: spec.Choices) -> spec.Specification:
    ordered = sorted((item for item, _ in items), key=lambda s: s.x or 0.0)
    panels, captions = [], []
    rows: list[tuple[Cell, ...]] = []
    for name in choose_names(choices):
        held = [item for item in ordered if not explain_absence(item, name)]
        if not held:
            continue
        shown, more, caption = panel(held, name, choices.parameter or "parameter")
        panels.append(shown)
        rows += more
        captions.append(caption)
    columns = ("analysis", choices.parameter or "x", "name", "value", "standard error", "reference")
    return spec.Specification(
        tuple(panels), " ".join(captions), table=spec.FigureTable(columns, rows)
    )


def panel(
    items: Sequence[ChartItem], name: str, parameter: str
) -> tuple[spec.Panel, list[tuple[Cell, ...]], str]:
    """Get one scalar against the parameter: its panel, its rows of the table, and its caption."""
    pairs = [find_value(item, name) for item in items]
    scalars = [scalar for _, scalar in pairs if scalar is not None]
    x, y = to_array([s.x for s in items]), to_array([value for value, _ in pairs])
    errors = to_array([None if s is None else s.standard_error for _, s in pairs])
    references = to_array([None if s is None else s.reference for _, s in pairs])
    places = np.unique(x)
    lines = [
        # Several runs of one value: one mark each, and a line through their means.
        spec.Line(places, np.array([y[x == place].mean() for place in places]), form="plain"),
        spec.Line(x, y, form="marks", error=np.nan_to_num(errors)),
    ]
    if np.isfinite(references).any():
        kind = next(s.reference_kind for s in scalars if s.reference is not None)
        part = "chance" if kind == "chance" else "isotropic rows"
        lines.append(spec.Line(x, references, spec.MemberStyle("guide"), part=part, form="plain"))
    limits = (0.0, 1.03) if name == DEFAULT else (None, None)
    title = scalars[0].quantity.title.split(",")[0] if scalars else name
    log = bool(x.min() > 0) and is_wide(x, 30.0)
    shown = spec.Panel(
        spec.Axis(parameter, log),
        spec.Axis(title, low=limits[0], high=limits[1]),
        tuple(lines),
        key=name,
        quantity=name,
    )
    cells = zip(empty_cells(y), empty_cells(errors), empty_cells(references), strict=True)
    rows: list[tuple[Cell, ...]] = [
        (item.label, item.x, name, *of) for item, of in zip(items, cells, strict=True)
    ]
    return shown, rows, caption_of(name, scalars)


def to_array(values: Sequence[float | None]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def caption_of(name: str, scalars: Sequence[Scalar]) -> str:
    caption = CAPTIONS.get(name, f"{name} against the parameter.")
    notes = sorted({s.reference_note for s in scalars if s.reference is not None})
    return f"{caption} Dotted: {'; '.join(notes)}." if notes else caption


CHART = spec.Chart(
    "sweep",
    "Line chart of a scalar against a parameter",
    refuse,
    build,
    least=2,
)
