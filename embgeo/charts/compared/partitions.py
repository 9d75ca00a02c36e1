"""The partition function over the eigenvectors of every matrix, raw beside unit scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embgeo.charts import style
from embgeo.charts.base import series
from embgeo.charts.compared.base import ComparedFigure, legend_of, looks
from embgeo.comparison.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

PANELS = (("isotropy.z", "as stored"), ("isotropy.z_unit", "mean norm scaled to 1"))


def draw(comparison: Comparison) -> Drawing | None:
    shown = looks(comparison)
    panels = [
        (title, curves)
        for name, title in PANELS
        if (curves := [(k, s) for k in shown if (s := series(k.member.analysis, name))])
    ]
    if not panels:
        return None
    drawing, row = style.axes(width=8.6, columns=len(panels))
    for ax, (title, curves) in zip(row, panels, strict=True):
        if any(curve.log_y for _, curve in curves):
            values = [y for _, curve in curves for y in curve.y.values()]
            style.log_axis(ax.yaxis, np.concatenate(values))
        for look, curve in curves:
            for y in curve.y.values():
                ax.plot(curve.x, y, color=look.color, ls=look.dash, lw=1.3)
        ax.axhline(1.0, color=style.GRAY, lw=0.8, ls=(0, (2, 2)))
        ax.set_title(title, fontsize=9.5, color=style.INK)
        ax.set_xlabel(style.subscripts(curves[0][1].x_label))
        ax.set_ylabel(style.subscripts(curves[0][1].y_label))
    legend_of(row[-1], tuple(look for look, _ in panels[-1][1]))
    return drawing


FIGURE = ComparedFigure(
    "partitions",
    "The partition function Z in the direction of each eigenvector and against it, divided by its "
    "mean: the wider a matrix's lines spread around 1, the less alike its directions are. Left as "
    "stored, where small norms alone bring the lines together; right with the mean norm scaled "
    "to 1, which compares shapes.",
    "Two line charts of the partition function over the eigenvectors of every matrix",
    draw,
)
