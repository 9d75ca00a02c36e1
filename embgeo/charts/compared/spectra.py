"""Singular values of every matrix, each divided by its largest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embgeo.charts import style
from embgeo.charts.base import singular_values
from embgeo.charts.compared.base import ComparedFigure, legend_of, looks
from embgeo.comparison.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

#: Which line of the series is compared.
LINE = "uncentered"


def draw(comparison: Comparison) -> Drawing | None:
    curves = [
        (look, curve)
        for look in looks(comparison)
        if (curve := singular_values(look.member.analysis, "spectrum.singular_values"))
        and LINE in curve.y
    ]
    if not curves:
        return None
    drawing, (ax,) = style.axes()
    style.log_axis(ax.yaxis, np.concatenate([curve.y[LINE] for _, curve in curves]))
    for look, curve in curves:
        y = curve.y[LINE]
        ax.plot(curve.x, np.where(y > 0, y, np.nan), color=look.color, ls=look.dash, lw=1.6)
    ax.set_xlabel(style.subscripts(curves[0][1].x_label))
    ax.set_ylabel(style.subscripts(curves[0][1].y_label))
    legend_of(ax, tuple(look for look, _ in curves))
    return drawing


FIGURE = ComparedFigure(
    "spectra",
    "Singular values of each matrix, largest first, divided by its own largest: scale plays no "
    "part. The higher a line stays, the more evenly the energy is spread over directions.",
    "Line chart of the normalized singular values of every compared matrix",
    draw,
)
