"""Cosines of pairs of rows of every matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts.bars import mark
from embgeo.charts.compared.bars import overlay
from embgeo.charts.compared.base import ComparedFigure
from embgeo.comparison.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(comparison: Comparison) -> Drawing | None:
    made = overlay(comparison, "cosine.histogram")
    if made is None:
        return None
    drawing, ax = made
    ax.set_xlim(-1, 1)
    mark(ax, 0.0, "isotropic rows: 0")
    return drawing


FIGURE = ComparedFigure(
    "cosines",
    "Cosines between pairs of rows of each matrix. A hump around 0 (dashed) is what isotropic "
    "rows give; the further to the right it lies, the narrower the cone.",
    "Overlaid histograms of the cosines between pairs of rows",
    draw,
)
