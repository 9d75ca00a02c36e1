"""Standard errors over rows, from derivatives of a number by the weights of rows.

Let q_i be the derivative of a number f by the weight of row i, and h_ij the second derivative by
the weights of rows i and j. For m independent rows the variance of f is Σq² (the infinitesimal
jackknife, Efron 1982, §6). Because q is evaluated at the rows themselves, it counts pairs twice;
their part is ½Σh² (Hoeffding 1948; :mod:`embgeo.numerics.pair_errors` is for means over pairs).
Without row i, f is smaller by q_i − ½h_ii.

For a function of the eigenvalues λ of a scatter matrix Σxxᵀ with first and second derivatives g and
H, and the row's coordinates p = Vᵀx, q = Σ_k g_k p_k² and h = p²ᵀ(B + H)p², where
B_kl = (g_k − g_l)/(λ_k − λ_l) are the divided differences of the gradient, 0 on the diagonal
(Daleckii & Krein 1965). Each :class:`SpectralFunction` is of that kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.numerics.scores import widen
from embgeo.numerics.spectra import compute_entropy

#: Between eigenvalues nearer than this share of the largest, a derivative replaces the divided
#: difference.
NEAR = 1e-6
#: Least effective number of rows of a variance (squared sum of squares over sum of fourth powers).
LEAST_EFFECTIVE = 4.0
#: Least distance of the first eigenvalue from the second in standard errors, to keep their order.
APART = 3.0


@dataclass(frozen=True, slots=True)
class RowError:
    """Standard error over rows, and the influence of each sampled row.

    Attributes
    ----------
    error : float
    influence : float64 array, shape (r,)
        The squares sum to the variance, plus a contribution of pairs of rows.
    conservative : bool
        Whether single rows have no visible influence, so that the error tends to be too large.
    noise : float64 array, shape (r,), or None
        The squares sum to the contribution of pairs of rows to `influence`.
    """

    error: float
    influence: FloatArray
    conservative: bool = False
    noise: FloatArray | None = None

    def times(self, factor: float) -> RowError:
        """The error of the number times a constant."""
        noise = None if self.noise is None else factor * self.noise
        return RowError(abs(factor) * self.error, factor * self.influence, self.conservative, noise)


def combine(parts: FloatArray, pairs: float, m: int) -> RowError | None:
    """The error from the influences of all m rows or a uniform sample.

    Parameters
    ----------
    parts : float64 array, shape (r,)
        q_i − ½h_ii.
    pairs : float
        ½Σh² over all pairs of the m rows.
    m : int

    Returns
    -------
    RowError or None
        None if a few rows hold the variance.
    """
    away = (parts - parts.mean()) * np.sqrt(m / len(parts))
    squares = np.square(away)
    total = float(squares.sum())
    if total**2 < LEAST_EFFECTIVE * float(squares @ squares):
        return None
    variance = max(total - pairs, pairs)
    error = widen(float(np.sqrt(variance)), away)
    return RowError(error, away, variance < 2.0 * pairs)


@dataclass(frozen=True, slots=True)
class SpectralFunction:
    """First and second derivatives of a function of eigenvalues, shapes (k,) and (k, k)."""

    gradient: FloatArray
    hessian: FloatArray


class RowsOfSpectrum:
    """Some rows along the eigenvectors of a scatter matrix, in units of its largest eigenvalue.

    The unit, because the scale may be far from 1, has no effect on functions of eigenvalue shares.

    Parameters
    ----------
    values : float64 array, shape (k,)
        Nonzero eigenvalues, falling.
    along : float64 array, shape (r, k)
        Coordinates p of the rows.
    m : int
        Number of rows of the matrix.
    """

    def __init__(self, values: FloatArray, along: FloatArray, m: int) -> None:
        self.values, self.m = values / values[0], m
        self.squares = np.square(along / np.sqrt(values[0]))
        self.signs = np.where(np.arange(len(along)) % 2 == 0, 1.0, -1.0)
        # Two digits are enough for the noise.
        self.single = (along / np.sqrt(values[0])).astype(np.float32)
        self.signed = self.single.T @ (self.signs[:, None].astype(np.float32) * self.single)
        apart = self.values[:, None] - self.values
        self._near = np.nonzero(np.abs(apart) <= NEAR)
        apart[self._near] = np.inf
        self._inverse = np.divide(1.0, apart, out=apart)

    def find_error(self, derive: Callable[[FloatArray], SpectralFunction]) -> RowError | None:
        """The error of a function of the eigenvalues with the derivatives of `derive`.

        The contribution of pairs is that of normal rows with variances λ/m along the eigenvectors:
        Σh² is (2Σ(Bλλᵀ)² + 4Σ(Hλλᵀ)²)/m², entry by entry. With a sign s for each row, the squares
        of Σ_j s_j h_ij contain those of h_ij while products of different rows cancel: this is the
        noise of differences.
        """
        of = derive(self.values)
        g, second = of.gradient, of.hessian
        divided = g[:, None] - g
        divided *= self._inverse
        k, j = self._near
        divided[self._near] = np.where(k == j, 0.0, second[k, k] - second[k, j])
        energy = np.square(self.values)
        turned = np.vecdot(self.single @ np.float32(divided * self.signed), self.single)
        noise = turned + self.squares @ (second @ np.diagonal(self.signed))
        whole = divided + second
        np.square(divided, out=divided)
        pairs = energy @ divided @ energy
        np.square(second, out=divided)
        pairs = (pairs + 2.0 * (energy @ divided @ energy)) / self.m**2
        own = np.vecdot(self.squares @ whole, self.squares)
        noise -= self.signs * own
        found = combine(self.squares @ g - 0.5 * own, float(pairs), self.m)
        scale = self.m / len(noise) * np.sqrt(0.5)
        return None if found is None else replace(found, noise=scale * noise)

    @property
    def first_is_separate(self) -> bool:
        """Whether the first eigenvalue is clearly above the second one."""
        if len(self.values) < 2:
            return True
        error = np.sqrt(self.m) * float(np.std(self.squares[:, 0] - self.squares[:, 1]))
        return bool(self.values[0] - self.values[1] > APART * error)


def entropy(weights: FloatArray) -> SpectralFunction:
    """−Σ p ln p of the weights' shares p."""
    total, h = float(weights.sum()), compute_entropy(weights)
    g = -(np.log(weights / total) + h) / total
    second = np.add.outer(-g / total, 1.0 / total**2 - g / total)
    return SpectralFunction(g, subtract_diagonal(second, 1.0 / (weights * total)))


