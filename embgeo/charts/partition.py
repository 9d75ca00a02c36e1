"""Arora's partition function at the eigenvectors of WᵀW and at their negatives."""

from dataclasses import replace
from functools import partial

from embgeo.charts import specification as spec
from embgeo.charts.lookup import Lookup, find_series
from embgeo.charts.panels import series_lines, series_panel
from embgeo.core.quantities import isotropy
from embgeo.core.values import Cell

REASON = "its analysis left out the section isotropy"
CAPTION = (
    "The partition function Z in the direction of each eigenvector and against it, divided by its "
    "mean. Isotropic rows give a flat line at 1. Z depends on the norms of the rows: small norms "
    "alone bring the lines together."
)
PRINT = (
    "Partition function Z(a) at the eigenvectors v of WᵀW and at their negatives (two branches for "
    "each matrix), divided by its mean. Isotropic rows give a flat line at 1; I1 is the smallest "
    "value divided by the largest. Z depends on the norms of the rows."
)


CURVES = Lookup(partial(find_series, name=isotropy.Z.name), REASON)


def build(items: spec.StyledItems, _choices: spec.Choices) -> spec.Specification:
    curves = CURVES.collect(items)
    # Z at equal scales spans little: the axis is logarithmic only if values lie far apart.
    wide = [replace(curve, log_x=True, log_y=True) for curve in curves]
    panel = series_panel(
        wide[0], series_lines(items, curves), (spec.Guide(1.0, "isotropic rows", "y"),)
    )
    rows: list[tuple[Cell, ...]] = [
        (item.label, int(k), sign, value)
        for (item, _), curve in zip(items, curves, strict=True)
        for sign, z in zip("+-", curve.y.values(), strict=True)
        for k, value in zip(curve.x.tolist(), z.tolist(), strict=True)
    ]
    return spec.Specification(
        (panel,),
        CAPTION,
        PRINT,
        isotropy.Z.name,
        table=spec.FigureTable(("analysis", "k", "sign", "z"), rows),
    )


CHART = spec.Chart(
    "partition",
    "Line chart of the partition function over the eigenvectors",
    CURVES.refuse,
    build,
    section="isotropy",
)
