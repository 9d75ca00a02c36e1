"""The convex combination of a few points that is nearest to the origin.

The problem min ‖Pᵀu‖, u ≥ 0, Σu = 1 is equivalent to non-negative least squares (Wolfe 1976): min
‖Aw − b‖ over w ≥ 0, with columns (p_i, 1) and b = (0, 1), has the solution w = s·u for some s > 0.
Scaled to Σu = 1, its optimality conditions Aᵀ(b − Aw) ≤ 0 mean that no point lies below the plane
through the nearest one. It is solved with the active set of Lawson & Hanson (1974, chapter 23) and
an updated QR factorization: a Gram matrix would lose half the digits if the origin is near.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray

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
            changed = entered(state, entering, self._columns[entering])
            if changed is not None and np.linalg.norm(changed.residual) < length:
                self._state = changed
                banned[:] = False
            else:  # useful only because of rounding
                banned[entering] = True


def entered(state: _State, place: int, column: FloatArray) -> _State | None:
    """The feasible state with one more point; None if the point depends on the others."""
    from scipy.linalg import qr_delete, qr_insert, solve_triangular

    size = len(state.at)
    rest = away_from(state.q, column)
    if np.linalg.norm(rest) <= 8.0 * EPS * np.linalg.norm(column):
        return None
    if size:
        q, r = narrowed(*qr_insert(state.q, state.r, column, size, which="col", check_finite=False))
    else:
        length = float(np.linalg.norm(column))
        q, r = column[:, None] / length, np.array([[length]])
    at, weights = np.append(state.at, place), np.append(state.weights, 0.0)
    while len(at):
        # Qᵀb is the last row of Q.
        solution = np.asarray(solve_triangular(r, q[-1], check_finite=False), dtype=np.float64)
        if solution.min() > 0:
            return _State(at, solution, q, r, residual(q))
        weights, leaving = towards(solution, weights)
        kept = np.arange(len(at)) != leaving
        at, weights = at[kept], weights[kept]
        q, r = narrowed(*qr_delete(q, r, leaving, which="col", check_finite=False))
    return None


def narrowed(q: npt.NDArray[Any], r: npt.NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Q and R cut to the number of columns of R."""
    size = r.shape[1]
    return np.asarray(q[:, :size], np.float64), np.asarray(r[:size], np.float64)


def towards(solution: FloatArray, weights: FloatArray) -> tuple[FloatArray, int]:
    """Weights moved towards the solution until the first is zero, and its position."""
    negative = solution <= 0
    steps = np.full(len(weights), np.inf)
    np.divide(weights, weights - solution, out=steps, where=negative & (weights > solution))
    steps[negative & (weights <= solution)] = 0.0
    leaving = int(np.argmin(steps))
    moved = weights + min(1.0, float(steps[leaving])) * (solution - weights)
    return np.maximum(moved, 0.0), leaving


def residual(q: FloatArray) -> FloatArray:
    """The part of b orthogonal to the columns of Q."""
    target = np.zeros(len(q))
    target[-1] = 1.0
    return away_from(q, target)


def away_from(q: FloatArray, vector: FloatArray) -> FloatArray:
    """The part orthogonal to the columns of Q, by two projections."""
    once = vector - q @ (vector @ q)
    return np.asarray(once - q @ (once @ q))
