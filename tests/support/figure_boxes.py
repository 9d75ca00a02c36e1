"""What leaves its panel in a drawn figure: boxes of texts, legends and lines against each other."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.text import Text
from matplotlib.transforms import Bbox

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Boxes may touch by this many points.
TOUCH = 0.4


def list_texts(ax: Axes) -> list[Text]:
    """The visible texts of a panel: titles, labels, numbers at the ticks, and names inside."""
    found: list[Text] = [ax.title, ax._left_title, ax._right_title]  # type: ignore[attr-defined]
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        slack = 1e-9 * (high - low)
        found += [axis.label, axis.get_offset_text()]
        found += [
            label
            for ticks in (axis.get_major_ticks(), axis.get_minor_ticks())
            for tick in ticks
            for label in (tick.label1,)
            if low - slack <= tick.get_loc() <= high + slack
        ]
    return [text for text in (*found, *ax.texts) if text.get_visible() and text.get_text()]


def find_faults(figure: Figure) -> list[str]:
    """Every text or curve that is where it should not be, as a sentence."""
    figure.draw_without_rendering()
    slack = TOUCH * figure.dpi / 72.0
    page = grow(figure.bbox, slack)
    panels = [(ax, ax.get_window_extent()) for ax in figure.axes]
    owned = [(ax, text, text.get_window_extent()) for ax, _ in panels for text in list_texts(ax)]
    legends = [*figure.legends, *(one for ax, _ in panels if (one := ax.get_legend()))]
    free = [
        (None, text, text.get_window_extent())
        for legend in legends
        for text in (*legend.get_texts(), legend.get_title())
        if text.get_text()
    ]
    free += [(None, text, text.get_window_extent()) for text in figure.texts if text.get_text()]
    texts = [*owned, *free]
    faults = [f"{name(text)} leaves the figure" for _, text, box in texts if not holds(page, box)]
    for (_, one, box), (_, other, place) in combinations(texts, 2):
        if cross(box, place, slack):
            faults.append(f"{name(one)} overlaps {name(other)}")
    for home, text, box in texts:
        for ax, place in panels:
            if ax is not home and cross(box, place, slack):
                faults.append(f"{name(text)} is over the panel {name(ax.title)}")
            if ax is home and text in ax.texts and not holds(grow(place, slack), box):
                faults.append(f"{name(text)} leaves its panel")
            if ax is home and text in ax.texts:
                faults += [f"{name(text)} is over a curve" for c in curves(ax) if over(c, box)]
    for legend in figure.legends:
        box = legend.get_window_extent()
        faults += [
            f"the legend is over {name(text)}" for _, text, place in owned if cross(box, place, 0.0)
        ]
        faults += ["the legend is over a panel" for _, place in panels if cross(box, place, slack)]
        if not holds(page, box):
            faults.append("the legend leaves the figure")
    for ax, place in panels:
        legend = ax.get_legend()
        if legend is not None and any(over(c, legend.get_window_extent()) for c in curves(ax)):
            faults.append("a legend is over a curve")
        faults += find_outside(ax, grow(place, slack))
    return faults


def find_outside(ax: Axes, place: Bbox) -> list[str]:
    """Curves and marks beyond the axes, and what is drawn without being cut at them."""
    faults = []
    for line in ax.lines:
        if line.get_marker() == "+":  # the origin, which a map of a few words may not hold
            continue
        drawn = line.get_transform().transform(line.get_xydata())
        drawn = drawn[np.isfinite(drawn).all(axis=1)]
        if line.get_transform() == ax.transData and place.count_contains(drawn) != len(drawn):
            faults.append(f"a curve of {name(ax.title)} is cut off")
    for artist in (*ax.patches, *ax.collections, *ax.lines):
        if not artist.get_clip_on() and not holds(place, artist.get_window_extent()):
            faults.append(f"{artist} leaves its panel")
    return faults


def curves(ax: Axes) -> list[np.ndarray]:
    """Points along every line of many points, in pixels; lines across the panel are no curves."""
    found = []
    for line in ax.lines:
        path = np.asarray(line.get_xydata())
        if len(path) < 2 or line.get_linestyle() == "None" or line.get_transform() != ax.transData:
            continue
        path = ax.transData.transform(path)
        path = path[np.isfinite(path).all(axis=1)]
        at = np.linspace(0, len(path) - 1, 20 * len(path))
        along = [np.interp(at, np.arange(len(path)), path[:, k]) for k in (0, 1)]
        found.append(np.stack(along, axis=1))
    return found


def over(curve: np.ndarray, box: Bbox) -> bool:
    return box.count_contains(curve) > 0


def holds(outer: Bbox, inner: Bbox) -> bool:
    return bool(
        outer.x0 <= inner.x0
        and outer.y0 <= inner.y0
        and inner.x1 <= outer.x1
        and inner.y1 <= outer.y1
    )


def cross(one: Bbox, other: Bbox, slack: float) -> bool:
    """Whether two boxes share more than a rim."""
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    up = min(one.y1, other.y1) - max(one.y0, other.y0)
    return across > slack and up > slack


def grow(box: Bbox, by: float) -> Bbox:
    return Bbox.from_extents(box.x0 - by, box.y0 - by, box.x1 + by, box.y1 + by)


def name(text: Text) -> str:
    return repr(text.get_text())
