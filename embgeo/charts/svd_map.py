"""All tokens in the plane of the two strongest singular directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts.base import Figure, points
from embgeo.charts.density import draw_density
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(analysis: Analysis) -> Drawing | None:
    projection = points(analysis, "projection.svd2")
    return None if projection is None else draw_density(projection)


FIGURE = Figure(
    "svd_map",
    "Every token in the plane of the two strongest singular directions, not centered, with equal "
    "scales; the cross is the origin. Isotropic rows would surround the origin; rows in a cone lie "
    "to one side of it. The axes say how much of the energy this plane holds.",
    "Density map of all tokens in the plane of the first two singular directions",
    draw,
)
