"""Margins of the charts on a page, and places of labels, from the letters that stand in them.

Matplotlib's own layout draws every text twice to find them, which takes as long as the drawing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Inches around everything, and between a panel's labels and its neighbor.
PAD = 0.05
#: Width of a letter, height of a digit with its base, and of a line of text, in sizes of its font.
LETTER, DIGIT, LINE = 0.64, 1.1, 1.5


def set_margins(figure: Figure) -> None:
    """Give each panel the room that its labels need, and the legend its own above all."""
    width, height = figure.get_size_inches()
    axes = figure.axes
    place: Any = axes[0].get_subplotspec()
    columns, rows = place.get_gridspec().ncols, place.get_gridspec().nrows
    left = [measure_left(ax) for ax in axes]
    right = max(measure_right(ax) for ax in axes)
    above, below = max(map(measure_above, axes)), [measure_below(ax) for ax in axes]
    inner = [room for i, room in enumerate(left) if i % columns] or [0.0]
    between = max(inner) + right + PAD
    # The lowest panel of every column is below all others, also above a gap.
    last = len(axes) - columns
    gap = max([room for i, room in enumerate(below) if i < last] or [0.0]) + above + PAD
    outer = [room for i, room in enumerate(left) if i % columns == 0]
    low, high = max(below[max(last, 0) :]), height - measure_legends(figure) - above - PAD
    start, end = max(outer) + PAD, width - right - PAD
    wide = (end - start - (columns - 1) * between) / columns
    tall = (high - low - PAD - (rows - 1) * gap) / rows
    figure.set_layout_engine(None)
    figure.subplots_adjust(
        left=start / width,
        right=end / width,
        bottom=(low + PAD) / height,
        top=high / height,
        wspace=between / wide,
        hspace=gap / tall,
    )
    for ax in axes:
        place_labels(ax, width, height)


def place_labels(ax: Axes, width: float, height: float) -> None:
    """Set ticks, and the labels beside their numbers, in a figure of this size in inches."""
    ax.apply_aspect()
    box, pad = ax.get_position(), read_inches("axes.labelpad")
    below = measure_tick("x") + DIGIT * read_inches("xtick.labelsize") + pad
    ax.xaxis.set_label_coords(0.5, -below / (box.height * height))
    ax.yaxis.set_label_coords(-(measure_numbers(ax) + pad) / (box.width * width), 0.5)
    fix_ticks(ax.xaxis)
    fix_ticks(ax.yaxis)


def measure_legends(figure: Figure) -> float:
    """Return the room of the legends at the upper edge: their lines, and what is around them."""
    room, size = 0.0, read_inches("legend.fontsize")
    for legend in figure.legends:
        lines = -(-len(legend.get_texts()) // legend._ncols)  # type: ignore[attr-defined]
        lines += bool(legend.get_title().get_text())
        room += size * (1.3 + 1.7 * lines)
    return room


def list_shown(axis: Any, places: Iterable[float]) -> list[float]:
    """Return the places of ticks within the limits."""
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (high - low)
    return [place for place in places if low - slack <= place <= high + slack]


def list_tick_labels(axis: Any) -> list[str]:
    """Return the numbers at the ticks within the limits, as they are written."""
    labels = axis.get_major_formatter().format_ticks(list_shown(axis, axis.get_majorticklocs()))
    return [label for label in labels if label]


def fix_ticks(axis: Any) -> None:
    """Leave the ticks as they are; a third lies beyond the limits and would be made for nothing."""
    from matplotlib.ticker import FixedLocator

    major, minor = axis.get_majorticklocs(), axis.get_minorticklocs()
    axis.set_major_locator(FixedLocator(list_shown(axis, major)))
    if len(minor):
        axis.set_minor_locator(FixedLocator(list_shown(axis, minor)))


def read_inches(name: str) -> float:
    """Return a setting of matplotlib, in points, in inches."""
    import matplotlib

    settings: Any = matplotlib.rcParams
    return float(settings[name]) / 72.0


def measure_tick(axis_name: str) -> float:
    """Return the room of the marks of an axis and their distance to the numbers, in inches."""
    size, pad = f"{axis_name}tick.major.size", f"{axis_name}tick.major.pad"
    return read_inches(size) + read_inches(pad)


def measure_numbers(ax: Axes) -> float:
    """Return the room of the ticks and numbers left of a panel."""
    letters = max(map(len, list_tick_labels(ax.yaxis)), default=0)
    return measure_tick("y") + LETTER * letters * read_inches("ytick.labelsize")


def measure_left(ax: Axes) -> float:
    return measure_numbers(ax) + measure_label(ax.get_ylabel())


def measure_below(ax: Axes) -> float:
    room = measure_tick("x") + LINE * read_inches("xtick.labelsize")
    return room + measure_label(ax.get_xlabel())


def measure_label(label: str) -> float:
    if not label:
        return 0.0
    lines = label.count("\n") + 1
    return read_inches("axes.labelpad") + LINE * lines * read_inches("axes.labelsize")


def measure_above(ax: Axes) -> float:
    """Return the room of a title, or of half a number at the upper end of the axis."""
    if not ax.get_title():
        return 0.5 * LINE * read_inches("ytick.labelsize")
    lines = ax.get_title().count("\n") + 1
    return read_inches("axes.titlepad") + LINE * lines * read_inches("axes.titlesize")


def measure_right(ax: Axes) -> float:
    """Return the room that the last number below a panel takes beside it."""
    labels = list_tick_labels(ax.xaxis)
    return 0.5 * LETTER * len(labels[-1]) * read_inches("xtick.labelsize") if labels else 0.0
