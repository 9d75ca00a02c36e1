"""How much of the mean cosine each coordinate makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts import style
from embgeo.charts.base import Figure, series
from embgeo.charts.curves import draw_curves
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(analysis: Analysis) -> Drawing | None:
    curve = series(analysis, "cosine.mean_share_by_dimension")
    if curve is None:
        return None
    drawing, (ax,) = style.axes()
    draw_curves(ax, curve)
    ax.set_ylim(bottom=0)
    return drawing


FIGURE = Figure(
    "coordinates",
    "How much of the mean cosine each coordinate makes. A single high peak is a rogue coordinate: "
    "the cone is then a matter of that one coordinate.",
    "Line chart of the share of the mean cosine by coordinate",
    draw,
)
