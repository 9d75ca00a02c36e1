"""The part of a plane that a map shows, with equal scales on both axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embgeo.charts import theme
from embgeo.charts.specification import NamedPoint, Ring
from embgeo.core.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Share of points at each end of an axis that may lie outside the picture.
OUTSIDE = 0.001
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
        """Which points lie inside."""
        x, y = xy[:, 0], xy[:, 1]
        inside = (self.left <= x) & (x <= self.right) & (self.bottom <= y) & (y <= self.top)
        return np.asarray(inside)

    def frame(self, ax: Axes) -> None:
        """Equal aspect, the axes through the origin, and a cross at it."""
        ax.set_aspect("equal")
        ax.set_xlim(self.left, self.right)
        ax.set_ylim(self.bottom, self.top)
        draw_origin(ax)


def draw_origin(ax: Axes) -> None:
    """The axes through the origin, and a cross at it."""
    ax.axhline(0.0, color=theme.GRAY.light, lw=0.6, zorder=0.5)
    ax.axvline(0.0, color=theme.GRAY.light, lw=0.6, zorder=0.5)
    ax.plot([0.0], [0.0], marker="+", ms=7, mew=1.2, color=theme.INK.light, zorder=3)


def draw_ring(
    ax: Axes, view: View, ring: Ring | None, write: Callable[[str], str], *, inside: bool = False
) -> None:
    """The ring, and a line to its label: above the panel, or in a corner inside it.

    `write` makes hostile text drawable.
    """
    if ring is None:
        return
    from matplotlib.patches import Circle

    ink = theme.INK.light
    ax.add_patch(
        Circle((ring.x, ring.y), ring.radius, fill=False, edgecolor=ink, linewidth=1.0, zorder=3)
    )
    above = not inside or ring.y > (view.bottom + view.top) / 2.0
    right = ring.x > (view.left + view.right) / 2.0
    names = ", ".join(write(name) for name in ring.examples)
    ax.annotate(
        f"{ring.label}\n{names}".rstrip(),
        (ring.x, ring.y + (ring.radius if above else -ring.radius)),
        xytext=(float(right), float(above)),
        textcoords="axes fraction",
        ha="right" if right else "left",
        va="top" if above and inside else "bottom",
        color=ink,
        fontsize="small",
        zorder=3,
        arrowprops={"arrowstyle": "-", "color": ink, "linewidth": 0.6, "shrinkB": 0.0},
    )


def draw_names(
    ax: Axes, view: View, named: Sequence[NamedPoint], write: Callable[[str], str]
) -> None:
    """A mark at each token, and its name on the side with more room, cut at the panel's edge."""
    for point in named:
        left = point.x > (view.left + view.right) / 2.0
        below = point.y > (view.bottom + view.top) / 2.0
        ax.annotate(
            write(point.name),
            (point.x, point.y),
            xytext=(-4 if left else 4, -3 if below else 3),
            textcoords="offset points",
            ha="right" if left else "left",
            va="top" if below else "bottom",
            clip_on=True,
            fontsize="small",
            color=theme.INK.light,
            bbox={
                "boxstyle": "square,pad=0.1",
                "facecolor": "white",
                "alpha": 0.75,
                "linewidth": 0,
            },
            zorder=4,
        )
        ax.plot(
            [point.x],
            [point.y],
            marker="o",
            ms=3,
            mfc="none",
            mec=theme.INK.light,
            mew=0.8,
            zorder=4,
        )


def fit_view(xy: FloatArray, outside: float = OUTSIDE) -> View:
    """Nearly all points, and the origin: a map shows whether they surround it."""
    low, high = np.quantile(xy, [outside, 1.0 - outside], axis=0)
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    span = max(float(np.max(high - low)), np.finfo(np.float64).tiny)
    margin = 0.04 * span
    # A flat cloud needs a picture of some height.
    short = np.maximum(0.0, 0.35 * span - (high - low)) / 2.0
    low, high = low - short - margin, high + short + margin
    return View(float(low[0]), float(high[0]), float(low[1]), float(high[1]))


def common_views(clouds: Sequence[FloatArray]) -> list[View]:
    """The same view for all maps, or one each if their scales are far apart."""
    views = [fit_view(xy) for xy in clouds]
    return [unite(views)] * len(views) if share_scale(views) else views


def unite(views: Sequence[View]) -> View:
    """The smallest rectangle around all of them."""
    return View(
        min(view.left for view in views),
        max(view.right for view in views),
        min(view.bottom for view in views),
        max(view.top for view in views),
    )


def share_scale(views: Sequence[View]) -> bool:
    """Whether one scale shows all of them well."""
    spans = [view.span for view in views]
    return max(spans) <= MOST_RATIO * min(spans)
