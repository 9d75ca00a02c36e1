"""Maps of tokens as vector paths without a picture: hexagons, or marks of their class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embgeo.charts import theme
from embgeo.charts.render.drawing import OutputStyle, add_legend, name_panels
from embgeo.charts.render.names import draw_names, explain_crowded
from embgeo.charts.render.view import View, common_views, fit_view
from embgeo.charts.specification import Cloud, Specification
from embgeo.core.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: Hexagons across the longer side of a map that stands alone, and of one among several.
ACROSS_ALONE, ACROSS = 52, 40
#: Marks on a map at most, and their radius as a share of its side.
MOST_MARKS, MARK = 1_500, 0.005


@dataclass(frozen=True, slots=True)
class Hexagons:
    """Occupied cells of a hexagonal lattice."""

    #: Shape (cells, 2).
    centers: FloatArray
    #: The cell of each point, shape (M,).
    members: npt.NDArray[np.int64]
    #: Points per cell.
    counts: FloatArray
    #: Distance between the centers of neighbors.
    width: float


def count_hexagons(xy: FloatArray, width: float) -> Hexagons:
    """Assign each point to the nearest center of a hexagonal lattice through the origin."""
    # The lattice is two rectangular ones, half a cell apart; the nearer candidate wins.
    step = np.array([width, width * np.sqrt(3.0)])
    first = np.rint(xy / step)
    second = np.floor(xy / step) + 0.5
    nearer = np.sum((xy - first * step) ** 2, axis=1) <= np.sum((xy - second * step) ** 2, axis=1)
    cell = np.where(nearer[:, None], first, second)
    doubled, members = np.unique((2 * cell).astype(np.int64), axis=0, return_inverse=True)
    members = members.reshape(-1)
    counts = np.bincount(members, minlength=len(doubled)).astype(np.float64)
    return Hexagons(doubled / 2 * step, members, counts, width)


def draw_maps(
    figure: Figure,
    axes: Sequence[Axes],
    spec: Specification,
    output: OutputStyle,
    _handles: Mapping[str, Any],
) -> tuple[str, ...]:
    """Draw one map per panel.

    Hexagons are colored by the number of tokens; where classes are known, some tokens are marks of
    their class.
    """
    from matplotlib.patches import Patch

    clouds = [panel.cloud for panel in spec.panels if panel.cloud is not None]
    points = [cloud.xy for cloud in clouds]
    views = [fit_view(xy) for xy in points] if spec.free_axes else common_views(points)
    if spec.shading == "class" and all(cloud.popular is not None for cloud in clouds):
        legend = draw_marks(axes, clouds, views)
        add_legend(figure, *legend, title=f"{MOST_MARKS:,} tokens at most in each map")
        return finish(figure, axes, spec, output)
    across = ACROSS_ALONE if len(clouds) == 1 else ACROSS
    cells = [
        count_hexagons(cloud.xy[view.holds(cloud.xy)], view.span / across)
        for cloud, view in zip(clouds, views, strict=True)
    ]
    colors, labels, levels = shade_density(cells)
    title = "tokens in a hexagon, from"
    for ax, view, cell, level in zip(axes, views, cells, levels, strict=True):
        view.frame(ax)
        draw_hexagons(ax, cell, level, colors)
    # One row of color patches above all maps.
    patches = [Patch(facecolor=color, edgecolor=color) for color in colors]
    add_legend(figure, patches, labels, title=title, handlelength=1.0, columnspacing=0.9)
    return finish(figure, axes, spec, output)


def finish(
    figure: Figure, axes: Sequence[Axes], spec: Specification, output: OutputStyle
) -> tuple[str, ...]:
    """Lay the maps out, and name tokens in their final places."""
    clouds = [panel.cloud for panel in spec.panels if panel.cloud is not None]
    named = any(cloud.named for cloud in clouds)
    engine = figure.get_layout_engine()
    if engine is not None:
        # Equal scales change the room that labels need: the layout needs a second round.
        engine.execute(figure)
        if named:
            figure.draw_without_rendering()
    if not named:
        return ()
    figure.set_layout_engine("none")
    notes = []
    for ax, cloud, name in zip(axes, clouds, name_panels(spec), strict=True):
        crowded = draw_names(ax, cloud.named, output.write_name, cloud.xy)
        notes += explain_crowded(name, crowded)
    return tuple(notes)


def draw_marks(
    axes: Sequence[Axes], clouds: Sequence[Cloud], views: Sequence[View]
) -> tuple[list[Line2D], list[str]]:
    """Draw triangles for rare and squares for frequent tokens, one path each; their legend."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    kinds = (("rare tokens", theme.RARE.light, 3), ("frequent tokens", theme.POPULAR.light, 4))
    for ax, cloud, view in zip(axes, clouds, views, strict=True):
        view.frame(ax)
        assert cloud.popular is not None
        chosen = np.unique(np.linspace(0, len(cloud.xy) - 1, MOST_MARKS).astype(np.int64))
        for place, (_, color, corners) in enumerate(kinds):
            points = cloud.xy[chosen][cloud.popular[chosen] == place]
            points = points[view.holds(points)]
            turns = np.pi / 2 + (np.arange(corners) + 0.5 * (corners == 4)) * 2 * np.pi / corners
            mark = MARK * view.span * np.stack([np.cos(turns), np.sin(turns)], axis=1)
            outline = points[:, None, :] + np.concatenate([mark, mark[:1]])[None]
            codes = [Path.MOVETO, *[Path.LINETO] * (corners - 1), Path.CLOSEPOLY]
            path = Path(outline.reshape(-1, 2), codes * len(points))
            ax.add_artist(PathPatch(path, facecolor=color, linewidth=0))
    handles = [
        Line2D([], [], ls="", marker=m, ms=5, color=kind[1])
        for m, kind in zip("^s", kinds, strict=True)
    ]
    return handles, [name for name, *_ in kinds]


