"""Intrinsic dimensions from distances to nearest points."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray

#: Share of the smallest ratios in the fitted form of TwoNN.
USED = 0.9


def fit_two_nn(log_ratios: FloatArray) -> float:
    """Slope of −ln(1 − F) on ln(r₂/r₁) through the origin, without the largest tenth.

    Facco et al. 2017, §Methods: the empirical F of the sorted ratios is i/n.

    Parameters
    ----------
    log_ratios : float64 array, shape (n,)
        Not negative; n ≥ 3.

    Returns
    -------
    float
        Infinite if all ratios in use are 1.

    Examples
    --------
    >>> u = (np.arange(1000) + 0.5) / 1000  # quantiles of the law in 4 dimensions
    >>> round(fit_two_nn(-np.log(1 - u) / 4), 1)
    4.0
    """
    n = len(log_ratios)
    x = np.sort(log_ratios)[: max(2, int(USED * n))]
    y = -np.log1p(-np.arange(1, len(x) + 1) / n)
    squares = float(x @ x)
    return float(x @ y) / squares if squares > 0 else float("inf")


def compute_inverse_dimensions(distances: FloatArray) -> FloatArray:
    """1/m of each point: the mean of ln(T_k/T_j) over its k − 1 nearer neighbors.

    Levina & Bickel 2005, Eq. 8. Inverse values are to be averaged over points (MacKay & Ghahramani
    2005).

    Parameters
    ----------
    distances : float64 array, shape (n, k)
        Rising, positive and finite.
    """
    return np.asarray(np.log(distances[:, -1:] / distances[:, :-1]).mean(axis=1))
