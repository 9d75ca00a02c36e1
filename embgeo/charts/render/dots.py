"""Maps of tokens as dots, colored by class or frequency: a picture inside the vector file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from embgeo.charts import theme
from embgeo.charts.render.drawing import OutputStyle, add_legend, name_panels
from embgeo.charts.render.names import draw_names
from embgeo.charts.render.ticks import keep_ticks
from embgeo.charts.render.view import (
    MOST_RATIO,
    View,
    draw_mean,
    draw_origin,
    fit_focus,
    fit_view,
    unite,
)
from embgeo.charts.specification import Cloud, Specification
from embgeo.core.arrays import FloatArray
from embgeo.core.text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

#: Share of points at each end of an axis that may lie outside the picture.
OUTSIDE = 0.0005
#: Room in inches for labels and ticks next to and below a panel, and for a title above it.
MARGIN = 0.45
#: A map of more points shows their density: dots would merge into a disc.
MOST_DOTS = 10_000
#: Cells of a density per inch, the shade of a cell with one point, and the fewest points of the
#: darkest cell.
CELLS, LEAST_SHADE, LEAST_DENSE = 100, 0.25, 8
#: Colors of the scale of frequencies.
STEPS = 12
#: Height in inches of a color bar with its labels.
BAR = 0.4
#: Layouts that are tried.
ROUNDS = 3


def draw_maps(
    figure: Figure,
    axes: Sequence[Axes],
    spec: Specification,
    output: OutputStyle,
    handles: Mapping[str, Any],
) -> tuple[str, ...]:
    """Draw one map per panel with equal scales on both axes.

    Notes say how many tokens lie outside.
    """
    clouds = [panel.cloud for panel in spec.panels if panel.cloud is not None]
    colors, keys, add_bar = choose_colors(clouds, spec)
    for ax in axes:
        draw_origin(ax)
        ax.locator_params(nbins=4)
    if keys or handles:
        add_legend(figure, [*keys.values(), *handles.values()], [*keys, *handles])
    add_bar(figure, axes)
    fitted = [
        fit_view(cloud.xy, OUTSIDE) if cloud.focus is None else fit_focus(cloud.focus)
        for cloud in clouds
    ]
    spans = [view.span for view in fitted]
    notes = []
    if not spec.free_axes:
        fitted = [unite(fitted)] * len(clouds)
        if max(spans) > MOST_RATIO * min(spans):
            ratio = max(spans) / min(spans)
            notes.append(f"one scale for all, although they differ {ratio:.0f}-fold")
    views = fill_panels(figure, axes, fitted)
    side = min(ax.get_window_extent().width for ax in axes) / figure.dpi
    drawn = zip(axes, name_panels(spec), clouds, views, colors, strict=True)
    for ax, name, cloud, view, color in drawn:
        if len(cloud.xy) > MOST_DOTS:
            draw_density(ax, cloud.xy, color, view, side)
            count = f"{len(cloud.xy):,} dots"
            notes.append(f"{name}: shades are densities, {count} would hide one another")
        else:
            draw_dots(ax, cloud.xy, color, side)
        draw_mean(ax, cloud.mean)
        inside = [view.holds(np.array([[point.x, point.y]]))[0] for point in cloud.named]
        held = [*compress(cloud.named, inside)]
        notes += draw_names(ax, held, output.write_name, cloud.xy, name)
        for point in compress(cloud.named, np.logical_not(inside)):
            notes.append(f"{name}: {visible(point.name)} lies outside the picture and is not named")
        outside = int((~view.holds(cloud.xy)).sum())
        if outside and cloud.focus is None:
            total = f"{len(cloud.xy):,} points"
            notes.append(f"{name}: {outside:,} of {total} lie outside the picture")
    return tuple(notes)


def draw_cloud(ax: Axes, xy: FloatArray) -> None:
    """Draw pale dots behind a line."""
    draw_dots(ax, xy, theme.PALE.light, 2.0)


#: The color of each dot of each cloud, entries of a legend, and a function that adds a color bar.
Colors = tuple[list[Any], dict[str, Any], Callable[["Figure", Sequence["Axes"]], None]]


def choose_colors(clouds: Sequence[Cloud], spec: Specification) -> Colors:
    """Choose the colors of all dots, and what explains them."""
    if spec.shading == "frequency":
        return color_by_frequency(clouds, spec.frequency_label)
    if spec.shading == "class":
        return color_by_class(clouds)
    return [theme.color_of(cloud.style) for cloud in clouds], {}, lambda *_: None


def color_by_class(clouds: Sequence[Cloud]) -> Colors:
    from matplotlib.colors import to_rgba_array
    from matplotlib.lines import Line2D

    classes = to_rgba_array([theme.RARE.light, theme.POPULAR.light])
    colors = [
        theme.GRAY.light if cloud.popular is None else classes[cloud.popular.astype(int)]
        for cloud in clouds
    ]
    shown = {"frequent tokens": theme.POPULAR, "rare tokens": theme.RARE}
    if any(cloud.popular is None for cloud in clouds):
        shown["frequency not known"] = theme.GRAY
    dots = {
        name: Line2D([], [], ls="", marker="o", ms=4, mew=0, color=color.light)
        for name, color in shown.items()
    }
    return colors, dots, lambda *_: None


def color_by_frequency(clouds: Sequence[Cloud], label: str) -> Colors:
    """Return one scale for all clouds, which all have frequencies: logarithmic for counts."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize

    known = [cloud.frequency for cloud in clouds if cloud.frequency is not None]
    values = np.concatenate(known)
    by_rank = "rank" in label
    scale = ScalarMappable(
        (Normalize if by_rank else LogNorm)(float(values.min()), float(values.max())),
        # Ranks fall where counts rise: the light end means frequent tokens in both.
        frequency_steps(falling=by_rank),
    )

    def add_bar(figure: Figure, axes: Sequence[Axes]) -> None:
        figure.set_figheight(figure.get_figheight() + BAR)
        bar = figure.colorbar(scale, ax=list(axes), location="top", shrink=0.6, aspect=30, pad=0.03)
        bar.set_label(label)
        bar.outline.set_linewidth(0.4)

    return [scale.to_rgba(of) for of in known], {}, add_bar


