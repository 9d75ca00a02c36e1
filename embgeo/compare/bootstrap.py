"""Percentile bootstrap of means and of what is made of means (Efron 1979)."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from embgeo.stats.base import FloatArray

RESAMPLES = 2_000
#: Independent draws are summed in so many groups first, and the groups are resampled.
GROUPS = 500
LEVEL = 0.95


def mean_interval(values: FloatArray, seed: int) -> tuple[float, float]:
    """95 % interval of the mean of independent draws."""
    low, high, _ = interval(values[:, None], lambda means: means[:, 0], seed)
    return low, high


def interval(
    draws: FloatArray, made: Callable[[FloatArray], FloatArray], seed: int
) -> tuple[float, float, float]:
    """Interval and standard error of a function of the means of several columns.

    Parameters
    ----------
    draws : float64 array, shape (n, c)
        One independent draw a row.
    made : callable
        From means, shape (r, c), to the quantity, shape (r,).
    seed : int

    Returns
    -------
    low, high, standard_error : float
    """
    rng = np.random.default_rng([seed, zlib.crc32(b"bootstrap")])
    groups = np.stack(
        [part.mean(axis=0) for part in np.array_split(draws, min(GROUPS, len(draws)))]
    )
    weights = np.array([len(part) for part in np.array_split(np.arange(len(draws)), len(groups))])
    drawn = rng.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), size=RESAMPLES)
    share = drawn * weights
    means = (share / share.sum(axis=1, keepdims=True)) @ groups
    replicates = made(means)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail])
    return float(low), float(high), float(replicates.std(ddof=1))
