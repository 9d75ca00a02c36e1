"""Scalar summaries of spectra and sums of rows."""

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


def compute_symmetry(
    mean: FloatArray, mean_norm: float, variances: FloatArray
) -> tuple[float, float | None]:
    """First and second moment of symmetry (Yokoi et al. 2024: degrees of centrality and isotropy).

    Parameters
    ----------
    mean : float64 array, shape (d,)
        E w of the rows.
    mean_norm : float
        E ‖w‖.
    variances : float64 array, shape (d,)
        Eigenvalues of the covariance of the rows.

    Returns
    -------
    first : float
        1 − ‖E w‖/E ‖w‖: 1 if the rows are centered, 0 if they are equal.
    second : float or None
        Entropy of the eigenvalues' shares over ln d: 1 if all are equal; None for one dimension or
        without variance.
    """
    first = 1.0 - float(np.linalg.norm(mean)) / mean_norm
    if len(variances) < 2 or not variances.sum() > 0:
        return max(first, 0.0), None
    return max(first, 0.0), compute_entropy(variances) / float(np.log(len(variances)))
