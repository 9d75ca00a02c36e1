"""Standard errors over rows of a mean over pairs of rows.

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

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.numerics.row_errors import RowError

#: With fewer rows the variance of a mean over their pairs cannot be estimated.
LEAST_ROWS = 4


def error_from_row_means(
    row_means: FloatArray,
    mean: float,
    spread: float,
    m: int,
    signed_means: FloatArray | None = None,
) -> RowError:
    """The error from the mean kernel of some or all rows with all others.

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
    variance = 4.0 * (m - 1.0) / both * float(np.mean(np.square(away))) - 2.0 * spread**2 / both
    least = 2.0 * spread**2 / (m * (m - 1.0))
    factor = 2.0 / np.sqrt(m * len(away))
    noise = None if signed_means is None else factor / np.sqrt(2.0) * signed_means
    error = float(np.sqrt(max(variance, least)))
    return RowError(error, factor * away, bool(variance < 2.0 * least), noise)


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
        """Sums over the pairs of each row."""
        r = len(self.rows)
        sums = np.bincount(self.first, parts, r) + np.bincount(self.second, parts, r)
        return np.asarray(sums, dtype=np.float64)

    def find_error(self, kernel: FloatArray) -> RowError:
        """The error of a mean kernel, from the kernel of each pair, shape (n,)."""
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
