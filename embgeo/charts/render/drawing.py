"""A specification as a matplotlib figure; the output style is what reports and papers differ in."""

from __future__ import annotations

import logging
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, chdir, contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embgeo.charts import theme
from embgeo.charts.render.ticks import set_log_ticks, settle, shorten
from embgeo.charts.specification import Axis, Guide, HistogramSteps, Line, Panel, Specification
from embgeo.core.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Lines of at most this many points have markers.
FEW = 20
#: At most this many histograms are filled; more would hide each other.
FILLED = 2
#: Room in inches next to a panel, which its title does not use, and at each side of a legend.
SIDE, EDGE = 0.5, 0.1
#: Room above what an axis has to show, by its span.
RIM = 0.04
#: Titles are not cut below this many letters.
SHORTEST = 8

#: Settings that pages and papers share.
SETTINGS: dict[str, Any] = {
    "svg.hashsalt": "embgeo",
    "text.color": theme.INK.light,
    "axes.labelcolor": theme.INK.light,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "legend.frameon": False,
    "xtick.color": theme.INK.light,
    "ytick.color": theme.INK.light,
}


@dataclass(frozen=True, slots=True)
class FigureLayout:
    """Width and height of a figure in inches, and the number of panels in a row."""

    width: float
    height: float
    across: int
    #: The heights of the rows of panels relative to each other; empty if all are equal.
    rows: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputStyle:
    """The differences between the outputs that matplotlib draws."""

    #: From a specification to the layout, without room for a legend.
    arrange: Callable[[Specification], FigureLayout]
    #: Makes untrusted text drawable.
    write_name: Callable[[str], str]
    #: Typesets a label of an axis or a line, which may be untrusted text.
    write_label: Callable[[str], str]
    #: From one digit and an exponent of ten to a label on a logarithmic axis.
    write_power: Callable[[str, int], str]
    #: Fills the panels of maps with tokens, explains their colors together with the entries of
    #: lines, and returns notes.
    draw_maps: Callable[
        [Figure, Sequence[Axes], Specification, OutputStyle, Mapping[str, Any]], tuple[str, ...]
    ]
    #: Draws tokens behind lines; None if the output holds no pictures.
    draw_cloud: Callable[[Axes, FloatArray], None] | None = None
    #: Whether panels have letters: (a), (b), (c).
    letters: bool = False


def import_matplotlib() -> Any:
    """Return Matplotlib, imported without a ``matplotlibrc`` of the working folder.

    Matplotlib reads it before all others; it may be a stranger's, and damaged.
    """
    name = "matplotlib"
    home: AbstractContextManager[None] = nullcontext()
    if name not in sys.modules and Path("matplotlibrc").exists():
        found = find_spec(name)
        if found is not None and found.origin is not None:
            home = chdir(Path(found.origin).parent)
    log = logging.getLogger(name)
    level = log.level
    if name not in sys.modules:  # what it says of a folder for its cache that is not writable
        log.setLevel(logging.ERROR)
    try:
        with home:
            module = import_module(name)
    finally:
        log.setLevel(level)
    return module


@contextmanager
def default_settings(changes: Any) -> Iterator[None]:
    """Set matplotlib's defaults with these changes, whatever the user's matplotlibrc says."""
    matplotlib = import_matplotlib()
    # The margin of a logarithmic axis may end beyond the largest number.
    with matplotlib.rc_context(), warnings.catch_warnings(), np.errstate(over="ignore"):
        # Names may be in any script: another font than the one that measures here shows them.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS | changes)
        yield


