"""Names at their points inside a map: beside each other, never beyond the panel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embgeo.charts import theme
from embgeo.charts.specification import NamedPoint
from embgeo.core.arrays import FloatArray
from embgeo.core.text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

#: Distances in points between a token and its name, nearest first; from the second on, a line
#: leads to the name.
DISTANCES = (4.0, 11.0, 20.0, 32.0, 48.0)
#: Directions, with the sides at which a name stands best first.
DIRECTIONS = ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
#: Size of a mark in points.
MARK = 3.0
#: A name keeps this distance from the edge of the panel and from other names, in points.
APART = 1.0
ALIGN = {1: "left", 0: "center", -1: "right"}
ALIGN_UP = {1: "bottom", 0: "center", -1: "top"}
BOX = {"boxstyle": "square,pad=0.1", "facecolor": "white", "alpha": 0.75, "linewidth": 0}


def draw_names(
    ax: Axes,
    named: Sequence[NamedPoint],
    write: Callable[[str], str],
    xy: FloatArray,
    member: str,
) -> list[str]:
    """Draw a mark at each point, and its name beside it; notes on points whose name has no room.

    The limits and the place of the panel are final. `xy` are the points that names should not hide.
    """
    dots = ax.transData.transform(xy)
    dot = ax.get_figure(root=True).dpi / 72.0  # type: ignore[union-attr]
    turns = np.linspace(0.0, 2.0 * np.pi, 16)
    rim = (MARK / 2.0 + 0.4) * dot * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    #: What a name may not cover: marks, and the lines to other names.
    drawn = [ax.transData.transform((point.x, point.y)) + rim for point in named]
    taken: list[Bbox] = []
    notes = []
    for place, point in enumerate(named):
        ink = theme.RARE.light if point.rare else theme.INK.light
        style: dict[str, Any] = {"marker": "o", "ms": MARK, "mfc": "none", "mec": ink, "mew": 0.8}
        ax.plot([point.x], [point.y], zorder=4, **style)
        text = ax.annotate(
            write(point.name),
            (point.x, point.y),
            textcoords="offset points",
            xytext=(0.0, 0.0),
            fontsize="small",
            fontweight="bold" if point.center else "normal",
            color=theme.INK.light,
            bbox=BOX,
            zorder=5,
        )
        room = find_room(ax, text, taken, [*drawn[:place], *drawn[place + 1 :]], dots)
        if room is None:
            text.remove()
            lost = visible(point.name)
            notes.append(f"{member}: no room for the name of {lost}; a wider figure has it")
            continue
        box, line = room
        taken.append(box)
        if line is not None:
            drawn.append(line)
            ends = ax.transData.inverted().transform(line[[0, -1]])
            ax.plot(*ends.T, color=theme.GRAY.light, lw=0.5, zorder=3.5)
    return notes


def find_room(
    ax: Axes, text: Any, taken: Sequence[Bbox], drawn: Sequence[FloatArray], dots: FloatArray
) -> tuple[Bbox, FloatArray | None] | None:
    """Move the text to the nearest free place, the emptiest of equally near ones.

    Its box, and points along the line that leads to it, if it is not beside its mark.
    """
    from matplotlib.transforms import Bbox

    panel = ax.get_window_extent()
    dot = ax.get_figure(root=True).dpi / 72.0  # type: ignore[union-attr]
    size = text.get_window_extent()
    at = ax.transData.transform(text.xy)
    gap = APART * dot
    for distance in DISTANCES:
        free = []
        for rank, (right, up) in enumerate(DIRECTIONS):
            reach = distance * dot / float(np.hypot(right, up))
            x0 = at[0] + right * reach - size.width * (1 - right) / 2
            y0 = at[1] + up * reach - size.height * (1 - up) / 2
            box = Bbox.from_bounds(x0 - gap, y0 - gap, size.width + 2 * gap, size.height + 2 * gap)
            line = None
            if distance > DISTANCES[0]:
                end = np.clip(at, box.min, box.max)
                line = at + np.linspace(0.0, 1.0, 30)[:, None] * (end - at)
            inside = panel.contains(box.x0, box.y0) and panel.contains(box.x1, box.y1)
            hides = box.count_overlaps(taken) or any(box.count_contains(of) for of in drawn)
            crosses = line is not None and any(one.count_contains(line) for one in taken)
            if inside and not hides and not crosses:
                free.append((box.count_contains(dots), rank, box, line, (right, up), reach / dot))
        if free:
            _, _, box, line, (right, up), reach = min(free, key=lambda one: one[:2])
            text.set_position((right * reach, up * reach))
            text.set(ha=ALIGN[right], va=ALIGN_UP[up])
            return box, line
    return None
