"""Extremes of a smooth function over the unit sphere.

Projected gradient steps a ← (a − t·g)/‖a − t·g‖, where g is the part of the gradient tangent to the
sphere and t the step of Barzilai & Borwein (1988), t = ⟨s, s⟩/|⟨s, y⟩| for the last changes s of
the point and y of g. It is the inverse curvature along the last step, for which a quasi-Newton
method would store a matrix. Such steps are not monotone; a step to a value worse than the last few
is shortened (Grippo, Lampariello & Lucidi 1986). All directions share each evaluation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from embgeo.core.arrays import FloatArray, Mask

#: Values, shape (s,), and gradients, shape (d, s), at the columns of a (d, s) array.
Evaluate = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

MAX_PASSES = 200
#: A direction has converged if its next step promises less than this.
TOLERANCE = 1e-8
#: Number of last values that a step is compared with.
MEMORY = 5


def find_extremes(
    evaluate: Evaluate, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, Mask]:
    """Descend from the columns of `low` and climb from those of `high`.

    Parameters
    ----------
    evaluate : callable
    low, high : float64 arrays, shapes (d, s)
        Unit columns.

    Returns
    -------
    best : float64 array, shape (d, 2s)
        The local extremes from the columns of `low`, then from those of `high`.
    values : float64 array, shape (2s,)
    settled : bool array, shape (2s,)
        Whether the search ended before `MAX_PASSES` evaluations.

    Examples
    --------
    >>> weights = np.array([[3.0], [-4.0]])
    >>> starts = np.eye(2)
    >>> best, values, _ = find_extremes(lambda a: ((weights * a).sum(0), weights + 0 * a),
    ...                                 starts, starts)
    >>> best.T.round(3).tolist(), values.round(3).tolist()
    ([[-0.6, 0.8], [-0.6, 0.8], [0.6, -0.8], [0.6, -0.8]], [-5.0, -5.0, 5.0, 5.0])
    """
    down, at = low.shape[1], np.hstack([low, high])
    sign = np.where(np.arange(at.shape[1]) < down, 1.0, -1.0)
    value, gradient = evaluate(at)
    slope = sign * _tangent(at, gradient)
    # The first step turns a direction by about a tenth of a radian.
    step = 0.1 / np.maximum(_lengths(slope), 1e-300)
    recent = np.tile(sign * value, (MEMORY, 1))
    best_value, best = value.copy(), at.copy()
    for _ in range(MAX_PASSES):
        moving = np.flatnonzero(_promise(step, slope) > TOLERANCE)
        if not len(moving):
            break
        trial = _unit(at[:, moving] - step[moving] * slope[:, moving])
        trial_value, trial_gradient = evaluate(trial)
        gain = 1e-4 * _promise(step, slope)[moving]
        taken = sign[moving] * trial_value <= recent[:, moving].max(axis=0) - gain
        step[moving[~taken]] *= 0.25
        moved = moving[taken]
        new_slope = sign[moved] * _tangent(trial[:, taken], trial_gradient[:, taken])
        step[moved] = _next_step(trial[:, taken] - at[:, moved], new_slope - slope[:, moved])
        at[:, moved], value[moved] = trial[:, taken], trial_value[taken]
        slope[:, moved] = new_slope
        recent[:, moved] = np.vstack([recent[1:, moved], (sign * value)[moved]])
        better = sign * value < sign * best_value
        best_value[better], best[:, better] = value[better], at[:, better]
    return best, best_value, np.asarray(_promise(step, slope) <= TOLERANCE)


def _promise(step: FloatArray, slope: FloatArray) -> FloatArray:
    """The change that a step along the slope promises."""
    return np.asarray(step * np.square(_lengths(slope)))


def _next_step(turn: FloatArray, change: FloatArray) -> FloatArray:
    """The inverse curvature along the last step of each column (Barzilai & Borwein 1988)."""
    along = np.abs(np.einsum("ij,ij->j", turn, change))
    length = np.square(_lengths(turn))
    return np.asarray(np.clip(length / np.maximum(along, 1e-300), 1e-12, 1e12))


def _lengths(columns: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(columns, axis=0))


def _tangent(at: FloatArray, gradient: FloatArray) -> FloatArray:
    """The part of each gradient tangent to the sphere."""
    return np.asarray(gradient - at * np.einsum("ij,ij->j", at, gradient))


def _unit(columns: FloatArray) -> FloatArray:
    return columns / np.maximum(_lengths(columns), 1e-300)
