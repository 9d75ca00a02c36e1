"""Maps of tokens as vector paths without a picture: marks of some tokens, by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embgeo.charts import theme
from embgeo.charts.render.drawing import OutputStyle, add_legend, name_panels
from embgeo.charts.render.names import draw_names
from embgeo.charts.render.ticks import settle
from embgeo.charts.render.view import View, common_views, fit_view
from embgeo.charts.specification import Cloud, Specification

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: Marks on a map at most, and their radius as a share of its side.
MOST_MARKS, MARK = 1_500, 0.005


def draw_maps(
    figure: Figure,
    axes: Sequence[Axes],
    spec: Specification,
    output: OutputStyle,
    _handles: Mapping[str, Any],
) -> tuple[str, ...]:
    """Draw one map per panel; notes say which names have no room."""
    clouds = [panel.cloud for panel in spec.panels if panel.cloud is not None]
    points = [cloud.xy for cloud in clouds]
    views = [fit_view(xy) for xy in points] if spec.free_axes else common_views(points)
    for ax, view in zip(axes, views, strict=True):
        view.frame(ax)
    title = f"{MOST_MARKS:,} tokens at most in each map"
    add_legend(figure, *draw_marks(axes, clouds, views), title=title)
    settle(figure, axes)
    notes = []
    for ax, cloud, name in zip(axes, clouds, name_panels(spec), strict=True):
        if cloud.named:
            ax.apply_aspect()
            notes += draw_names(ax, cloud.named, output.write_name, cloud.xy, name)
    return tuple(notes)


def draw_marks(
    axes: Sequence[Axes], clouds: Sequence[Cloud], views: Sequence[View]
) -> tuple[list[Line2D], list[str]]:
    """Draw triangles for rare and squares for other tokens, one path each; their legend."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    known = all(cloud.popular is not None for cloud in clouds)
    rare, other = ("rare tokens", theme.RARE), ("frequent tokens", theme.POPULAR)
    kinds = [("^", 3, *rare), ("s", 4, *other)] if known else [("s", 4, "tokens", theme.GRAY)]
    for ax, cloud, view in zip(axes, clouds, views, strict=True):
        chosen = np.unique(np.linspace(0, len(cloud.xy) - 1, MOST_MARKS).astype(np.int64))
        classes = np.zeros(len(cloud.xy)) if cloud.popular is None or not known else cloud.popular
        for place, (_, corners, _, color) in enumerate(kinds):
            points = cloud.xy[chosen][classes[chosen] == place]
            points = points[view.holds(points)]
            turns = np.pi / 2 + (np.arange(corners) + 0.5 * (corners == 4)) * 2 * np.pi / corners
            mark = MARK * view.span * np.stack([np.cos(turns), np.sin(turns)], axis=1)
            outline = points[:, None, :] + np.concatenate([mark, mark[:1]])[None]
            codes = [Path.MOVETO, *[Path.LINETO] * (corners - 1), Path.CLOSEPOLY]
            path = Path(outline.reshape(-1, 2), codes * len(points))
            # The map sets the frame: measuring every corner takes as long as drawing them.
            ax.add_artist(PathPatch(path, facecolor=color.light, linewidth=0))
    handles = [
        Line2D([], [], ls="", marker=mark, ms=5, color=color.light) for mark, _, _, color in kinds
    ]
    return handles, [name for _, _, name, _ in kinds]
