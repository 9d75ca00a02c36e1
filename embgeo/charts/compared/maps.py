"""All tokens in the plane of the two strongest singular directions, one map a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embgeo.charts import style
from embgeo.charts.base import points
from embgeo.charts.compared.base import ComparedFigure, Look, looks
from embgeo.charts.hexagons import Hexagons, count_hexagons, draw_hexagons
from embgeo.charts.maps import axis_names, view_box
from embgeo.comparison.comparison import Comparison
from embgeo.core.values import Points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

VIEW = "projection.svd2"
#: Maps in one figure, at most; of a track these are early, late and evenly between.
MOST_MAPS = 12
COLUMNS = 3
#: Hexagons across a map.
ACROSS = 40
#: The same scale in all maps, unless the widest is this many times the narrowest.
MOST_RATIO = 4.0

Box = tuple[float, float, float, float]


def draw(comparison: Comparison) -> Drawing | None:
    members = [
        (look, shown)
        for look in looks(comparison, MOST_MAPS)
        if (shown := points(look.member.analysis, VIEW))
    ]
    if not members:
        return None
    boxes = common_boxes([shown for _, shown in members])
    columns = min(COLUMNS, len(members))
    lines = -(-len(members) // columns)
    width = 4.3 if columns < 3 else 3.0
    drawing, grid = style.axes(width * columns, (width * 0.82) * lines + 0.5, columns, lines)
    cells = [hexagons(shown, box) for (_, shown), box in zip(members, boxes, strict=True)]
    most = max(max(float(c.counts.max(initial=0)) for c in cells), 1.0)
    lower = levels(most)
    for ax, (look, shown), box, cell in zip(grid, members, boxes, cells, strict=False):
        draw_map(ax, look, shown, box, cell, lower)
    for ax in grid[len(members) :]:
        ax.set_axis_off()
    legend(drawing, lower)
    return drawing


def legend(drawing: Drawing, lower: list[float]) -> None:
    """One row of color patches above all maps."""
    from matplotlib.patches import Patch

    colors = style.DENSITY[-len(lower) :]
    drawing.legend(
        [Patch(facecolor=color, edgecolor=color) for color in colors],
        [f"{edge:,.0f}{'+' if i == len(lower) - 1 else ''}" for i, edge in enumerate(lower)],
        title="tokens in a hexagon, from",
        title_fontsize=8.5,
        loc="outside upper left",
        ncols=len(colors),
        frameon=False,
        fontsize=8,
        handlelength=1.0,
        handletextpad=0.3,
        columnspacing=0.9,
        labelcolor=style.INK,
        alignment="left",
    )


def draw_map(
    ax: Axes, look: Look, shown: Points, box: Box, cells: Hexagons, lower: list[float]
) -> None:
    """One map with its name; colors mean the same in all of them."""
    shade = np.searchsorted(lower, cells.counts, side="right") - 1
    draw_hexagons(ax, cells, shade, style.DENSITY[-len(lower) :])
    ax.set_aspect("equal")
    ax.set_xlim(box[0], box[1])
    ax.set_ylim(box[2], box[3])
    ax.axhline(0.0, color=style.GRAY, lw=0.8, zorder=0.5)
    ax.axvline(0.0, color=style.GRAY, lw=0.8, zorder=0.5)
    ax.plot([0.0], [0.0], marker="+", ms=9, mew=1.6, color=style.INK)
    first, second = axis_names(shown)
    ax.set_xlabel(first)
    ax.set_ylabel(second)
    ax.set_title(look.label, fontsize=9.5, color=style.INK)


def levels(most: float) -> list[float]:
    """Lower ends of the classes of density, the same for all maps."""
    n = int(min(len(style.DENSITY), max(1.0, most)))
    return [float(edge) for edge in np.unique(np.round(most ** (np.arange(n) / n)))]


def hexagons(shown: Points, box: Box) -> Hexagons:
    """The points inside `box`, counted."""
    left, right, bottom, top = box
    x, y = shown.xy[:, 0], shown.xy[:, 1]
    inside = (x >= left) & (x <= right) & (y >= bottom) & (y <= top)
    return count_hexagons(shown.xy[inside], max(right - left, top - bottom) / ACROSS)


def common_boxes(maps: list[Points]) -> list[Box]:
    """What each map shows: the same for all, or to its own scale where scales lie far apart."""
    boxes = [view_box(shown.xy) for shown in maps]
    if not same_scale(boxes):
        return boxes
    low, high = np.min(boxes, axis=0), np.max(boxes, axis=0)
    common = (float(low[0]), float(high[1]), float(low[2]), float(high[3]))
    return [common] * len(boxes)


def same_scale(boxes: list[Box]) -> bool:
    """Whether one scale shows all of them well."""
    spans = [max(right - left, top - bottom) for left, right, bottom, top in boxes]
    return bool(max(spans) <= MOST_RATIO * min(spans))


FIGURE = ComparedFigure(
    "maps",
    "Every token in the plane of the two strongest singular directions of its own matrix, not "
    "centered; the cross is the origin. Isotropic rows would surround the origin; rows in a cone "
    "lie to one side of it.",
    "Density maps of all tokens, one for each matrix",
    draw,
)