def root_entropy(values: FloatArray) -> SpectralFunction:
    """The entropy of the roots σ of the eigenvalues."""
    sigma = np.sqrt(values)
    of_roots, slope = entropy(sigma), 0.5 / sigma
    g, second = of_roots.gradient * slope, of_roots.hessian
    second *= slope
    second *= slope[:, None]
    return SpectralFunction(g, subtract_diagonal(second, g / (2.0 * values)))


def participation_ratio(values: FloatArray) -> SpectralFunction:
    """(Σλ)²/Σλ²."""
    total, squares = float(values.sum()), float(values @ values)
    g = 2.0 * total / squares - 2.0 * total**2 / squares**2 * values
    along = -4.0 * total / squares**2 * values
    second = np.add.outer(along, along + 2.0 / squares)
    second += np.multiply.outer(8.0 * total**2 / squares**3 * values, values)
    diagonal = np.full(len(values), 2.0 * total**2 / squares**2)
    return SpectralFunction(g, subtract_diagonal(second, diagonal))


def subtract_diagonal(matrix: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Subtract a diagonal matrix in place."""
    matrix[np.diag_indices(len(matrix))] -= diagonal
    return matrix


def top_share(values: FloatArray) -> SpectralFunction:
    """λ₁/Σλ, if no other eigenvalue is near the first."""
    total, top = float(values.sum()), np.eye(1, len(values))[0]
    g = (top - values[0] / total) / total
    second = (2.0 * values[0] / total - top[:, None] - top) / total**2
    return SpectralFunction(g, second)
