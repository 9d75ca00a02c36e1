"""Singular values, beside those of the centered matrix and of isotropic rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts import style
from embgeo.charts.base import Figure, singular_values
from embgeo.charts.curves import draw_curves
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(analysis: Analysis) -> Drawing | None:
    curve = singular_values(analysis, "spectrum.singular_values")
    if curve is None:
        return None
    drawing, (ax,) = style.axes()
    draw_curves(ax, curve)
    return drawing


FIGURE = Figure(
    "spectrum",
    "Singular values, largest first, divided by the largest. A flat line means that all directions "
    "carry the same energy; a first value far above the rest, that one direction dominates.",
    "Line chart of the singular values on a logarithmic axis",
    draw,
)
