"""All tokens in the plane of the first two principal components."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts.base import Figure, points
from embgeo.charts.density import draw_density
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(analysis: Analysis) -> Drawing | None:
    projection = points(analysis, "projection.pca2")
    return None if projection is None else draw_density(projection)


FIGURE = Figure(
    "pca_map",
    "The same tokens with the mean row taken off (PCA): what is left of their spread once the "
    "common direction is gone.",
    "Density map of all tokens in the plane of the first two principal components",
    draw,
)
