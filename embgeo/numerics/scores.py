"""How well scores separate two classes, or predict a target: each with its standard error.

The observations are taken as a sample, the classifier as given: an error says how far the number
would move with other observations, not with another fit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray
from embgeo.numerics.ranking import average_ranks

BoolArray = npt.NDArray[np.bool_]


def auc(score: FloatArray, positive: BoolArray) -> tuple[float, float]:
    """Area under the ROC curve: the chance that a positive scores above a negative.

    The area is the mean over positives of the share of negatives below them, V₁₀(i), and the mean
    over negatives of the share of positives above them, V₀₁(j); ties count one half. Its variance
    is var(V₁₀)/n₁ + var(V₀₁)/n₀ (DeLong, DeLong & Clarke-Pearson 1988). Both are read off ranks,
    in n·log n (Sun & Xu 2014).

    Examples
    --------
    >>> value, error = auc(np.array([3.0, 1.0, 2.0, 0.0]), np.array([True, True, False, False]))
    >>> value, round(error, 6)
    (0.75, 0.353553)
    """
    ranks = average_ranks(score)
    high, low = positive, ~positive
    n_high, n_low = int(high.sum()), int(low.sum())
    above = (ranks[high] - average_ranks(score[high])) / n_low
    below = 1.0 - (ranks[low] - average_ranks(score[low])) / n_high
    variance = np.var(above, ddof=1) / n_high + np.var(below, ddof=1) / n_low
    return float(above.mean()), float(np.sqrt(variance))


def balanced_accuracy(score: FloatArray, positive: BoolArray) -> tuple[float, float]:
    """Mean of both recalls of the rule score > 0, with the binomial error ½√(Σ r(1 − r)/n)."""
    recalls = [float(np.mean(score[positive] > 0)), float(np.mean(score[~positive] <= 0))]
    sizes = [int(positive.sum()), int((~positive).sum())]
    variance = sum(r * (1 - r) / n for r, n in zip(recalls, sizes, strict=True)) / 4.0
    return sum(recalls) / 2.0, float(np.sqrt(variance))


def balanced_loss(score: FloatArray, positive: BoolArray) -> tuple[float, float]:
    """−mean log P(own class) summed over both classes, from log-odds."""
    parts = (np.logaddexp(0.0, -score[positive]), np.logaddexp(0.0, score[~positive]))
    variance = sum(float(np.var(part, ddof=1)) / len(part) for part in parts)
    return float(sum(part.mean() for part in parts)), float(np.sqrt(variance))


def r_squared(target: FloatArray, predicted: FloatArray) -> tuple[float, float]:
    """Share of the target's variance that is predicted, 1 − Σ(y − ŷ)²/Σ(y − ȳ)².

    A ratio of two sums over the same observations: to first order its deviation is the mean of
    e_i − (1 − R²)·s_i over the mean of s_i, for squares e of the errors and s of the spread, which
    gives the error √(Σ(e_i − (1 − R²)·s_i)²)/Σs_i (the delta method, Cochran 1977, §2.11).

    Raises
    ------
    ZeroDivisionError
        If the target does not vary.
    """
    wrong = np.square(target - predicted)
    spread = np.square(target - target.mean())
    total = float(spread.sum())
    rest = float(wrong.sum()) / total
    return 1.0 - rest, float(np.sqrt(np.square(wrong - rest * spread).sum())) / total


def share_error(share: float, n: int) -> float:
    """Standard error of a sampled share: not 0 where all n agree (Agresti & Coull 1998)."""
    near = (share * n + 2.0) / (n + 4.0)
    return float(np.sqrt(near * (1.0 - near) / (n + 4.0)))


def quantile_error(values: FloatArray, q: float) -> float:
    """Standard error of a sample quantile.

    Half the distance between the order statistics one binomial deviation √(q(1 − q)/n) to either
    side: an estimate that needs no density (Maritz & Jarrett 1978).
    """
    n = len(values)
    deviation = np.sqrt(q * (1 - q) / n)
    low, high = np.quantile(values, [max(0.0, q - deviation), min(1.0, q + deviation)])
    return float(high - low) / 2.0
