"""Points in the plane counted in hexagons, as vector paths: no raster, one path a level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hexagons:
    """Occupied cells of a hexagonal lattice.

    Attributes
    ----------
    centers : FloatArray
        Shape (cells, 2).
    members : int array
        The cell of each point, shape (M,).
    counts : FloatArray
        Points a cell.
    width : float
        Distance between the centers of neighbors.
    """

    centers: FloatArray
    members: npt.NDArray[np.int64]
    counts: FloatArray
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
        # The frame is set by the map: to measure every corner takes as long as to draw them.
        ax.add_artist(PathPatch(path, facecolor=color, edgecolor=color, linewidth=0.25))
