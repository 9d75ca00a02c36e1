"""Standard errors over rows, from derivatives of a number by the weights of rows.

Let q_i be the derivative of a number f by the weight of row i, and h_ij the second derivative by
the weights of rows i and j. For m independent rows the variance of f is Σq² (the infinitesimal
jackknife, Efron 1982, §6). Because q is evaluated at the rows themselves, it counts pairs twice;
their part is ½Σh² (Hoeffding 1948).
Without row i, f is smaller by q_i − ½h_ii.

For a function of the eigenvalues λ of a scatter matrix Σxxᵀ with first and second derivatives g and
H, and the row's coordinates p = Vᵀx, q = Σ_k g_k p_k² and h = p²ᵀ(B + H)p², where
B_kl = (g_k − g_l)/(λ_k − λ_l) are the divided differences of the gradient, 0 on the diagonal
(Daleckii & Krein 1965). Each :class:`SpectralFunction` is of that kind.

The mean U of a symmetric kernel over the pairs of m independent rows is a U-statistic (Hoeffding
1948). With ζ₂ the variance of the kernel and ζ₁ the covariance of two pairs that share a row,

    var U = (4(m − 2)·ζ₁ + 2·ζ₂) / (m(m − 1)),

because two pairs without a common row are independent. ζ₁ is estimated from products of deviations
of pairs that share a row, never from a pair with itself, so that the noise of row means is not
counted as a spread between rows. If ζ₁ vanishes, as for isotropic rows, only ζ₂ is left: the
variance is never set below its share.

The sum of squared influences of rows includes the product of each pair with itself, twice what it
adds to the variance. If half of the pairs get the sign +1 and half −1, products of different pairs
cancel in the squares of the signed sums, and only the products of pairs with themselves are left.
They are the noise to subtract, from squares of differences as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.numerics.scores import widen
from embgeo.numerics.spectra import compute_entropy

#: Between eigenvalues nearer than this share of the largest, a derivative replaces the divided
#: difference.
NEAR = 1e-6


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
    of_pairs : float
        Share of pairs of rows in the variance, of functions of eigenvalues.
    """

    error: float
    influence: FloatArray
    conservative: bool = False
    noise: FloatArray | None = None
    of_pairs: float = 0.0

    def times(self, factor: float) -> RowError:
        """Return the error of the number times a constant."""
        return replace(
            self,
            error=abs(factor) * self.error,
            influence=factor * self.influence,
            noise=None if self.noise is None else factor * self.noise,
        )


def combine(parts: FloatArray, pairs: float, m: int) -> RowError | None:
    """Return the error from the influences of all m rows or a uniform sample.

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
        None if equal eigenvalues leave no derivative. Where a few rows hold the variance, the error
        is that of Student's t with few degrees of freedom.
    """
    if not np.isfinite(parts).all():
        return None
    away = (parts - parts.mean()) * np.sqrt(m / len(parts))
    squares = np.square(away)
    total = float(squares.sum())
    variance = max(total - pairs, pairs)
    error = widen(float(np.sqrt(variance)), away)
    share = pairs / variance if variance > 0.0 else 0.0
    return RowError(error, away, variance < 2.0 * pairs, of_pairs=share)


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

    def standardize(self) -> FloatArray:
        """Return the sizes of coordinates in units of their spread along each eigenvector."""
        return np.asarray(np.sqrt(self.m * self.squares / self.values))

    def find_error(self, derive: Callable[[FloatArray], SpectralFunction]) -> RowError | None:
        """Find the error of a function of the eigenvalues with the derivatives of `derive`.

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


def entropy(weights: FloatArray) -> SpectralFunction:
    """Return −Σ p ln p of the weights' shares p."""
    total, h = float(weights.sum()), compute_entropy(weights)
    g = -(np.log(weights / total) + h) / total
    second = np.add.outer(-g / total, 1.0 / total**2 - g / total)
    return SpectralFunction(g, subtract_diagonal(second, 1.0 / (weights * total)))


def root_entropy(values: FloatArray) -> SpectralFunction:
    """Return the entropy of the roots σ of the eigenvalues."""
    sigma = np.sqrt(values)
    of_roots, slope = entropy(sigma), 0.5 / sigma
    g, second = of_roots.gradient * slope, of_roots.hessian
    second *= slope
    second *= slope[:, None]
    return SpectralFunction(g, subtract_diagonal(second, g / (2.0 * values)))


def participation_ratio(values: FloatArray) -> SpectralFunction:
    """Return (Σλ)²/Σλ²."""
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
    """Return λ₁/Σλ."""
    total, top = float(values.sum()), np.eye(1, len(values))[0]
    g = (top - values[0] / total) / total
    second = (2.0 * values[0] / total - top[:, None] - top) / total**2
    return SpectralFunction(g, second)


