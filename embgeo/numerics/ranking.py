"""Ranks with ties shared, and what follows from them."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray


def average_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1; equal values share the mean of their ranks.

    Examples
    --------
    >>> average_ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2.0)[inverse])


def spearman(a: FloatArray, b: FloatArray) -> float:
    """Spearman's ρ: the correlation of the ranks.

    Examples
    --------
    >>> round(spearman(np.array([1.0, 2.0, 9.0]), np.array([5.0, 6.0, 7.0])), 12)
    1.0
    """
    x, y = (average_ranks(v) - (len(v) + 1) / 2.0 for v in (a, b))
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))
