"""Principal angles between the input and the output space of an untied model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts import style
from embgeo.charts.base import Figure, series
from embgeo.charts.curves import draw_curves
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(analysis: Analysis) -> Drawing | None:
    curve = series(analysis, "subspace.principal_angles")
    if curve is None:
        return None
    drawing, (ax,) = style.axes()
    draw_curves(ax, curve)
    return drawing


FIGURE = Figure(
    "subspaces",
    "Principal angles between the spaces that the columns of the input and of the output matrix "
    "span, smallest first: 0° where they share a direction, 90° where they do not.",
    "Line chart of the principal angles between input and output space",
    draw,
)
