"""Ranks with ties shared, and what follows from them."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray


def average_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2.0)[inverse])


def spearman(a: FloatArray, b: FloatArray) -> float:
    """Spearman's ρ: the correlation of the ranks."""
    x, y = (average_ranks(v) - (len(v) + 1) / 2.0 for v in (a, b))
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))
