"""Distance from the origin to the convex hull of many points, with a certificate either way.

Column generation: let x be the point nearest to the origin in the hull of some of the points
(`nearest_point`). Every h of the whole hull satisfies ‖h‖ ≥ min_i ⟨h_i, x⟩/‖x‖, so that

    min_i ⟨h_i, x/‖x‖⟩ ≤ distance ≤ ‖x‖,

with equality exactly if no point lies on the origin's side of the plane through x normal to x
(Wolfe 1976). A pass over all points evaluates the lower bound and adds the points farthest on the
origin's side. The search ends when the upper bound no longer falls.

A certificate verifies the result independently of the search: a direction v with max_i ⟨h_i, v⟩ < 0
separates the origin from the hull; convex weights with Σ λ_i h_i = 0 show that it is inside.

The problem min ‖Pᵀu‖, u ≥ 0, Σu = 1 is equivalent to non-negative least squares (Wolfe 1976): min
‖Aw − b‖ over w ≥ 0, with columns (p_i, 1) and b = (0, 1), has the solution w = s·u for some s > 0.
Scaled to Σu = 1, its optimality conditions Aᵀ(b − Aw) ≤ 0 mean that no point lies below the plane
through the nearest one. SciPy's ``nnls`` finds the active points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask

EPS = float(np.finfo(float).eps)

#: An iterator over all points in blocks, with their row numbers, at each call.
Blocks = Callable[[], Iterator[tuple[IntArray, FloatArray]]]

#: Largest relative gap between the bounds of a known distance.
GAP = 1e-6
#: The same for points of coarse rounding.
COARSE_GAP = 1e-3
#: A combination of this length, relative to the longest point, is the origin up to rounding.
ZERO = 1e-12
MAX_PASSES = 200
#: Most points kept between passes, in multiples of d + 1: points without weight may enter again.
POOL = 8


@dataclass(frozen=True, slots=True)
class Hull:
    """Position and distance of the origin, with a certificate."""

    #: Position of the origin. "outside": every point has ⟨direction, h⟩ ≤ −margin < 0. "inside":
    #: the convex weights combine the points to (numerically) the origin.
    side: Literal["outside", "inside", "undecided"]
    #: Bounds of the distance from the origin to the hull.
    lower: float
    upper: float
    #: A unit vector; the uniformly negative direction if the origin is outside; shape (d,).
    direction: FloatArray
    #: −max⟨direction, h_i⟩: positive exactly if the direction is uniformly negative.
    margin: float
    #: Points of positive weight; shape (s,).
    rows: IntArray
    #: Convex weights: positive, sum 1; shape (s,).
    weights: FloatArray
    residual: float
    longest: float
    passes: int
    #: Number of a point that is the origin.
    origin: int | None = None


def distance_to_hull(
    blocks: Blocks, d: int, rounding: float = EPS, repeated: Mask | None = None
) -> Hull:
    """Return the point of the hull nearest to the origin, from blocks of finite points.

    `blocks`: ``blocks()`` gives all points, at least one; their squares must not overflow.
    `rounding`: relative rounding of the stored entries. Points that fill a plane up to rounding
    have countless faces at nearly the same distance, which are not all searched. `repeated`: by row
    number, whether a point equals an earlier one and is skipped.

    Examples
    --------
    >>> corners = np.array([[1.0, 2.0], [1.0, -1.0], [3.0, 0.0]])
    >>> hull = distance_to_hull(lambda: iter([(np.arange(3), corners)]), 2)
    >>> hull.side, round(hull.upper, 9), (hull.direction.round(9) + 0.0).tolist()
    ('outside', 1.0, [-1.0, 0.0])
    """
    seen = _overview(blocks, d, repeated)
    if seen.origin is not None:
        row, point = np.array([seen.origin]), np.zeros((1, d))
        return _certified(blocks, row, point, np.ones(1), np.eye(1, d)[0], seen, 1)
    rows, points = _lowest(blocks, seen.mean, 2 * d + 2, seen.repeated)
    points /= seen.longest
    active, held, weights = rows[:1], points[:1], np.ones(1)
    upper, lower, direction = np.inf, -np.inf, np.eye(1, d)[0]
    passes = 0
    while passes < MAX_PASSES:
        passes += 1
        try:
            at, convex, normal = nearest_point(points)
        except RuntimeError:  # too many steps: the certificate decides what is known so far
            break
        shorter = float(np.linalg.norm(convex @ points[at]))
        # Exact arithmetic never lengthens it; if rounding does, the search has converged.
        if shorter >= upper:
            break
        upper, active, held, weights = shorter, rows[at], points[at], convex
        if upper <= ZERO or not normal.any():
            break
        normal /= np.linalg.norm(normal)
        far, far_points = _lowest(blocks, normal, 2 * d, seen.repeated)
        margin = float(far_points[0] @ normal) / seen.longest
        if margin > lower:
            lower, direction = margin, -normal
        if len(rows) > POOL * (d + 1):
            rows, points = rows[at], points[at]
        fresh = ~np.isin(far, rows)
        enough = max(GAP * upper, min(4.0 * rounding, COARSE_GAP * upper))
        known = lower > 0 and upper - lower <= enough
        if known or not fresh.any():
            break
        rows = np.concatenate([rows, far[fresh]])
        points = np.vstack([points, far_points[fresh] / seen.longest])
    return _certified(blocks, active, held * seen.longest, weights, direction, seen, passes)


def nearest_point(points: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the points that span the nearest one, their convex weights, and the plane's normal.

    `points`: shape (m, d), of a length of at most 1. The normal points from the origin to the
    nearest point and is not scaled.
    """
    from scipy.optimize import nnls

    columns = np.c_[points, np.ones(len(points))].T
    target = np.eye(1, len(columns), len(columns) - 1)[0]
    weights, _ = nnls(columns, target, maxiter=20 * len(points) + 100)
    active = np.flatnonzero(weights)
    # From the residual, which is orthogonal to the active columns to all digits at any length: the
    # sum of weighted points is not, and Qᵀb is the last row of Q. Projected twice, for rounding.
    q = np.linalg.qr(columns[:, active])[0]
    residual = target - q @ q[-1]
    residual -= q @ (residual @ q)
    return active, weights[active] / weights.sum(), -residual[:-1]


