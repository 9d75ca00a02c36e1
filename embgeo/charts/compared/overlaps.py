"""How many tokens keep which share of their nearest neighbors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embgeo.charts import style
from embgeo.charts.compared.bars import draw_outlines
from embgeo.charts.compared.base import ComparedFigure, Look, looks
from embgeo.comparison.comparison import Comparison
from embgeo.core.values import Histogram

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

NAME = "compare.overlap_histogram"


def draw(comparison: Comparison) -> Drawing | None:
    members = overlaps(comparison)
    if not members:
        return None
    drawing, (ax,) = style.axes()
    draw_outlines(ax, members)
    ax.set_xlim(0, 1)
    return drawing


def overlaps(comparison: Comparison) -> list[tuple[Look, Histogram]]:
    """The histogram of each drawn member that was held against the baseline."""
    found = []
    for look in looks(comparison):
        pair = comparison.pair(0, look.place)
        for bars in pair.histograms if pair else ():
            if bars.name == NAME and len(bars.counts):
                found.append((look, bars))
    return found


FIGURE = ComparedFigure(
    "overlaps",
    "How much of its neighborhood a token keeps: shared nearest neighbors as a share of all "
    "those in either matrix (Jaccard). At 1 nothing moved, at 0 every neighbor is another. "
    "Only as many values can occur as there are neighbors, and 0: hence the gaps.",
    "Histogram of the overlap of nearest neighbors with the baseline",
    draw,
)
