"""A map of how many tokens lie where, in levels of a logarithmic scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embgeo.charts import style
from embgeo.charts.hexagons import draw_hexagons
from embgeo.charts.maps import cells, frame, swatches
from embgeo.core.values import Points

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw_density(points: Points) -> Drawing:
    """Hexagons shaded by the number of tokens in them."""
    drawing, (ax,) = style.axes(width=6.0, height=4.8)
    hexagons, _ = cells(points)
    most = max(hexagons.counts.max(), 1.0)
    # At most as many levels as there are counts to tell apart.
    n = int(min(len(style.DENSITY), max(1.0, most)))
    lower = np.unique(np.round(most ** (np.arange(n) / n)))
    colors = style.DENSITY[-len(lower) :]
    levels = np.searchsorted(lower, hexagons.counts, side="right") - 1
    draw_hexagons(ax, hexagons, levels, colors)
    frame(ax, points)
    labels = [f"{edge:,.0f}{'+' if i == len(lower) - 1 else ''}" for i, edge in enumerate(lower)]
    swatches(ax, colors, labels, "tokens in a hexagon, from")
    return drawing
