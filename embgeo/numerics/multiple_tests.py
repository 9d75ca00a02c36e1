"""p-values of one or several tests."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def two_sided(z: float) -> float:
    """Probability that a standard normal deviate is at least as far from 0 as `z`.

    Examples
    --------
    >>> round(two_sided(-1.959964), 6)
    0.05
    """
    return math.erfc(abs(z) / math.sqrt(2.0))


def mcnemar(first: int, second: int) -> float:
    """Exact two-sided p-value of McNemar's test that two classifiers are right equally often.

    Parameters
    ----------
    first, second : int
        Cases that only the first and only the second classifier get right.

    Examples
    --------
    >>> round(mcnemar(10, 2), 6)
    0.038574
    """
    from scipy.special import bdtr

    return min(1.0, 2.0 * float(bdtr(min(first, second), first + second, 0.5)))


def adjust_holm(p_values: Sequence[float]) -> list[float]:
    """p-values after Holm's step-down correction (Holm 1979).

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
