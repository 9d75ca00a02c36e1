"""Where rare and popular tokens lie: the share of rare tokens in each part of the plane."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from embgeo.charts import style
from embgeo.charts.base import Figure, points
from embgeo.charts.hexagons import draw_hexagons
from embgeo.charts.maps import cells, frame, swatches
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(analysis: Analysis) -> Drawing | None:
    projection = points(analysis, "projection.svd2")
    if projection is None or analysis.popular is None:
        return None
    drawing, (ax,) = style.axes(width=6.0, height=4.8)
    hexagons, inside = cells(projection)
    rare = np.bincount(
        hexagons.members, weights=~analysis.popular[inside], minlength=len(hexagons.counts)
    )
    share = rare / hexagons.counts
    n = len(style.MIXTURE)
    levels = np.minimum((share * n).astype(np.int64), n - 1)
    draw_hexagons(ax, hexagons, levels, style.MIXTURE)
    frame(ax, projection)
    edges = [round(100 * i / n) for i in range(n + 1)]
    labels = [f"{a}–{b} %" for a, b in pairwise(edges)]
    swatches(ax, style.MIXTURE, labels, "share of rare tokens in a hexagon")
    return drawing


FIGURE = Figure(
    "mixture",
    "The same plane as the map of tokens, shaded by the share of rare tokens. If frequency played "
    "no part, all of it would have the color of the base rate.",
    "Map of the share of rare tokens in the plane of the first two singular directions",
    draw,
)
