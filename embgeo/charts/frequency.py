"""Norms and cosines over ten bins of token frequency."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embgeo.charts import style
from embgeo.charts.base import Figure, table
from embgeo.core.values import Cell, Table
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw(analysis: Analysis) -> Drawing | None:
    bins = table(analysis, "frequency.by_frequency_bin")
    if bins is None:
        return None
    x = np.arange(1, len(bins.rows) + 1)
    drawing, (left, right) = style.axes(width=8.6, columns=2)
    left.plot(x, column(bins, "median norm"), color=style.BLUE, marker="o", ms=4, lw=1.6)
    left.set_ylabel("median norm")
    left.set_ylim(bottom=0)
    for i, name in enumerate(("mean cosine inside", "mean cosine to mean direction")):
        right.plot(
            x,
            column(bins, name),
            color=style.LINES[i],
            ls=style.DASHES[i],
            marker="os"[i],
            ms=4,
            lw=1.6,
            label=("inside the bin", "to the mean direction")[i],
        )
    right.set_ylabel("mean cosine")
    right.axhline(0.0, color=style.GRAY, lw=0.8, ls=(0, (2, 2)))
    style.legend(right)
    for ax in (left, right):
        ax.set_xticks(x)
        ax.set_xlabel("frequency bin (1 = most frequent tokens)")
    return drawing


def column(bins: Table, name: str) -> list[float]:
    """One column of numbers; NaN where a bin has none."""
    index = bins.columns.index(name)
    return [_number(row[index]) for row in bins.rows]


def _number(cell: Cell) -> float:
    return float(cell) if isinstance(cell, int | float) else float("nan")


FIGURE = Figure(
    "frequency",
    "Tokens sorted by frequency into ten bins of equal size. Flat lines would mean that the "
    "geometry does not know how frequent a token is.",
    "Line charts of norm and cosine over ten frequency bins",
    draw,
)
