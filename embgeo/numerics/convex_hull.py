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
through the nearest one. It is solved with the active set of Lawson & Hanson (1974, chapter 23) and
an updated QR factorization: a Gram matrix would lose half the digits if the origin is near.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray, Mask

EPS = float(np.finfo(float).eps)
#: A point enters if it is below the supporting plane by this share of the plane's distance.
TOLERANCE = 1e-9


class _State(NamedTuple):
    """Active points, their weights w, and Q and R of their columns (Q with as many columns)."""

    at: IntArray
    weights: FloatArray
    q: FloatArray
    r: FloatArray
    residual: FloatArray


class NearestPoint:
    """The active points among the `points` so far, shape (m, d), and their weights.

    Points should have a length of at most 1. Every step shortens the residual or is undone, and the
    least-squares weights depend on the active points only: no active set occurs twice.
    """

    def __init__(self, d: int) -> None:
        self.points: FloatArray = np.zeros((0, d))
        self._columns: FloatArray = np.zeros((0, d + 1))
        empty = np.zeros((d + 1, 0))
        target = np.zeros(d + 1)
        target[d] = 1.0
        self._state = _State(np.zeros(0, dtype=np.int64), np.zeros(0), empty, empty[:0], target)

    def add(self, points: FloatArray) -> None:
        self.points = np.vstack([self.points, points])
        self._columns = np.vstack([self._columns, np.c_[points, np.ones(len(points))]])

    def keep_active(self) -> IntArray:
        """Drop points without weight; return the former positions of the others."""
        at = self._state.at
        self.points, self._columns = self.points[at], self._columns[at]
        self._state = self._state._replace(at=np.arange(len(at)))
        return at

    @property
    def active(self) -> IntArray:
        """Positions of the points of positive weight."""
        return self._state.at

    @property
    def weights(self) -> FloatArray:
        """Their convex weights."""
        return np.asarray(self._state.weights / self._state.weights.sum())

    @property
    def direction(self) -> FloatArray:
        """Towards the nearest point: the normal of its supporting plane, not scaled.

        From the residual, which is orthogonal to the active columns to all digits at any length.
        The sum of weighted points is not.
        """
        return -self._state.residual[:-1]

    def solve(self) -> None:
        """Add points until none is below the supporting plane."""
        banned = np.zeros(len(self.points), dtype=bool)
        for _ in range(20 * len(self.points) + 100):
            state = self._state
            length = float(np.linalg.norm(state.residual))
            depth = self._columns @ state.residual
            depth[state.at] = -np.inf
            depth[banned] = -np.inf
            entering = int(np.argmax(depth))
            if depth[entering] <= TOLERANCE * length**2 + 8.0 * EPS * length:
                return
            changed = add_point(state, entering, self._columns[entering])
            if changed is not None and np.linalg.norm(changed.residual) < length:
                self._state = changed
                banned[:] = False
            else:  # useful only because of rounding
                banned[entering] = True


def add_point(state: _State, place: int, column: FloatArray) -> _State | None:
    """Return the feasible state with one more point; None if the point depends on the others."""
    from scipy.linalg import qr_delete, qr_insert, solve_triangular

    size = len(state.at)
    rest = project_out(state.q, column)
    if np.linalg.norm(rest) <= 8.0 * EPS * np.linalg.norm(column):
        return None
    if size:
        q, r = narrow(*qr_insert(state.q, state.r, column, size, which="col", check_finite=False))
    else:
        length = float(np.linalg.norm(column))
        q, r = column[:, None] / length, np.array([[length]])
    at, weights = np.append(state.at, place), np.append(state.weights, 0.0)
    while len(at):
        # Qᵀb is the last row of Q.
        solution = np.asarray(solve_triangular(r, q[-1], check_finite=False), dtype=np.float64)
        if solution.min() > 0:
            return _State(at, solution, q, r, residual(q))
        weights, leaving = move_weights(solution, weights)
        kept = np.arange(len(at)) != leaving
        at, weights = at[kept], weights[kept]
        q, r = narrow(*qr_delete(q, r, leaving, which="col", check_finite=False))
    return None


def narrow(q: npt.NDArray[Any], r: npt.NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Return Q and R, cut to the number of columns of R."""
    size = r.shape[1]
    return np.asarray(q[:, :size], np.float64), np.asarray(r[:size], np.float64)


def move_weights(solution: FloatArray, weights: FloatArray) -> tuple[FloatArray, int]:
    """Return weights moved towards the solution until the first is zero, and its position."""
    negative = solution <= 0
    steps = np.full(len(weights), np.inf)
    np.divide(weights, weights - solution, out=steps, where=negative & (weights > solution))
    steps[negative & (weights <= solution)] = 0.0
    leaving = int(np.argmin(steps))
    moved = weights + min(1.0, float(steps[leaving])) * (solution - weights)
    return np.maximum(moved, 0.0), leaving


def residual(q: FloatArray) -> FloatArray:
    """Return the part of b orthogonal to the columns of Q."""
    target = np.zeros(len(q))
    target[-1] = 1.0
    return project_out(q, target)


def project_out(q: FloatArray, vector: FloatArray) -> FloatArray:
    """Return the part orthogonal to the columns of Q, by two projections."""
    once = vector - q @ (vector @ q)
    return np.asarray(once - q @ (once @ q))


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
    search = NearestPoint(d)
    rows, points = _lowest(blocks, seen.mean, 2 * d + 2, seen.repeated)
    search.add(points / seen.longest)
    upper, lower, direction = np.inf, -np.inf, np.eye(1, d)[0]
    passes = 0
    while passes < MAX_PASSES:
        passes += 1
        search.solve()
        if len(rows) > POOL * (d + 1):
            rows = rows[search.keep_active()]
        shorter = float(np.linalg.norm(search.weights @ search.points[search.active]))
        # Exact arithmetic never lengthens it; if rounding does, the search has converged.
        if shorter >= upper:
            break
        upper = shorter
        if upper <= ZERO or not search.direction.any():
            break
        normal = search.direction / np.linalg.norm(search.direction)
        far, far_points = _lowest(blocks, normal, 2 * d, seen.repeated)
        margin = float(far_points[0] @ normal) / seen.longest
        if margin > lower:
            lower, direction = margin, -normal
        fresh = ~np.isin(far, rows)
        enough = max(GAP * upper, min(4.0 * rounding, COARSE_GAP * upper))
        known = lower > 0 and upper - lower <= enough
        if known or not fresh.any():
            break
        rows = np.concatenate([rows, far[fresh]])
        search.add(far_points[fresh] / seen.longest)
    points, rows = search.points[search.active] * seen.longest, rows[search.active]
    return _certified(blocks, rows, points, search.weights, direction, seen, passes)


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
