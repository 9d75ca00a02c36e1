"""Power laws of a spectrum: the slope over ranks, and the exponent of the tail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray

#: Least size of a tail; any law fits fewer values.
LEAST_TAIL = 10
#: Most candidates for the lower end of the tail, evenly by rank.
ENDS = 32


@dataclass(frozen=True, slots=True)
class TailFit:
    """The tail of the largest values that is nearest to a power law.

    Attributes
    ----------
    alpha : float
        Exponent of the density x^(−α).
    distance : float
        Kolmogorov–Smirnov distance of the tail from that law.
    size : int
        Number of values in the tail.
    """

    alpha: float
    distance: float
    size: int


def fit_slope(values: FloatArray) -> float:
    """α of λ_k ∝ k^(−α): least squares of ln λ_k on ln k, each rank k weighted by 1/k.

    The weights are even over ln k, as in Stringer et al. 2019 and α-ReQ (Agrawal et al. 2022).

    Parameters
    ----------
    values : float64 array, shape (r,)
        Positive, falling; r ≥ 2.

    Examples
    --------
    >>> round(fit_slope(np.arange(1.0, 50.0) ** -1.5), 6)
    1.5
    """
    rank = np.arange(1, len(values) + 1, dtype=np.float64)
    x, y, weight = np.log(rank), np.log(values), 1.0 / rank
    x = x - np.average(x, weights=weight)
    return -float(np.sum(weight * x * y) / np.sum(weight * x * x))


def fit_tail(values: FloatArray) -> TailFit | None:
    """Maximum-likelihood fits for several lower ends, and the one of least distance.

    Clauset, Shalizi & Newman 2009, §3.1 (Eq. 3.1) and §3.3.

    Parameters
    ----------
    values : float64 array, shape (d,)
        Positive, falling.

    Returns
    -------
    TailFit or None
        None for fewer than `LEAST_TAIL` values, or if all are equal.
    """
    d = len(values)
    if d < LEAST_TAIL:
        return None
    logs = np.log(values)
    sizes = np.unique(np.linspace(LEAST_TAIL, d, min(ENDS, d - LEAST_TAIL + 1)).astype(np.int64))
    best: TailFit | None = None
    for size in sizes.tolist():
        above = logs[:size] - logs[size - 1]
        if not above[0] > 0:
            continue
        rate = size / float(above.sum())
        # The share of a falling tail above its j-th value is between (j − 1)/n and j/n.
        survival = np.exp(-rate * above)
        steps = np.arange(size + 1) / size
        distance = float(
            np.maximum(np.abs(survival - steps[1:]), np.abs(survival - steps[:-1])).max()
        )
        if best is None or distance < best.distance:
            best = TailFit(1.0 + rate, distance, size)
    return best


def compute_tail_p(values: FloatArray, fit: TailFit, draws: int, rng: np.random.Generator) -> float:
    """Share of samples of the fitted law that are farther from their own fit.

    Clauset, Shalizi & Newman 2009, §4.1: values below the tail are drawn from the data, values of
    the tail from the law. A small share is evidence against a power law.
    """
    d, lowest = len(values), float(values[fit.size - 1])
    body, farther = values[fit.size :], 0
    for _ in range(draws):
        tail = int(rng.binomial(d, fit.size / d)) if len(body) else d
        drawn = lowest * (1.0 - rng.random(tail)) ** (-1.0 / (fit.alpha - 1.0))
        sample = np.concatenate([drawn, rng.choice(body, d - tail)]) if d > tail else drawn
        again = fit_tail(-np.sort(-sample))
        farther += again is not None and again.distance >= fit.distance
    return farther / draws
