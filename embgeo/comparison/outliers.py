"""Checkpoints of a run that do not fit their neighbors: another run's, or another step's.

Numbers over training move from step to step, and most of them keep their direction: a value lies
between those of its neighbors, or outside by about as much as neighbors differ. The measure of
that is robust, because outliers are part of it: the median over the run of how far a value lies
from the middle of its neighbors. A checkpoint is an outlier if it lies further outside than six
times this in the median of all curves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embgeo.core.arrays import FloatArray

#: Fewer points than nine have too few residuals to stay robust: one outlier touches three.
LEAST_POINTS = 9
MOST_DEVIATIONS = 6.0
#: At most one checkpoint in this many is taken for an outlier.
LEAST_TO_ONE = 5


def find_outliers(curves: Sequence[Sequence[float | None]]) -> tuple[int, ...]:
    """Places of the points that do not fit their neighbors, in most of the curves.

    Parameters
    ----------
    curves : sequence of sequence of float or None
        Values in the order of their steps. Curves with gaps take no part.
    """
    whole = [values for values in curves if all(value is not None for value in values)]
    if not whole:
        return ()
    table = np.array(whole, dtype=np.float64)
    left = list(range(table.shape[1]))
    found: list[int] = []
    # An outlier makes its neighbors look like some: the worst is taken out before the next.
    while len(left) >= LEAST_POINTS and len(found) < table.shape[1] // LEAST_TO_ONE:
        scores = score_points(table[:, left])
        worst = int(scores.argmax())
        if not scores[worst] > MOST_DEVIATIONS:
            break
        found.append(left.pop(worst + 1))
    return tuple(sorted(found))


def score_points(table: FloatArray) -> FloatArray:
    """How far each inner point lies outside of its neighbors' range; the median of all curves.

    Parameters
    ----------
    table : float64 array, shape (curves, m)

    Returns
    -------
    float64 array, shape (m − 2,)
    """
    before, value, after = table[:, :-2], table[:, 1:-1], table[:, 2:]
    usual = np.median(np.abs(value - (before + after) / 2), axis=1)
    outside = np.maximum(np.minimum(before, after) - value, value - np.maximum(before, after))
    moving = usual > 0
    if not moving.any():
        return np.zeros(value.shape[1])
    shares = np.maximum(outside[moving], 0.0) / usual[moving, None]
    return np.asarray(np.median(shares, axis=0))
