"""Angles of rows to the mean direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts import style
from embgeo.charts.bars import draw_bars, mark
from embgeo.charts.base import Figure, histogram
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(analysis: Analysis) -> Drawing | None:
    bars = histogram(analysis, "cosine.cone_angles")
    if bars is None:
        return None
    drawing, (ax,) = style.axes()
    draw_bars(ax, bars)
    ax.set_xlim(0, 180)
    ax.set_xticks(range(0, 181, 30))
    mark(ax, 90.0, "isotropic rows: 90°")
    return drawing


FIGURE = Figure(
    "cone",
    "Angle between each row and the mean direction. Isotropic rows stand at 90° (dashed); rows in "
    "a cone stay well below.",
    "Histogram of the angles between rows and the mean direction",
    draw,
)
