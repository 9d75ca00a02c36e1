"""Errors over tokens of numbers of the partition function (definitions, section 12).

A row adds exp⟨w, a⟩ to Z(a) and rotates the eigenvectors: with p = Vᵀw, v_k changes with the weight
of the row by Σ_{l≠k} p_k p_l/(λ_k − λ_l)·v_l. I2 depends on all eigenvectors, most of which have
close neighbors and rotate freely: it has no error. Neither have extremes over random directions.
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import isotropy as q
from embgeo.core.values import Quantity
from embgeo.metrics.row_sample import RowSample
from embgeo.numerics.row_errors import RowError, combine, participation_ratio

#: A sample may miss the longest rows: no row may add more than this share to Z.
LARGEST_SHARE = 0.01
#: An eigenvector is distinct if its Z is this many standard errors of log I1 from the next. It is
#: about a third for isotropic rows, where any eigenvector may have the smallest Z.
APART = 1.0


def find_covariance_errors(sample: RowSample) -> dict[Quantity, RowError | None]:
    """Error of IsoScore, (r − 1)/(d − 1) with the participation ratio r."""
    d = sample.rows.shape[1]
    if d < 2 or sample.centered is None:
        return {}
    ratio = sample.centered.find_error(participation_ratio)
    return {q.ISOSCORE: None if ratio is None else ratio.times(1.0 / (d - 1.0))}


def find_ratio_error(
    sample: RowSample, log_z: FloatArray, factors: FloatArray, longest: float, slope: float = 0.0
) -> RowError | None:
    """Error of log I1; None unless the eigenvectors of the smallest and largest Z are distinct.

    Parameters
    ----------
    sample : RowSample
    log_z : float64 array, shape (2, d)
        log Z at the eigenvectors and at their negatives.
    factors : float64 array, shape (r,)
        Factors of the sampled rows in Z.
    longest : float
        Norm of the longest row, multiplied by its factor.
    slope : float
        Rate at which the logarithm of all factors falls with the mean norm.
    """
    m, r, p = sample.m, len(sample.rows), sample.along
    if r < m and longest - float(log_z.min()) > np.log(LARGEST_SHARE):
        return None
    values = sample.shared.eigen.values
    norms = np.linalg.norm(sample.rows, axis=1)
    shorter = -slope * (norms - sample.shared.norms.mean()) / m
    sides = []
    for at in (int(log_z.argmin()), int(log_z.argmax())):
        sign, k = (1.0 if at < len(values) else -1.0), at % len(values)
        exponents = sign * factors * p[:, k]
        weights = np.exp(exponents - log_z.flat[at])
        gradient = m / r * ((weights * factors) @ p)
        apart = values[k] - values
        apart[k] = np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            turned = sign * p[:, k] * (p @ (gradient / apart))
        sides.append(weights + turned + m / r * float(weights @ exponents) * shorter)
    found = combine(sides[0] - sides[1], 0.0, m)
    order = np.sort(log_z, axis=None)
    gap = min(order[1] - order[0], order[-1] - order[-2])
    return None if found is None or gap < APART * found.error else found


def find_random_error(
    sample: RowSample, log_z: FloatArray, directions: FloatArray
) -> RowError | None:
    """Error of the relative standard deviation s of Z over k directions and their negatives.

    s² is quadratic in the weights of the rows. `log_z` has the shape (2, k), `directions` (d, k).
    """
    m, r = sample.m, len(sample.rows)
    longest = float(sample.shared.norms.max())
    if r < m and longest - float(log_z.min()) > np.log(LARGEST_SHARE):
        return None
    top = float(log_z.max())
    level = top + float(np.log(np.exp(log_z - top).mean()))
    z = np.exp(log_z - level).ravel()
    spread = float(z.std())
    if not spread > 0:
        return None
    along = sample.rows @ directions
    terms = np.exp(np.hstack([along, -along]) - level)
    moved = terms - z * terms.mean(axis=1, keepdims=True)
    moved -= moved.mean(axis=0)
    first = moved @ (z - 1.0) / (len(z) * spread)
    second = (moved @ moved.T / len(z) - np.outer(first, first)) / spread
    own = np.diagonal(second)
    others = float(np.square(second).sum() - np.square(own).sum())
    pairs = 0.5 * others * m**2 / (r * max(r - 1.0, 1.0))
    return combine(first - 0.5 * own, pairs, m)