Levels = tuple[tuple[str, ...], list[str], list[npt.NDArray[np.int64]]]


def shade_density(cells: Sequence[Hexagons]) -> Levels:
    """Return colors by the number of tokens, with the same meaning in all maps."""
    most = max(1.0, *(float(cell.counts.max(initial=0)) for cell in cells))
    # At most as many levels as there are different counts.
    n = int(min(len(theme.DENSITY), most))
    lower = np.unique(np.round(most ** (np.arange(n) / n)))
    labels = [f"{edge:,.0f}{'+' if i == len(lower) - 1 else ''}" for i, edge in enumerate(lower)]
    # Few levels are pale ones: a token alone is not as dark as a crowd.
    colors = tuple(color.light for color in theme.DENSITY[: len(lower)])
    return colors, labels, [np.searchsorted(lower, c.counts, side="right") - 1 for c in cells]


def draw_hexagons(
    ax: Axes, cells: Hexagons, levels: npt.NDArray[np.int64], colors: tuple[str, ...]
) -> None:
    """Fill every cell with the color of its level; cells of one level form one path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    angles = np.pi / 6 + np.arange(6) * np.pi / 3
    corners = np.stack([np.cos(angles), np.sin(angles)], axis=1) * cells.width / np.sqrt(3.0)
    codes = [Path.MOVETO, *[Path.LINETO] * 5, Path.CLOSEPOLY]
    for level, color in enumerate(colors):
        centers = cells.centers[levels == level]
        if not len(centers):
            continue
        outline = centers[:, None, :] + np.concatenate([corners, corners[:1]])[None]
        path = Path(outline.reshape(-1, 2), codes * len(centers))
        # The map sets the frame: measuring every corner takes as long as drawing them.
        ax.add_artist(PathPatch(path, facecolor=color, edgecolor=color, linewidth=0.25))
