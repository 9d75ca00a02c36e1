"""Normalized singular values, as in Gao et al. 2019 (Fig. 2b) and Wang et al. 2020 (Fig. 1).

A single matrix is shown with and without its mean, next to isotropic rows. For several matrices,
uncentered values are compared, each with isotropic rows of the same norms as a thin dotted line.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from embgeo.charts import specification
from embgeo.charts.lookup import Lookup, find_singular_values
from embgeo.charts.panels import empty_cells, series_lines, series_panel
from embgeo.core.quantities import spectrum
from embgeo.core.values import Cell, Series
from embgeo.result.analysis import Analysis

NAME = spectrum.SINGULAR_VALUES.name
UNCENTERED, REFERENCE = "uncentered", "isotropic reference"
ONE = (
    "Singular values, largest first, divided by the largest. A flat line means that all directions "
    "carry the same variance; a first value far above the rest, that one direction dominates."
)
SEVERAL = (
    "Singular values of each matrix, largest first, divided by its own largest: scale has no "
    "effect. The higher a line stays, the more evenly the variance is spread over directions."
)
PRINT = (
    "Singular values of the embedding matrix (not centered), divided by the largest, up to its "
    "numerical rank."
)
PRINT_REFERENCE = " Dotted: isotropic Gaussian rows of the same number, dimension and norms."


def find(analysis: Analysis) -> Series | None:
    """Find the singular values up to the numerical rank."""
    curve = find_singular_values(analysis, NAME)
    return curve if curve is not None and UNCENTERED in curve.y else None


_VALUES = Lookup(find, "its analysis left out the section spectrum")


def build(
    items: specification.StyledItems, _choices: specification.Choices
) -> specification.Specification:
    curves = _VALUES.collect(items)
    alone = len(items) == 1
    own = (UNCENTERED, "centered") if alone else (UNCENTERED,)
    shown = [replace(c, y={name: c.y[name] for name in own if name in c.y}) for c in curves]
    guides = [
        specification.Line(
            c.x,
            c.y[REFERENCE],
            specification.MemberStyle("guide"),
            part="isotropic rows",
            form="plain",
        )
        for c in curves
        if REFERENCE in c.y
    ]
    lines = (*series_lines(items, shown), *guides)
    panel = series_panel(curves[0], lines)
    referenced = any(REFERENCE in curve.y for curve in curves)
    return specification.Specification(
        (panel,),
        ONE if alone else SEVERAL,
        PRINT + (PRINT_REFERENCE if referenced else ""),
        NAME,
        table=tabulate(items, curves, ("centered",) if alone else ()),
    )


def build_linear(
    items: specification.StyledItems, choices: specification.Choices
) -> specification.Specification:
    """Build the same on a linear axis that begins at 0."""
    spec = build(items, choices)
    (panel,) = spec.panels
    y = replace(panel.y, log=False, low=0.0, high=1.03)
    return replace(spec, panels=(replace(panel, x=replace(panel.x, low=0.0), y=y),))


def tabulate(
    items: specification.StyledItems, curves: Sequence[Series], more: tuple[str, ...]
) -> specification.FigureTable:
    """Return a row for each singular value: isotropic rows next to it, and the lines in `more`."""
    names = (UNCENTERED, REFERENCE, *more)
    columns = ("analysis", "k", "normalized singular value", "isotropic rows", *more)
    rows: list[tuple[Cell, ...]] = []
    for (item, _), curve in zip(items, curves, strict=True):
        nothing = np.full(len(curve.x), np.nan)
        values = [empty_cells(curve.y.get(name, nothing)) for name in names]
        for k, *cells in zip(curve.x.tolist(), *values, strict=True):
            rows.append((item.label, int(k), *cells))
    return specification.FigureTable(columns, rows)


LINEAR = specification.Chart(
    "spectrum",
    "Line chart of the singular values",
    _VALUES.refuse,
    build_linear,
)
LOGARITHMIC = specification.Chart(
    "spectrum-log",
    "Line chart of the singular values on a logarithmic axis",
    _VALUES.refuse,
    build,
    section="spectrum",
)
