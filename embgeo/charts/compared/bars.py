"""The drawing that overlaid histograms share: outlines of densities, so that bins may differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embgeo.charts import style
from embgeo.charts.base import histogram
from embgeo.charts.compared.base import Look, legend_of, looks
from embgeo.comparison.comparison import Comparison
from embgeo.core.arrays import FloatArray
from embgeo.core.values import Histogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


def density(bars: Histogram) -> FloatArray:
    """Share of all counts by unit of x; the area under it is 1."""
    widths = np.diff(bars.edges)
    total = bars.counts.sum()
    return np.asarray(bars.counts / (widths * total if total else widths))


def found(comparison: Comparison, name: str) -> list[tuple[Look, Histogram]]:
    """The histogram of that name of each member that is drawn and has it."""
    pairs = ((look, histogram(look.member.analysis, name)) for look in looks(comparison))
    return [(look, bars) for look, bars in pairs if bars is not None]


def draw_outlines(ax: Axes, members: list[tuple[Look, Histogram]]) -> None:
    """One outline a member, lightly filled while there are two."""
    for look, bars in members:
        shape = density(bars)
        if len(members) <= 2:
            ax.stairs(shape, bars.edges, fill=True, color=look.color, alpha=0.18, lw=0)
        dash = look.dash if len(members) > 1 else "-"
        ax.stairs(shape, bars.edges, color=look.color, ls=dash, lw=1.4)
    ax.set_ylim(bottom=0)
    ax.set_xlabel(members[0][1].x_label)
    ax.set_ylabel("density")
    if len(members) > 1:
        legend_of(ax, tuple(look for look, _ in members))


def overlay(comparison: Comparison, name: str) -> tuple[Drawing, Axes] | None:
    """An empty figure with the outlines in it, or None where nobody has that histogram."""
    members = found(comparison, name)
    if not members:
        return None
    drawing, (ax,) = style.axes()
    draw_outlines(ax, members)
    return drawing, ax
