"""Scalar summaries of spectra and sums of rows, and eigenvalues of isotropic Gaussian rows.

For n independent rows of p coordinates of variance v, the eigenvalues of XᵀX fill the interval
v(√n ± √p)² (Marchenko & Pastur 1967), and the largest one, centered and scaled, follows the law of
Tracy & Widom (Johnstone 2001). Except for zero eigenvalues, both are symmetric in n and p.
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray


def compute_effective_rank(sigma: FloatArray) -> float:
    """exp of the entropy of σ/Σσ (Roy & Vetterli 2007)."""
    return float(np.exp(compute_entropy(sigma)))


def compute_entropy(weights: FloatArray) -> float:
    """−Σ p ln p of the weights' shares p."""
    p = weights / weights.sum()
    p = p[p > 0]
    return float(-np.sum(p * np.log(p)))


def average_cosine(total: FloatArray, m: int | float) -> float:
    """Mean cosine over ordered pairs i ≠ j of m unit rows, (‖Σŵ‖² − m)/(m(m − 1)), from Σŵ."""
    return (float(np.square(total).sum()) - m) / (m * (m - 1.0))


def compute_isoscore(variances: FloatArray) -> float:
    """Rudman et al. 2022, Algorithm 1, from the eigenvalues of the covariance, largest first.

    Parameters
    ----------
    variances : float64 array, shape (d,)
        d ≥ 2; the first one is not zero.

    Returns
    -------
    float
        In [0, 1]: 0 if one direction holds all the variance, 1 if all hold the same.
    """
    d = len(variances)
    # Relative to the largest: squares of eigenvalues could overflow.
    relative = variances / variances[0]
    scaled = np.sqrt(d) * relative / np.linalg.norm(relative)
    defect = np.linalg.norm(scaled - 1.0) / np.sqrt(2.0 * (d - np.sqrt(d)))
    phi = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d**2
    return float(np.clip((d * phi - 1.0) / (d - 1.0), 0.0, 1.0))


#: Mean, variance and skewness of the Tracy–Widom law of real matrices (Bornemann 2010).
TRACY_WIDOM = (-1.2065335745820, 1.6077810345810, 0.29346452408)
#: Points of the numerical integral of the Marchenko–Pastur density.
POINTS = 4001


def find_edge(n: int, p: int) -> float:
    """The largest eigenvalue of rows of unit variance in the limit: (√n + √p)²."""
    return float((np.sqrt(n) + np.sqrt(p)) ** 2)


def find_median(n: int, p: int) -> float:
    """Median of the nonzero eigenvalues of rows of unit variance in the limit.

    Examples
    --------
    >>> eigenvalues = np.linalg.eigvalsh(np.cov(np.random.default_rng(0).normal(size=(50, 2000))))
    >>> round(find_median(1999, 50) / 1999 / float(np.median(eigenvalues)), 2)
    1.0
    """
    low, high = float((np.sqrt(n) - np.sqrt(p)) ** 2), find_edge(n, p)
    # In t, with x = center − half·cos t, the density √((high − x)(x − low))/x has no steep ends.
    t = np.linspace(0.0, np.pi, POINTS)
    x = (low + high) / 2.0 - (high - low) / 2.0 * np.cos(t)
    density = np.sin(t) ** 2 / np.maximum(x, np.finfo(float).tiny)
    cumulated = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2.0)])
    return float(np.interp(cumulated[-1] / 2.0, cumulated, x))


def compute_largest_p(largest: float, n: int, p: int) -> float:
    """Probability that rows of unit variance have an eigenvalue this large.

    Centering and scale after Johnstone 2001, Theorem 1.1, for n + 1 centered rows. The law of Tracy
    & Widom is approximated by a shifted gamma distribution with the same three moments (Chiani
    2014), with a relative error of less than 0.01 for probabilities of at least 1e-3.

    Examples
    --------
    >>> round(compute_largest_p(find_edge(10_000, 100), 10_000, 100), 2)
    0.17
    """
    from scipy.special import gammaincc

    mean, variance, skewness = TRACY_WIDOM
    shape = 4.0 / skewness**2
    root = np.sqrt(n) + np.sqrt(p)
    spread = root * (1.0 / np.sqrt(n) + 1.0 / np.sqrt(p)) ** (1.0 / 3.0)
    standard = (largest - root**2) / spread
    steps = (standard - mean) / np.sqrt(variance / shape) + shape
    return float(gammaincc(shape, max(steps, 0.0)))


def estimate_level(eigenvalues: FloatArray, n: int, d: int) -> float:
    """Variance of a coordinate, from the median eigenvalue (Gavish & Donoho 2014).

    Parameters
    ----------
    eigenvalues : float64 array, shape (d,)
        Eigenvalues of the centered scatter, falling.
    n : int
        Degrees of freedom: the number of rows minus one.
    """
    return float(np.median(eigenvalues[: min(n, d)])) / find_median(max(n, d), min(n, d))
