"""Norms and cosines over ten bins of token frequency, for every matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embgeo.charts import style
from embgeo.charts.base import table
from embgeo.charts.compared.base import ComparedFigure, legend_of, looks
from embgeo.charts.frequency import column
from embgeo.comparison.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

PANELS = ("median norm", "mean cosine to mean direction")


def draw(comparison: Comparison) -> Drawing | None:
    members = [
        (look, bins)
        for look in looks(comparison)
        if (bins := table(look.member.analysis, "frequency.by_frequency_bin"))
    ]
    if not members:
        return None
    drawing, row = style.axes(width=8.6, columns=2)
    most = max(len(bins.rows) for _, bins in members)
    for ax, name in zip(row, PANELS, strict=True):
        for i, (look, bins) in enumerate(members):
            x = np.arange(1, len(bins.rows) + 1)
            options = {"color": look.color, "ls": look.dash, "lw": 1.6, "ms": 4}
            ax.plot(x, column(bins, name), marker="os^Dv"[i % 5], **options)
        ax.set_xticks(np.arange(1, most + 1))
        ax.set_xlabel("frequency bin (1 = most frequent tokens)")
        ax.set_ylabel(name)
    row[0].set_ylim(bottom=0)
    row[1].axhline(0.0, color=style.GRAY, lw=0.8, ls=(0, (2, 2)))
    legend_of(row[0], tuple(look for look, _ in members))
    return drawing


FIGURE = ComparedFigure(
    "by_frequency",
    "Tokens sorted by frequency into ten bins of equal size: the median norm of each bin, and the "
    "mean cosine of its rows to the mean direction of their matrix. Flat lines would mean that "
    "the geometry does not know how frequent a token is.",
    "Line charts of norm and cosine over ten frequency bins, a line for each matrix",
    draw,
)
