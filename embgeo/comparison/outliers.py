"""Checkpoints that do not fit their neighbors: of another run, or of another step.

Most numbers keep their direction over training: a value lies between its neighbors, or outside by
about as much as neighbors differ. The scale is the median over the run of the distance of a value
from the middle of its neighbors, which is robust against outliers. A checkpoint is an outlier if,
in the median of all curves, it lies further outside than six times this scale.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embgeo.core.arrays import FloatArray

#: Fewer than nine points have too few residuals to be robust: one outlier affects three.
LEAST_POINTS = 9
MOST_DEVIATIONS = 6.0
#: At most one checkpoint in this many is an outlier.
LEAST_TO_ONE = 5


def find_outliers(curves: Sequence[Sequence[float | None]]) -> tuple[int, ...]:
    """Places of points that do not fit their neighbors in most curves.

    `curves` have their values in the order of steps; curves with gaps are ignored.
    """
    whole = [values for values in curves if all(value is not None for value in values)]
    if not whole:
        return ()
    table = np.array(whole, dtype=np.float64)
    left = list(range(table.shape[1]))
    found: list[int] = []
    # An outlier makes its neighbors look like outliers: the worst is removed before the next test.
    while len(left) >= LEAST_POINTS and len(found) < table.shape[1] // LEAST_TO_ONE:
        scores = score_points(table[:, left])
        worst = int(scores.argmax())
        if not scores[worst] > MOST_DEVIATIONS:
            break
        found.append(left.pop(worst + 1))
    return tuple(sorted(found))


def score_points(table: FloatArray) -> FloatArray:
    """How far each inner point lies outside the range of its neighbors, in the median of curves.

    `table` has one row per curve; the result has two entries fewer than a row.
    """
    before, value, after = table[:, :-2], table[:, 1:-1], table[:, 2:]
    usual = np.median(np.abs(value - (before + after) / 2), axis=1)
    outside = np.maximum(np.minimum(before, after) - value, value - np.maximum(before, after))
    moving = usual > 0
    if not moving.any():
        return np.zeros(value.shape[1])
    shares = np.maximum(outside[moving], 0.0) / usual[moving, None]
    return np.asarray(np.median(shares, axis=0))
