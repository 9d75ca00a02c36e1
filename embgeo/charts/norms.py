"""Norms of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts import style
from embgeo.charts.bars import draw_bars
from embgeo.charts.base import Figure, histogram
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(analysis: Analysis) -> Drawing | None:
    bars = histogram(analysis, "tokens.norms")
    if bars is None:
        return None
    drawing, (ax,) = style.axes()
    draw_bars(ax, bars)
    return drawing


FIGURE = Figure(
    "norms",
    "Norms of the rows.",
    "Histogram of the row norms",
    draw,
)
