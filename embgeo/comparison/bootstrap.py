"""Percentile bootstrap of means and of functions of means (Efron 1979)."""

from __future__ import annotations

import zlib

import numpy as np

from embgeo.core.arrays import FloatArray

RESAMPLES = 2_000
#: Independent draws are summed in this many groups first, and the groups are resampled.
GROUPS = 500
LEVEL = 0.95


def resampled_means(draws: FloatArray, seed: int) -> FloatArray:
    """Means of the columns over resamples, shape (RESAMPLES, c).

    `draws` has one independent draw per row, shape (n, c).
    """
    rng = np.random.default_rng([seed, zlib.crc32(b"bootstrap")])
    groups = np.array_split(draws, min(GROUPS, len(draws)))
    g = len(groups)
    sums = np.stack([part.sum(axis=0) for part in groups])
    sizes = np.array([float(len(part)) for part in groups])
    drawn = rng.integers(0, g, size=(RESAMPLES, g)) + g * np.arange(RESAMPLES)[:, None]
    times = np.bincount(drawn.ravel(), minlength=g * RESAMPLES).reshape(RESAMPLES, g)
    return np.asarray((times @ sums) / (times @ sizes)[:, None])


def interval(replicates: FloatArray) -> tuple[float, float]:
    """95 % percentile interval of a quantity from its values on the resamples."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail])
    return float(low), float(high)


def mean_interval(values: FloatArray, seed: int) -> tuple[float, float]:
    """95 % interval of the mean of independent draws."""
    return interval(resampled_means(values[:, None], seed)[:, 0])
