"""The drawing that histograms share: one filled outline, counts from zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts import style
from embgeo.core.values import Histogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_bars(ax: Axes, histogram: Histogram) -> None:
    """`histogram` as one step outline."""
    from matplotlib.ticker import FuncFormatter

    ax.stairs(histogram.counts, histogram.edges, fill=True, color=style.BLUE, alpha=0.35, lw=0)
    ax.stairs(histogram.counts, histogram.edges, color=style.BLUE, lw=1.2)
    ax.set_ylim(bottom=0)
    ax.set_xlabel(histogram.x_label)
    ax.set_ylabel(histogram.y_label)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:,.10g}"))


def mark(ax: Axes, x: float, label: str) -> None:
    """A dashed upright line at `x` with its name above it."""
    ax.axvline(x, color=style.INK, lw=1, ls=(0, (4, 3)))
    ax.annotate(
        label,
        (x, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=8.5,
        color=style.INK,
    )
