"""Norms of the rows of every matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts.compared.bars import overlay
from embgeo.charts.compared.base import ComparedFigure
from embgeo.comparison.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(comparison: Comparison) -> Drawing | None:
    made = overlay(comparison, "tokens.norms")
    return None if made is None else made[0]


FIGURE = ComparedFigure(
    "norms",
    "Norms of the rows of each matrix. Where they shrank, I1 at the matrix's own scale rises "
    "without any change of shape: compare it at a mean norm of 1.",
    "Overlaid histograms of the row norms",
    draw,
)
