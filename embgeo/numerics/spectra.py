"""Scalar summaries of spectra and sums of rows, and eigenvalues of isotropic Gaussian rows.

For n isotropic rows in d dimensions of variance 1 each, the eigenvalues of XᵀX fill the interval
(√n ± √d)² (Marchenko & Pastur 1967), and the largest one, centered and scaled, follows the law of
Tracy & Widom (Johnstone 2001). Except for zero eigenvalues, both are symmetric in n and d.
"""

from typing import NamedTuple

import numpy as np

from embgeo.core.arrays import FloatArray


def compute_effective_rank(sigma: FloatArray) -> float:
    """Compute exp of the entropy of σ/Σσ (Roy & Vetterli 2007)."""
    return float(np.exp(compute_entropy(sigma)))


def compute_entropy(weights: FloatArray) -> float:
    """Return −Σ p ln p of the weights' shares p."""
    p = weights / weights.sum()
    p = p[p > 0]
    return float(-np.sum(p * np.log(p)))


def average_cosine(total: FloatArray, m: int | float) -> float:
    """Get mean cosine over ordered pairs i ≠ j of m unit rows, (‖Σŵ‖² − m)/(m(m − 1)), from Σŵ."""
    if m < 2:  # there is no pair
        return 0.0
    return (float(np.square(total).sum()) - m) / (m * (m - 1.0))


def compute_isoscore(variances: FloatArray) -> float:
    """Compute IsoScore (Rudman et al. 2022, Algorithm 1) from eigenvalues, largest first.

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
#: Least variance of the standardized eigenvalue, where few dimensions leave hardly any.
LEAST_VARIANCE = 0.2


class LargestLaw(NamedTuple):
    """The law of the largest eigenvalue of d·ŴᵀŴ for n isotropic unit rows in d dimensions.

    A gamma distribution with the moments of Tracy & Widom (Chiani 2014), of the shape k, in steps
    of `step` above `start`.
    """

    start: float
    step: float
    shape: float


def find_largest_law(n: int, d: int) -> LargestLaw:
    """Center and scale of Johnstone & Ma 2012, which are right to second order.

    Unit rows have a fixed trace, so that the eigenvalue varies less than that of Gaussian rows: by
    its share of the variance of their trace, 2/(nd) of its square. Of simulated isotropic rows 0.2
    to 3% have a p-value below 5%, the fewer the fewer dimensions there are (docs/errors.md).
    """
    large, small = np.sqrt(max(n, d) - 0.5), np.sqrt(min(n, d) - 0.5)
    root = large + small
    center, scale = root**2, root * (1.0 / large + 1.0 / small) ** (1.0 / 3.0)
    mean, variance, skewness = TRACY_WIDOM
    variance = max(variance - 2.0 * (center / scale) ** 2 / (n * d), LEAST_VARIANCE)
    shape = 4.0 / skewness**2
    step = np.sqrt(variance / shape)
    return LargestLaw(center + scale * (mean - shape * step), scale * step, shape)


def compute_largest_p(largest: float, n: int, d: int) -> float:
    """Compute the probability that isotropic unit rows have an eigenvalue of d·ŴᵀŴ this large.

    Examples
    --------
    >>> round(compute_largest_p(1748.5, 1000, 100), 3)
    0.05
    """
    from scipy.special import gammaincc

    law = find_largest_law(n, d)
    return float(gammaincc(law.shape, max((largest - law.start) / law.step, 0.0)))
