"""The part of a plane that a map shows, with equal scales on both axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embgeo.charts import theme
from embgeo.core.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Share of points at each end of an axis that may lie outside the picture.
OUTSIDE = 0.001
#: An arrow has at least this length, in points.
SHORTEST_ARROW = 6.0
#: A cloud that is narrower than this share of the picture with the origin is a sliver in it.
SLIVER = 0.5
#: All maps have the same scale unless the widest is this many times the narrowest.
MOST_RATIO = 4.0


@dataclass(frozen=True, slots=True)
class View:
    """A rectangle of the plane."""

    left: float
    right: float
    bottom: float
    top: float

    @property
    def span(self) -> float:
        """The longer side."""
        return max(self.right - self.left, self.top - self.bottom)

    @property
    def box(self) -> tuple[float, float, float, float]:
        return self.left, self.right, self.bottom, self.top

    def holds(self, xy: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which points lie inside."""
        x, y = xy[:, 0], xy[:, 1]
        inside = (self.left <= x) & (x <= self.right) & (self.bottom <= y) & (y <= self.top)
        return np.asarray(inside)

    def frame(self, ax: Axes) -> None:
        """Set an equal aspect; draw the axes through the origin, and a cross at it."""
        ax.set_aspect("equal")
        ax.set_xlim(self.left, self.right)
        ax.set_ylim(self.bottom, self.top)
        draw_origin(ax)


def draw_origin(ax: Axes) -> None:
    """Draw the axes through the origin, and a cross at it."""
    ax.axhline(0.0, color=theme.GRAY.light, lw=0.6, zorder=0.5)
    ax.axvline(0.0, color=theme.GRAY.light, lw=0.6, zorder=0.5)
    ax.plot([0.0], [0.0], marker="+", ms=7, mew=1.2, color=theme.INK.light, zorder=3)


def draw_mean(ax: Axes, mean: tuple[float, float] | None) -> None:
    """Draw an arrow from the origin, if it is longer than its head."""
    if mean is not None and is_seen(ax, mean):
        arrow: Any = {"arrowstyle": "-|>", "color": theme.INK.light, "lw": 1.2}
        arrow |= {"shrinkA": 0, "shrinkB": 0}
        ax.annotate("", mean, (0.0, 0.0), arrowprops=arrow, zorder=4)


def is_seen(ax: Axes, mean: tuple[float, float]) -> bool:
    """Tell whether an arrow from the origin to this point is longer than its head."""
    tip, tail = ax.transData.transform([mean, (0.0, 0.0)])
    length = float(np.hypot(*(tip - tail)))
    return length > SHORTEST_ARROW * ax.get_figure(root=True).dpi / 72.0  # type: ignore[union-attr]


def fit_view(xy: FloatArray, outside: float = OUTSIDE) -> View:
    """Fit nearly all points, and the origin: a map shows whether they surround it."""
    low, high = np.quantile(xy, [outside, 1.0 - outside], axis=0)
    return surround(np.minimum(low, 0.0), np.maximum(high, 0.0))


def fit_cloud(xy: FloatArray) -> View | None:
    """Fit nearly all points by themselves; None if the view with the origin shows them well."""
    view = surround(*np.quantile(xy, [OUTSIDE, 1.0 - OUTSIDE], axis=0))
    return view if view.span < SLIVER * fit_view(xy).span else None


def surround(low: FloatArray, high: FloatArray, flat: float = 0.35, margin: float = 0.04) -> View:
    """Return the view of a box between two corners, with a margin.

    A cloud flatter than `flat` needs a picture of some height.
    """
    span = max(float(np.max(high - low)), np.finfo(np.float64).tiny)
    room = np.maximum(0.0, flat * span - (high - low)) / 2.0 + margin * span
    low, high = low - room, high + room
    return View(float(low[0]), float(high[0]), float(low[1]), float(high[1]))


def fit_focus(xy: FloatArray) -> View:
    """Fit a view to all of these points, with room for names around them."""
    return surround(xy.min(axis=0), xy.max(axis=0), 0.6, 0.15)


def common_views(clouds: Sequence[FloatArray]) -> list[View]:
    """Return the same view for all maps, or one each if their scales are far apart."""
    views = [fit_view(xy) for xy in clouds]
    return [unite(views)] * len(views) if share_scale(views) else views


def unite(views: Sequence[View]) -> View:
    """Return the smallest rectangle around all of them."""
    return View(
        min(view.left for view in views),
        max(view.right for view in views),
        min(view.bottom for view in views),
        max(view.top for view in views),
    )


def share_scale(views: Sequence[View]) -> bool:
    """Tell whether one scale shows all of them well."""
    spans = [view.span for view in views]
    return max(spans) <= MOST_RATIO * min(spans)
