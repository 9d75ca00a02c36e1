"""Arora's partition function at the eigenvectors of WᵀW and at their negatives.

As stored, and at mean norm 1: Z depends on the norms of the rows.
"""

from dataclasses import replace
from functools import partial

from embgeo.charts import specification as spec
from embgeo.charts.lookup import Lookup, find_series
from embgeo.charts.panels import series_lines, series_panel
from embgeo.core.quantities import isotropy
from embgeo.core.values import Cell, Series
from embgeo.result.analysis import Analysis

#: Quantity of a panel, its title, and what the table calls its scale.
PANELS = (
    (isotropy.Z.name, "As stored", "raw"),
    (isotropy.Z_UNIT.name, "At mean norm 1", "unit"),
)
REASON = "its analysis left out the section isotropy"
ONE = (
    "The partition function Z in the direction of each eigenvector and against it, divided by its "
    "mean. Isotropic rows give a flat line at 1. Left: as stored. Right: at mean norm 1. Z depends "
    "on scale, so that only the right panel compares matrices of different norms."
)
SEVERAL = (
    "The partition function Z in the direction of each eigenvector and against it, divided by its "
    "mean. The wider the lines of a matrix spread around 1, the less isotropic it is. Left: as "
    "stored, where small norms alone bring the lines together. Right: at mean norm 1, which "
    "compares shapes."
)
PRINT = (
    "Partition function Z(a) at the eigenvectors v of WᵀW and at their negatives (two branches for "
    "each matrix), divided by its mean. Isotropic rows give a flat line at 1; I1 is the smallest "
    "value divided by the largest. Z depends on the norms of the rows: only the panel at mean "
    "norm 1 compares matrices of different norms."
)


def find_raw(analysis: Analysis) -> Series | None:
    """Find the curve as stored of an analysis that has both."""
    unit = find_series(analysis, PANELS[1][0])
    return None if unit is None else find_series(analysis, PANELS[0][0])


def build(items: spec.StyledItems, _choices: spec.Choices) -> spec.Specification:
    panels = []
    rows: list[tuple[Cell, ...]] = []
    for name, title, scale in PANELS:
        curves = Lookup(partial(find_series, name=name), REASON).collect(items)
        # Z at equal scales spans little: the axis is logarithmic only if values lie far apart.
        wide = [replace(curve, log_x=True, log_y=True) for curve in curves]
        panel = series_panel(
            wide[0], series_lines(items, curves), (spec.Guide(1.0, "isotropic rows", "y"),)
        )
        panels.append(replace(panel, key=name, title=title))
        rows += [
            (item.label, scale, int(k), sign, value)
            for (item, _), curve in zip(items, curves, strict=True)
            for sign, z in zip("+-", curve.y.values(), strict=True)
            for k, value in zip(curve.x.tolist(), z.tolist(), strict=True)
        ]
    return spec.Specification(
        tuple(panels),
        ONE if len(items) == 1 else SEVERAL,
        PRINT,
        PANELS[0][0],
        table=spec.FigureTable(("analysis", "scale", "k", "sign", "z"), rows),
    )


CHART = spec.Chart(
    "partition",
    "Two line charts of the partition function over the eigenvectors",
    Lookup(find_raw, REASON).refuse,
    build,
    section="isotropy",
)
