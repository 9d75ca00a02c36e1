"""Angles of rows to the mean direction of every matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts.bars import mark
from embgeo.charts.compared.bars import overlay
from embgeo.charts.compared.base import ComparedFigure
from embgeo.comparison.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(comparison: Comparison) -> Drawing | None:
    made = overlay(comparison, "cosine.cone_angles")
    if made is None:
        return None
    drawing, ax = made
    ax.set_xlim(0, 180)
    ax.set_xticks(range(0, 181, 30))
    mark(ax, 90.0, "isotropic rows: 90°")
    return drawing


FIGURE = ComparedFigure(
    "cones",
    "Angle between each row and the mean direction of its own matrix. Isotropic rows stand at 90° "
    "(dashed); rows in a cone stay well below.",
    "Overlaid histograms of the angles between rows and the mean direction",
    draw,
)
