"""Scores of classifiers, regressions and ranks, with errors over rows.

The observations are a sample and the classifier is fixed: an error is about other observations, not
about another fit. Each score function returns the number and the influence of each observation on
its deviation. The root of the sum of squared influences is the standard error; with differences of
influences it is the error of a paired difference.
"""

import math
import sys
from collections.abc import Sequence

import numpy as np

from embgeo.core.arrays import FloatArray, Mask

Judged = tuple[float, FloatArray]


def average_ranks(values: FloatArray) -> FloatArray:
    """Return ranks from 1; equal values share the mean of their ranks.

    Examples
    --------
    >>> average_ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2.0)[inverse])


def spearman(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return Spearman's ρ, the correlation of the ranks, along the last axis.

    NaN where a side is constant.

    Examples
    --------
    >>> float(spearman(np.array([1.0, 2.0, 9.0]), np.array([5.0, 6.0, 7.0])))
    1.0
    """
    center = (a.shape[-1] + 1) / 2.0
    x, y = (np.apply_along_axis(average_ranks, -1, v) - center for v in (a, b))
    with np.errstate(invalid="ignore"):
        return np.asarray((x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1)))


def error_of(influence: FloatArray) -> float:
    """Return the standard error from the influences of all observations."""
    return float(np.sqrt(influence @ influence))


def mean_influence(values: FloatArray) -> FloatArray:
    """Return the influence of each of n ≥ 2 values on their mean; the squares sum to s²/n.

    Examples
    --------
    >>> round(error_of(mean_influence(np.array([1.0, 2.0, 3.0, 6.0]))), 6)
    1.080123
    """
    n = len(values)
    return np.asarray((values - values.mean()) / np.sqrt(n * (n - 1.0)))


def auc(score: FloatArray, positive: Mask) -> Judged:
    """Return the area under the ROC curve: the probability that a positive scores above a negative.

    The area is the mean over positives of the share of negatives below them, V₁₀(i), and the mean
    over negatives of the share of positives above them, V₀₁(j); ties count one half. Its variance
    is var(V₁₀)/n₁ + var(V₀₁)/n₀ (DeLong, DeLong & Clarke-Pearson 1988). Both come from ranks in
    n·log n time (Sun & Xu 2014). Each class needs at least two rows.

    Examples
    --------
    >>> value, parts = auc(np.array([3.0, 1.0, 2.0, 0.0]), np.array([True, True, False, False]))
    >>> value, round(error_of(parts), 6)
    (0.75, 0.353553)
    """
    ranks = average_ranks(score)
    high, low = positive, ~positive
    n_high, n_low = int(high.sum()), int(low.sum())
    above = (ranks[high] - average_ranks(score[high])) / n_low
    below = 1.0 - (ranks[low] - average_ranks(score[low])) / n_high
    influence = np.empty(len(score))
    influence[high], influence[low] = mean_influence(above), mean_influence(below)
    return float(above.mean()), influence


def learned_noise(area: float, positives: int, negatives: int, d: int) -> float:
    """Return the share of the squared length of a fitted linear classifier that is noise.

    For two normal classes at a distance Δ (in standard deviations within them) with n₁ and n₀
    observations in d dimensions, Δ̂² is Δ² + b with b = d(1/n₁ + 1/n₀). Along the fit, new
    observations are Δ²/√(Δ² + b) apart, which follows from the area A = Φ(distance/√2) (asymptotics
    of the linear discriminant, Raudys & Young 2004).

    Examples
    --------
    >>> learned_noise(0.5, 100, 400, 16), round(learned_noise(0.99, 800, 3200, 64), 3)
    (1.0, 0.009)
    """
    from scipy.special import ndtri

    square = 2.0 * float(ndtri(min(max(area, 0.5), 1.0 - 1e-12))) ** 2
    return share_of_noise(square, d * (1.0 / positives + 1.0 / negatives))


def share_of_noise(seen: float, noise: float) -> float:
    """Return the share b/(s + b) of noise b in a fit, from the visible signal s²/(s + b).

    Examples
    --------
    >>> share_of_noise(0.0, 0.1), share_of_noise(1.0, 0.0), round(share_of_noise(0.5, 0.5), 3)
    (1.0, 0.0, 0.382)
    """
    signal = (seen + np.sqrt(seen * (seen + 4.0 * noise))) / 2.0
    return float(noise / (signal + noise))


def share_error(share: float, n: float) -> float:
    """Return the standard error of a sampled share, not 0 if all n agree (Agresti & Coull 1998)."""
    near = (share * n + 2.0) / (n + 4.0)
    return float(np.sqrt(near * (1.0 - near) / (n + 4.0)))


def two_sided(z: float, freedom: float | None = None) -> float:
    """Return the probability that a deviate is at least as far from 0 as `z`.

    A standard normal one, or one of Student's t with these degrees of freedom. What underflows is
    the smallest normal number: no probability is 0.

    Examples
    --------
    >>> round(two_sided(-1.959964), 6), round(two_sided(2.13145, 15), 6)
    (0.05, 0.05)
    """
    if freedom is None:
        return max(math.erfc(abs(z) / math.sqrt(2.0)), sys.float_info.min)
    from scipy.special import stdtr

    return max(2.0 * float(stdtr(freedom, -abs(z))), sys.float_info.min)


def adjust_holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values after Holm's step-down correction (Holm 1979).

    Rejecting p-values below α rejects any true null hypothesis with probability at most α, for any
    dependence between the tests.

    Examples
    --------
    >>> adjust_holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(steps, 1.0)
    return [float(value) for value in adjusted]
