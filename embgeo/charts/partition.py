"""The partition function over the eigenvectors: raw and unit scale on one axis, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts import style
from embgeo.charts.base import Figure, series
from embgeo.charts.curves import draw_curves
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(analysis: Analysis) -> Drawing | None:
    raw, unit = series(analysis, "isotropy.z"), series(analysis, "isotropy.z_unit")
    shown = [
        (title, curve)
        for title, curve in (("at the matrix's own scale", raw), ("mean norm scaled to 1", unit))
        if curve is not None
    ]
    if not shown:
        return None
    drawing, row = style.axes(width=8.6, columns=len(shown))
    for ax, (title, curve) in zip(row, shown, strict=True):
        draw_curves(ax, curve)
        ax.set_title(title, fontsize=9.5, color=style.INK)
        ax.axhline(1.0, color=style.GRAY, lw=0.8, ls=(0, (2, 2)))
    return drawing


FIGURE = Figure(
    "partition",
    "The partition function Z in the direction of each eigenvector and against it, divided by its "
    "mean. Isotropic rows give a flat line at 1. Left the matrix as it is, right with its mean "
    "norm scaled to 1: Z depends on scale, so only the right-hand side compares matrices of "
    "different norms.",
    "Two line charts of the partition function over the eigenvectors",
    draw,
)