def _certified(
    blocks: Blocks,
    rows: IntArray,
    points: FloatArray,
    weights: FloatArray,
    direction: FloatArray,
    seen: _Overview,
    passes: int,
) -> Hull:
    """Return the result, decided by its certificate only."""
    residual = float(np.linalg.norm(weights @ points))
    highest = max(float((block @ direction).max()) for _, block in blocks())
    # Rounding of the products: a smaller margin is not a certificate.
    doubt = 4.0 * points.shape[1] * EPS * seen.longest
    side: Literal["outside", "inside", "undecided"] = "undecided"
    if -highest > doubt:
        side = "outside"
    elif residual <= ZERO * seen.longest:
        side = "inside"
    return Hull(
        side=side,
        lower=max(-highest, 0.0),
        upper=residual,
        direction=direction,
        margin=-highest,
        rows=rows,
        weights=weights,
        residual=residual,
        longest=seen.longest,
        passes=passes,
        origin=seen.origin,
    )


@dataclass(frozen=True, slots=True)
class _Overview:
    """Mean point, length of the longest, repeated points, and the number of a zero point."""

    mean: FloatArray
    longest: float
    repeated: Mask
    origin: int | None


def _overview(blocks: Blocks, d: int, repeated: Mask | None) -> _Overview:
    total, longest, n, last, origin = np.zeros(d), 0.0, 0, 0, None
    for index, points in blocks():
        zero = ~points.any(axis=1)
        if origin is None and zero.any():
            origin = int(index[np.argmax(zero)])
        total += points.sum(axis=0)
        longest = max(longest, float(np.square(points).sum(axis=1).max()) ** 0.5)
        n, last = n + len(index), int(index[-1])
    if repeated is None:
        repeated = np.zeros(last + 1, dtype=bool)
    return _Overview(total / n, longest, repeated, origin)


def _lowest(
    blocks: Blocks, direction: FloatArray, count: int, repeated: Mask
) -> tuple[IntArray, FloatArray]:
    """Return the `count` distinct points of smallest ⟨h, direction⟩."""
    values: list[FloatArray] = []
    index: list[IntArray] = []
    points: list[FloatArray] = []
    for numbers, block in blocks():
        products = block @ direction
        first = np.flatnonzero(~repeated[numbers])
        take = first[np.argsort(products[first], kind="stable")[:count]]
        values.append(products[take])
        index.append(numbers[take])
        points.append(block[take])
        if len(values) == 8:
            best = np.argsort(np.concatenate(values), kind="stable")[:count]
            values = [np.concatenate(values)[best]]
            index = [np.concatenate(index)[best]]
            points = [np.concatenate(points)[best]]
    best = np.argsort(np.concatenate(values), kind="stable")[:count]
    return np.concatenate(index)[best], np.concatenate(points)[best]
