"""The drawing that figures of one series share: a line a label, colors and dashes in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embgeo.charts import style
from embgeo.core.values import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_curves(ax: Axes, series: Series) -> None:
    """All lines of `series`; points are marked where there are few."""
    if series.log_x:
        style.log_axis(ax.xaxis, series.x)
    if series.log_y:
        style.log_axis(ax.yaxis, np.concatenate(list(series.y.values())))
    for i, (label, y) in enumerate(series.y.items()):
        # What a logarithm cannot show is left out, as gaps.
        shown = np.where(y > 0, y, np.nan) if series.log_y else y
        ax.plot(
            series.x,
            shown,
            color=style.LINES[i % len(style.LINES)],
            linestyle=style.DASHES[i % len(style.DASHES)],
            linewidth=1.6,
            marker="." if len(series.x) <= 40 else None,
            markersize=4,
            label=style.subscripts(label),
        )
    ax.set_xlabel(style.subscripts(series.x_label))
    ax.set_ylabel(style.subscripts(series.y_label))
    if len(series.y) > 1:
        style.legend(ax)