def draw(spec: Specification, output: OutputStyle) -> tuple[Figure, tuple[str, ...]]:
    """Draw the figure, and notes on what it does not show; call it within the output's settings."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    layout = output.arrange(spec)
    figure = Figure(figsize=(layout.width, layout.height), layout="constrained")
    FigureCanvasAgg(figure)  # keeps what measures texts; without it each text makes its own
    axes = add_panels(figure, len(spec.panels), layout, stretched=spec.one_row)
    handles: dict[str, Any] = {}
    for ax, panel in zip(axes, spec.panels, strict=True):
        draw_panel(ax, panel, output, handles)
    share_labels(axes, spec.panels, layout.across)
    lettered = output.letters and not spec.film and len(axes) > 1
    for i, (ax, panel) in enumerate(zip(axes, spec.panels, strict=True)):
        set_title(ax, panel, f"({chr(ord('a') + i)})" if lettered else "", layout, output)
    maps = [i for i, panel in enumerate(spec.panels) if panel.is_map]
    if maps:
        of_maps = replace(spec, panels=tuple(spec.panels[i] for i in maps))
        return figure, output.draw_maps(figure, [axes[i] for i in maps], of_maps, output, handles)
    references = any(is_guide(line) and line.part for panel in spec.panels for line in panel.lines)
    references |= any(listed(guide) for panel in spec.panels for guide in panel.guides)
    if len(handles) > 1 or references:
        add_legend(figure, list(handles.values()), list(handles))
    settle(figure, axes)
    return figure, ()


def add_panels(figure: Figure, count: int, layout: FigureLayout, *, stretched: bool) -> list[Axes]:
    """Return panels in rows; with `stretched` those of a shorter last row are wider."""
    across = layout.across
    down = -(-count // across)
    last = count - (down - 1) * across
    if not stretched or last == across:
        whole = figure.add_gridspec(down, across, height_ratios=layout.rows or None)
        return [figure.add_subplot(whole[divmod(i, across)]) for i in range(count)]
    grid = figure.add_gridspec(down, across * last)
    axes = []
    for i in range(count):
        row, column = divmod(i, across)
        wide = across if row == down - 1 else last
        axes.append(figure.add_subplot(grid[row, column * wide : (column + 1) * wide]))
    return axes


def share_labels(axes: Sequence[Axes], panels: Sequence[Panel], across: int) -> None:
    """Keep a label that all panels of a grid have at its left and its lower edge alone."""
    if len(axes) < 2 or any(panel.is_map for panel in panels):
        return
    if len({panel.x.label for panel in panels}) == 1:
        for ax in axes[: max(0, len(axes) - across)]:
            ax.set_xlabel("")
    if len({panel.y.label for panel in panels}) == 1:
        for i, ax in enumerate(axes):
            if i % across:
                ax.set_ylabel("")


def set_title(
    ax: Axes, panel: Panel, letter: str, layout: FigureLayout, output: OutputStyle
) -> None:
    """Write the letter and the title of a panel; a wide title has two lines, a wide name is cut."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    room = (layout.width / layout.across - SIDE) * figure.dpi

    def fits(title: str) -> bool:
        place: Any = "left" if output.letters else "center"
        text = ax.set_title(" ".join(filter(None, (letter, title))), loc=place)
        return bool(text.get_window_extent().width <= room)

    if not panel.member:
        title = output.write_label(panel.title) if panel.title else ""
        if not fits(title) and " " in title:
            fits("\n".join(textwrap.wrap(title, (len(title) + len(title) // 4) // 2 + 1)))
        return
    name = panel.member
    keep = len(name)
    while not fits(output.write_name(name)) and keep >= SHORTEST:
        keep -= 2
        name = f"{panel.member[: keep - keep // 2]}…{panel.member[len(panel.member) - keep // 2 :]}"


def draw_panel(ax: Axes, panel: Panel, output: OutputStyle, handles: dict[str, Any]) -> None:
    """Draw all of a pair of axes; `handles` gets an entry for each new name of a legend."""
    if panel.cloud is not None and panel.lines and output.draw_cloud is not None:
        output.draw_cloud(ax, panel.cloud.xy)
    filled = len([line for line in panel.lines if not is_guide(line)]) <= FILLED
    alone = sum(getattr(line, "form", "") != "hollow" for line in panel.lines) == 1
    for line in panel.lines:
        dash = "-" if alone else theme.dash_of(line.style)
        handle = (
            draw_steps(ax, line, dash, filled)
            if isinstance(line, HistogramSteps)
            else draw_line(ax, line, dash)
        )
        name = output.write_name(line.member) if line.member else output.write_label(line.part)
        if name and handle is not None:
            handles.setdefault(name, handle)
    if panel.lines and all(is_marks(line) for line in panel.lines):
        ax.margins(0.12)
    for guide in panel.guides:
        handle = draw_guide(ax, guide)
        if listed(guide):
            handles.setdefault(output.write_label(guide.label), handle)
    set_axis(ax.xaxis, panel.x, [line_x(line) for line in panel.lines], output)
    set_axis(ax.yaxis, panel.y, [line_y(line) for line in panel.lines], output)
    if panel.lines and not any(np.any(line_y(line)) for line in panel.lines):
        ax.set_ylim(0.0, 1.0)  # a count that stays 0 is never below it
    if panel.bare:
        across = bool(panel.lines)
        ax.tick_params(left=False, labelleft=False, bottom=across, labelbottom=across)
    if panel.tone:
        from matplotlib.patches import Patch

        color = theme.TONES[panel.tone]
        ax.spines[:].set(visible=True, color=color, linewidth=1.4)
        handles.setdefault(panel.tone, Patch(facecolor="none", edgecolor=color, linewidth=1.4))


def name_panels(spec: Specification) -> list[str]:
    """Name the member of each panel: its own, else those of the chart in turn."""
    return [panel.member or name for panel, name in zip(spec.panels, cycle(spec.members))]


def listed(guide: Guide) -> bool:
    """Tell whether a legend names it."""
    return bool(guide.label) and guide.listed


def is_marks(line: Line | HistogramSteps) -> bool:
    """Tell whether it consists of points alone, which need room around them."""
    return isinstance(line, Line) and line.form in ("marks", "dots", "arrow")


def is_guide(line: Line | HistogramSteps) -> bool:
    """Tell whether it is a reference, not a member."""
    return line.style.scale == "guide"


def line_x(line: Line | HistogramSteps) -> FloatArray:
    return line.edges if isinstance(line, HistogramSteps) else line.x


def line_y(line: Line | HistogramSteps) -> FloatArray:
    return line.heights if isinstance(line, HistogramSteps) else line.y


def draw_line(ax: Axes, line: Line, dash: Any) -> Any:
    """Draw a line with its band and error bars; the handle for a legend, if it has an entry."""
    color = theme.color_of(line.style)
    if line.low is not None and line.high is not None:
        ax.fill_between(line.x, line.low, line.high, color=color, alpha=0.15, lw=0)
    if line.error is not None and np.any(line.error > 0):
        bars = (line.error, line.error_x)
        ax.errorbar(line.x, line.y, *bars, fmt="none", ecolor=color, elinewidth=0.8)
    if line.form == "arrow":
        start, end = ((float(line.x[k]), float(line.y[k])) for k in (0, -1))
        arrow: dict[str, Any] = {"arrowstyle": "->", "color": color, "shrinkB": 0}
        ax.annotate("", end, start, arrowprops=arrow)
        return None
    if line.form == "dots":
        ax.plot(line.x, line.y, ls="", marker=".", color=color, alpha=0.7, mew=0)
        return None
    options: dict[str, Any] = {"color": color, "ls": dash, "marker": ""}
    guide = is_guide(line)
    if line.form in ("marks", "hollow"):
        options |= {"ls": "", "marker": theme.marker_of(line.style)}
        options |= {"mfc": "none"} if line.form == "hollow" else {}
    elif line.form == "line" and len(line.x) <= FEW and not guide:
        options["marker"] = theme.marker_of(line.style)
    if guide:
        options |= {"lw": 0.8, "zorder": 1.5}
    (handle,) = ax.plot(line.x, line.y, **options)
    return None if line.form == "hollow" else handle


def draw_steps(ax: Axes, steps: HistogramSteps, dash: Any, filled: bool) -> Any:
    """Draw the outline of a histogram, lightly filled."""
    from matplotlib.patches import StepPatch

    color = theme.color_of(steps.style)

    def add(*, fill: bool = False, **options: Any) -> Any:
        patch = StepPatch(steps.heights, steps.edges, fill=fill, **options)
        patch.sticky_edges.y.append(0.0)
        # `Axes.stairs` would take each edge for a curve, to find the limits.
        ax.update_datalim(patch.get_path().vertices)
        ax.add_artist(patch)
        ax.autoscale_view()
        return patch

    if is_guide(steps):
        return add(edgecolor=color, ls=dash, lw=0.8, zorder=1.5)
    if filled:
        add(fill=True, facecolor=color, alpha=0.2, lw=0)
    return add(edgecolor=color, ls=dash, lw=1.2)


def draw_guide(ax: Axes, guide: Guide) -> Any:
    """Draw a line at a value of one axis; the handle for a legend."""
    line = ax.axhline if guide.axis == "y" else ax.axvline
    dash = theme.DOTTED if guide.listed else theme.DASHED
    return line(guide.value, color=theme.GRAY.light, lw=0.8, ls=dash, zorder=0.5)


def set_axis(axis: Any, planned: Axis, values: Sequence[FloatArray], output: OutputStyle) -> None:
    """Scale, limits, ticks and label of one axis."""
    from matplotlib.ticker import FuncFormatter

    if planned.log:
        set_log_ticks(axis, np.concatenate(values), output.write_power)
    else:
        axis.get_major_locator().set_params(min_n_ticks=3)
    if planned.whole:
        axis.set_major_formatter(FuncFormatter(lambda value, _position: shorten(value)))
        axis.get_major_locator().set_params(nbins=5)
    if planned.shows is not None:
        name = axis.axis_name
        ends = (*getattr(axis.axes, f"get_{name}lim")(), *planned.shows)
        # A line along the upper edge would be half a line.
        rim = RIM * (max(ends) - min(ends))
        highest = float(np.nanmax(np.concatenate([*values, planned.shows]))) + rim
        getattr(axis.axes, f"set_{name}lim")(min(ends), max(*ends, highest))
    if planned.low is not None or planned.high is not None:
        getattr(axis.axes, f"set_{axis.axis_name}lim")(planned.low, planned.high)
    if planned.ticks or not planned.numbered:
        axis.set_ticks(planned.ticks)
    axis.set_label_text(output.write_label(planned.label))


def add_legend(
    figure: Figure, handles: Sequence[Any], labels: Sequence[str], **options: Any
) -> None:
    """Add a legend above all panels, in as few lines as the width allows; the figure grows."""
    import matplotlib

    settings: Any = matplotlib.rcParams
    size = settings["legend.fontsize"]
    widths = [text_width(figure, label, size) for label in labels]
    key, gap = (
        options.get(name, settings[f"legend.{name}"]) * size / 72.0
        for name in ("handlelength", "columnspacing")
    )
    key += settings["legend.handletextpad"] * size / 72.0
    for down in range(1, len(labels) + 1):
        columns = np.array_split(widths, -(-len(labels) // down))
        wide = sum(key + float(column.max()) for column in columns) + gap * (len(columns) - 1)
        if wide <= figure.get_figwidth() - 2 * EDGE:
            break
    titled = "title" in options
    figure.set_figheight(figure.get_figheight() + 0.02 * size * (down + titled))
    legend = figure.legend(
        handles,
        # Matplotlib leaves out labels that start with an underscore: they are set afterwards.
        ["label"] * len(labels),
        ncols=len(columns),
        **{"loc": "outside upper center"} | options,
    )
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(label)


def text_width(figure: Figure, label: str, size: float) -> float:
    """Return the width of a text in inches."""
    text = figure.text(0.0, 0.0, label, fontsize=size)
    width = float(text.get_window_extent().width) / figure.dpi
    text.remove()
    return width
