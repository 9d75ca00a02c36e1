"""Cosines of pairs of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts import style
from embgeo.charts.bars import draw_bars, mark
from embgeo.charts.base import Figure, histogram
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(analysis: Analysis) -> Drawing | None:
    bars = histogram(analysis, "cosine.histogram")
    if bars is None:
        return None
    drawing, (ax,) = style.axes()
    draw_bars(ax, bars)
    ax.set_xlim(-1, 1)
    mark(ax, 0.0, "isotropic rows: 0")
    return drawing


FIGURE = Figure(
    "cosines",
    "Cosines between pairs of rows. Isotropic rows give a hump around 0 (dashed) that is narrower "
    "the more dimensions there are; a hump to the right of it is a cone, two humps near −1 and 1 "
    "are a collapse on both sides.",
    "Histogram of the cosines between pairs of rows",
    draw,
)