def frequency_steps(*, falling: bool) -> ListedColormap:
    """Return a scale of few colors, which keeps pictures small; distinct under every color vision.

    It omits the light end, which is invisible on paper.
    """
    import matplotlib
    from matplotlib.colors import ListedColormap

    colors = matplotlib.colormaps["cividis"](np.linspace(0.0, 0.88, STEPS))
    return ListedColormap(colors[::-1] if falling else colors)


def fill_panels(figure: Figure, axes: Sequence[Axes], fitted: Sequence[View]) -> list[View]:
    """Show as much of the plane as fits into each panel, with equal scales on both axes.

    Labels take room from panels, and limits change labels: after two rounds ticks stay where they
    are, and after the third the layout does, so that scales are equal in every file format.
    """
    for i in range(ROUNDS):
        if i == ROUNDS - 1:
            keep_ticks(axes)
        figure.draw_without_rendering()
        views = []
        for ax, least in zip(axes, fitted, strict=True):
            box = ax.get_window_extent()
            view = widen(least, float(box.height / box.width))
            ax.set_xlim(view.left, view.right)
            ax.set_ylim(view.bottom, view.top)
            views.append(view)
    figure.set_layout_engine("none")
    return views


def widen(view: View, shape: float) -> View:
    """Return the view, widened to the height by width of its panel."""
    across, up = (view.left + view.right) / 2.0, (view.bottom + view.top) / 2.0
    half = max((view.right - view.left) / 2.0, (view.top - view.bottom) / 2.0 / shape)
    return View(across - half, across + half, up - shape * half, up + shape * half)


def draw_dots(ax: Axes, xy: FloatArray, colors: Any, side: float) -> None:
    """Draw every point as a dot in a picture inside the vector file.

    `side` is the approximate side of the panel in inches. Dots are drawn in a fixed random order:
    class by class, the last class would hide the others. Edges are not smoothed: few colors
    compress well.
    """
    from matplotlib.colors import to_rgba_array

    order = np.random.default_rng(0).permutation(len(xy))
    # Matplotlib smooths dots of a single color nevertheless.
    rgba = np.broadcast_to(to_rgba_array(colors), (len(xy), 4))
    ax.scatter(
        xy[order, 0],
        xy[order, 1],
        s=dot_size(len(xy), side),
        c=rgba[order],
        linewidths=0,
        antialiased=False,
        zorder=2,
    )
    # A picture that includes the white of the panel needs no transparency, which would double its
    # size. It ends with the dots: the axes and their labels, above them, stay lines and text.
    ax.set_rasterization_zorder(2.2)
    ax.set_axisbelow(False)


def draw_density(ax: Axes, xy: FloatArray, colors: Any, view: View, side: float) -> None:
    """Draw the mean color of the points in each cell, paler where they are few (logarithmic)."""
    from matplotlib.colors import to_rgba_array

    inside = view.holds(xy)
    rgb = np.broadcast_to(to_rgba_array(colors)[:, :3], (len(xy), 3))[inside]
    across = max(1, round(CELLS * side))
    down = max(1, round(across * (view.top - view.bottom) / (view.right - view.left)))
    low, size = (view.left, view.bottom), (view.right - view.left, view.top - view.bottom)
    place = np.minimum(
        ((xy[inside] - low) / size * (across, down)).astype(int), (across - 1, down - 1)
    )
    cell = place[:, 1] * across + place[:, 0]
    counts = np.bincount(cell, minlength=across * down)
    sums = [np.bincount(cell, channel, minlength=across * down) for channel in rgb.T]
    mean = np.stack(sums, axis=1) / np.maximum(counts, 1)[:, None]
    share = np.log1p(counts) / np.log1p(counts.max(initial=LEAST_DENSE))
    shade = np.where(counts > 0, LEAST_SHADE + (1.0 - LEAST_SHADE) * share, 0.0)[:, None]
    picture = (1.0 - shade + shade * mean).reshape(down, across, 3)
    # Few levels make the picture compress well.
    ax.imshow(
        np.round(picture * 31.0) / 31.0,
        extent=view.box,
        origin="lower",
        interpolation="nearest",
        aspect="auto",
        zorder=0.2,
    )


def dot_size(count: int, side: float) -> float:
    """Return the area of a dot in square points: smaller for many points, but always printable."""
    return float(np.clip(760.0 * side**2 / max(count, 1), 0.4, 6.0))