#: With fewer rows the variance of a mean over their pairs cannot be estimated.
LEAST_ROWS = 4


def error_from_row_means(
    row_means: FloatArray,
    mean: float,
    spread: float,
    m: int,
    signed_means: FloatArray | None = None,
    *,
    whole: bool = False,
) -> RowError:
    """Return the error from the mean kernel of some or all rows with all others.

    With all rows the squared error is unbiased. A conservative error is too large if the mean is
    0, whose deviation grows with it; a smaller one would be too small for a faint mean.

    Parameters
    ----------
    row_means : float64 array, shape (r,)
        Mean kernel of each row with the others, for all m rows or a uniform sample of them.
    mean : float
        Mean kernel over all pairs.
    spread : float
        Standard deviation of the kernel over all pairs.
    m : int
        Number of rows, at least 4.
    signed_means : float64 array, shape (r,), optional
        Mean of the kernel minus `mean`, each pair with a random sign.
    whole : bool
        What pairs add to the spread of row means is not subtracted. A mean that chance makes
        smaller has row means that spread less: its error would be too small in 9% to 17% of
        matrices.

    Examples
    --------
    >>> x = np.array([0.0, 1.0, 2.0, 5.0, 7.0])  # kernel (x + y)/2: the mean is that of x
    >>> k = (x[:, None] + x) / 2
    >>> off = ~np.eye(5, dtype=bool)
    >>> row_means = (k.sum(axis=1) - x) / 4
    >>> found = error_from_row_means(row_means, k[off].mean(), k[off].std(), 5)
    >>> bool(np.isclose(found.error, x.std(ddof=1) / 5**0.5, rtol=1e-12))
    True
    """
    away = row_means - mean
    both = (m - 2.0) * (m - 3.0)
    rows = 4.0 * (m - 1.0) / both * float(np.mean(np.square(away)))
    variance = rows - 2.0 * spread**2 / both
    least = 2.0 * spread**2 / (m * (m - 1.0))
    factor = 2.0 / np.sqrt(m * len(away))
    noise = None if signed_means is None else factor / np.sqrt(2.0) * signed_means
    if whole:
        return RowError(float(np.sqrt(rows + least)), factor * away, variance < 4.0 * least, noise)
    error = float(np.sqrt(max(variance, least)))
    return RowError(error, factor * away, variance < 2.0 * least, noise)


class DrawnPairs:
    """Pairs of rows that were drawn uniformly, with replacement.

    Products of all pairs that share a row come from sums over rows: Σ_i (Σ_{p∋i} k_p)² counts them
    once, and each pair with itself (and with its repetitions) twice.

    Parameters
    ----------
    first, second : int arrays, shape (n,)
        The two different rows of each pair.
    m : int
        Number of rows that the pairs were drawn from.

    Attributes
    ----------
    rows : int array, shape (r,)
        The rows in the pairs, ascending. Other rows have no influence.
    """

    def __init__(self, first: IntArray, second: IntArray, m: int) -> None:
        number = np.minimum(first, second) * np.int64(m) + np.maximum(first, second)
        self.rows, places = np.unique(np.stack([first, second]), return_inverse=True)
        (self.first, self.second), self.m = places.reshape(2, -1), m
        _, place, repeated = np.unique(number, return_inverse=True, return_counts=True)
        #: How often each pair was drawn.
        self.times = repeated[place]
        often = self._sum(np.ones(len(first)))
        #: Products of pairs that share a row.
        self.products = float(np.square(often).sum()) - 2.0 * float(self.times.sum())

    def _sum(self, parts: FloatArray) -> FloatArray:
        """Return the sums over the pairs of each row."""
        r = len(self.rows)
        sums = np.bincount(self.first, parts, r) + np.bincount(self.second, parts, r)
        return np.asarray(sums, dtype=np.float64)

    def find_error(self, kernel: FloatArray) -> RowError:
        """Find the error of a mean kernel, from the kernel of each pair, shape (n,)."""
        n, m = len(kernel), self.m
        away = kernel - kernel.mean()
        sums = self._sum(away)
        noise = self._sum(np.where(np.arange(n) % 2 == 0, away, -away))
        shared = float(np.square(sums).sum()) - 2.0 * float(self.times @ np.square(away))
        products = self.products
        zeta_two = float(away @ away) / n
        zeta_one = max(shared / products, 0.0) if products > 0 else 0.0
        variance = (4.0 * (m - 2.0) * zeta_one + 2.0 * zeta_two) / (m * (m - 1.0))
        unseen = max(2.0 / (m - 2.0) / 4.0, np.sqrt(8.0 / max(products, 1.0))) * zeta_two
        # Of n drawn pairs, n²/m² are drawn twice with either sign and do not cancel.
        noise *= np.sqrt(0.5 + n / m**2) / n
        return RowError(float(np.sqrt(variance)), sums / n, bool(zeta_one < unseen), noise)
