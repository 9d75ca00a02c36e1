"""What the maps of tokens share: the part of the plane that is shown, axes, and legends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embgeo.charts import style
from embgeo.charts.hexagons import Hexagons, count_hexagons
from embgeo.core.values import Points, format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Hexagons across the longer side.
ACROSS = 52

#: Share of points at each end of an axis that may lie outside the picture.
OUTSIDE = 0.001


def view_box(xy: npt.NDArray[np.float64]) -> tuple[float, float, float, float]:
    """Left, right, bottom, top of what is shown: nearly all points, and the origin."""
    low, high = np.quantile(xy, [OUTSIDE, 1.0 - OUTSIDE], axis=0)
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    span = max(float(np.max(high - low)), np.finfo(np.float64).tiny)
    margin = 0.04 * span
    # A flat cloud still gets a picture of some height.
    short = np.maximum(0.0, 0.35 * span - (high - low)) / 2.0
    low, high = low - short - margin, high + short + margin
    return float(low[0]), float(high[0]), float(low[1]), float(high[1])


def cells(points: Points) -> tuple[Hexagons, npt.NDArray[np.bool_]]:
    """Hexagons of the points inside the view, and which points those are."""
    left, right, bottom, top = view_box(points.xy)
    x, y = points.xy[:, 0], points.xy[:, 1]
    inside = (x >= left) & (x <= right) & (y >= bottom) & (y <= top)
    width = max(right - left, top - bottom) / ACROSS
    return count_hexagons(points.xy[inside], width), inside


def frame(ax: Axes, points: Points) -> None:
    """Equal aspect, the axes through the origin, and the share of energy on each axis."""
    left, right, bottom, top = view_box(points.xy)
    ax.set_aspect("equal")
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
    ax.axhline(0.0, color=style.GRAY, lw=0.8, zorder=0.5)
    ax.axvline(0.0, color=style.GRAY, lw=0.8, zorder=0.5)
    ax.plot([0.0], [0.0], marker="+", ms=9, mew=1.6, color=style.INK)
    first, second = axis_names(points)
    ax.set_xlabel(first)
    ax.set_ylabel(second)


def axis_names(points: Points) -> tuple[str, str]:
    """The labels of both axes, each with the share of the energy that it holds."""
    first, second = (
        label if "%" in label else f"{label} ({format_number(100 * share, 3)} %)"
        for label, share in zip((points.x_label, points.y_label), points.share, strict=True)
    )
    return first, second


def swatches(ax: Axes, colors: tuple[str, ...], labels: list[str], title: str) -> None:
    """One row of color patches above the map."""
    from matplotlib.patches import Patch

    ax.legend(
        [Patch(facecolor=color, edgecolor=color) for color in colors],
        labels,
        title=title,
        title_fontsize=8.5,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=len(colors),
        frameon=False,
        fontsize=8,
        handlelength=1.0,
        handletextpad=0.3,
        columnspacing=0.9,
        borderpad=0.1,
        labelcolor=style.INK,
        alignment="left",
    )
