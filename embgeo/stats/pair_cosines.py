"""Cosines of pairs of rows: a sample that is kept, or every pair in a fine histogram."""

from __future__ import annotations

from typing import Self

import numpy as np

from embgeo.core.arrays import FloatArray, WorkingArray
from embgeo.stats.statistic import Statistic, concatenated

#: Bins of the fine histogram over [−1, 1]; quantiles read from it are good to 8e-6.
FINE_BINS = 2**18
#: Cosines counted at a time: what is made of them stays in the cache.
CHUNK = 2**17


class PairSample(Statistic):
    """The cosines themselves, for a sample or for all pairs of a small matrix."""

    STATE = ("_values",)

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._values: list[FloatArray] = []

    def add(self, cosines: FloatArray) -> None:
        if cosines.size:
            self._values.append(np.clip(cosines.ravel(), -1.0, 1.0))

    def merge(self, other: Self) -> None:
        self._values += other._values

    def values(self) -> FloatArray:
        return np.sort(concatenated(self._values))


class PairHistogram(Statistic):
    """Every pair, counted: share of positive cosines, extremes, quantiles, exp-mean.

    Attributes
    ----------
    n, positive : int
    lowest, highest : float
    exp_sum : float
        Σ exp(4·cos − 4), from which the uniformity follows (exponents are never positive).
    counts : int array, shape (FINE_BINS,)
    """

    STATE = ("n", "positive", "lowest", "highest", "exp_sum", "counts")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.n = 0
        self.positive = 0
        self.lowest = np.inf
        self.highest = -np.inf
        self.exp_sum = 0.0
        self.counts = np.zeros(FINE_BINS, dtype=np.int64)

    def add(self, cosines: WorkingArray, lowest: float | None = None) -> None:
        """Count these; `lowest`, where it is known to more digits than they have."""
        values = np.ravel(cosines)
        if not values.size:
            return
        self.n += values.size
        self.positive += int(np.count_nonzero(values > 0))
        least = float(values.min()) if lowest is None else lowest
        self.lowest = min(self.lowest, max(least, -1.0))
        self.highest = min(max(self.highest, float(values.max())), 1.0)
        half = values.dtype.type(FINE_BINS / 2)
        for start in range(0, values.size, CHUNK):
            part = np.clip(values[start : start + CHUNK], -1.0, 1.0)
            at = part * half
            at += half
            np.minimum(at, FINE_BINS - 1, out=at)
            self.counts += np.bincount(at.astype(np.int64), minlength=FINE_BINS)
            part *= 4
            part -= 4
            self.exp_sum += float(np.exp(part, out=part).sum(dtype=np.float64))

    def merge(self, other: Self) -> None:
        self.n += other.n
        self.positive += other.positive
        self.lowest = min(self.lowest, other.lowest)
        self.highest = max(self.highest, other.highest)
        self.exp_sum += other.exp_sum
        self.counts += other.counts

    def quantile(self, q: float) -> float:
        """The q-quantile, good to half a bin (4e-6)."""
        at = int(np.searchsorted(np.cumsum(self.counts), q * self.n))
        center = (min(at, FINE_BINS - 1) + 0.5) * 2.0 / FINE_BINS - 1.0
        return min(max(center, self.lowest), self.highest)
