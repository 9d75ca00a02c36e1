"""Spectra and partition functions of isotropic rows of given norms, drawn without the rows.

Rows w_i = n_i·u_i have independent, uniformly random directions u_i in d dimensions.

**Eigenvalues.** Σ c_i g_i g_iᵀ of normal g_i is a sum of Wishart matrices over groups of nearly
equal c_i, each with (Σc)²/Σc² degrees of freedom (Satterthwaite 1946), drawn by Bartlett's
decomposition (1933), or for one group by that of a tridiagonal matrix (Silverstein 1985), in d²
steps. Of directions the trace is fixed and the rest is smaller by √(d/(d + 2)), because E(u_k u_l)²
is 1/(d(d + 2)) in place of 1/d²; with that factor, all second moments are those of directions.

**Mean row.** It is normal, and independent of the centered scatter C, up to rows of unequal norms.
In the basis of C, WᵀW is diag(λ) + N·μμᵀ.

**Partition function.** With t the norm in the exponent and x = ⟨u, a⟩, exp(t·x) is a sum of
Gegenbauer polynomials, the first of which are F₀(t), F₁(t)·t·x and ½F₂(t)·t²·(x² − 1/d), with
F_l(t) = ₀F₁(; d/2 + l; t²/4). Summed over rows, the second is along the mean row, and the third at
an eigenvector of eigenvalue λ is that of λ − Σn²/d, both up to a residual where F varies with the
norm. Residuals and polynomials of a degree above 2 are not correlated with mean and scatter; their
sums over many rows are normal with known variances, odd and even parts apart.
"""

from dataclasses import dataclass, field

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.numerics import eigen
from embgeo.numerics.rank_update import add_gram

#: Up to this many entries the rows themselves are drawn, …
DRAWN_ENTRIES = 2**18
#: … up to this many where there are few rows for a dimension, so that eigenvectors lean to some, …
DRAWN_FEW = 2**22
FEW_PER_DIMENSION = 8
#: … and always where there are fewer than this.
DRAWN_PER_DIMENSION = 2
#: Largest skewness of Z that counts as normal: sums that few long rows decide are not.
LARGEST_SKEWNESS = 0.1
#: Largest exponent of a row that an eigenvector leans to: of larger ones Z has cubes and more.
LONGEST_LEAN = 2.0
#: Energies below this share of the largest change no digit.
NOTHING = 1e-30
#: Least share of all squares in a group that is not joined to the next.
LEAST_SHARE = 1e-6


@dataclass
class IsotropicRows:
    """Isotropic rows of given norms.

    `energies`: shape (n,); squared norms, in units of the largest. `is_drawn`: whether the rows
    themselves are drawn.
    """

    #: Shape (n,).
    norms: FloatArray
    d: int
    rng: np.random.Generator
    lengths: FloatArray = field(init=False)
    energies: FloatArray = field(init=False)
    is_drawn: bool = field(init=False)

    def __post_init__(self) -> None:
        self.lengths = self.norms / self.norms.max()
        self.energies = np.square(self.lengths)
        n = len(self.norms)
        entries = DRAWN_FEW if n < FEW_PER_DIMENSION * self.d else DRAWN_ENTRIES
        self.is_drawn = n < DRAWN_PER_DIMENSION * self.d or n * self.d <= entries
        if self.is_drawn:
            units = draw_directions(n, self.d, self.rng)
            rows = units * self.lengths[:, None]
            self._units, mean = units, rows.mean(axis=0)
            self._mean, self._along_mean = mean, np.zeros(self.d)
            self.centered = decompose(rows - mean, None, n - 1)
            self.eigen = decompose(rows, mean, n)
            return
        values = draw_eigenvalues(self.energies * (1.0 - 1.0 / n), self.d, self.rng)
        deviation = np.sqrt(float(self.energies.sum()) / self.d) / n
        self._mean = deviation * self.rng.standard_normal(self.d)
        self.centered = eigen.Eigen(values, np.empty((0, 0)))
        whole, q = eigen.add_rank_one(values, np.sqrt(n) * self._mean)
        self._along_mean = np.abs(self._mean @ q)
        self.eigen = eigen.Eigen(whole, np.empty((0, 0)))

    def draw_log_z(self, exponents: FloatArray) -> FloatArray | None:
        """Draw log Z at the eigenvectors of WᵀW, v and −v, shape (2, d), of rows of these lengths.

        None if a few long rows decide it and there are too many to be drawn.
        """
        if self.is_drawn:
            return log_partition(self._units, self.eigen.vectors, exponents)
        return self._expand(exponents, self.eigen.values, self._along_mean)

    def _expand(self, t: FloatArray, squares: FloatArray, mean: FloatArray) -> FloatArray | None:
        """Expand log Z from Σ⟨w, v⟩² and ⟨μ, v⟩ along each v, in units of the longest row."""
        n, d, energies = len(t), self.d, self.energies
        with np.errstate(over="ignore", invalid="ignore"):
            level, first, second = (sum_series(d / 2.0 + order, t**2 / 4.0) for order in range(3))
            twice, thrice = (sum_series(d / 2.0, x * t**2) for x in (1.0, 2.25))
            spread = twice - level**2
            skewness = (thrice - 3.0 * twice * level + 2.0 * level**3).sum()
            variance = np.maximum(spread.sum(), np.finfo(float).tiny)
            # Its power of 3/2 can be out of range where the ratio is not.
            skewness /= variance
            skewness /= np.sqrt(variance)
        if not skewness <= LARGEST_SKEWNESS or self._find_lean(t) > LONGEST_LEAN:
            return None
        linear, square = first * t, 0.5 * second * t**2
        of_square = 2.0 * (d - 1.0) / (d**2 * (d + 2.0))
        along = float(linear @ self.lengths) / float(energies.sum())
        bent = float(square @ energies) / float(energies @ energies)
        odd = (twice - 1.0) / 2.0 - along**2 * energies / d
        even = (twice + 1.0) / 2.0 - level**2 - bent**2 * np.square(energies) * of_square
        noise = [
            np.sqrt(max(float(part.sum()), 0.0)) * self.rng.standard_normal(len(squares))
            for part in (odd, even)
        ]
        whole = level.sum() + bent * (squares - energies.sum() / d) + noise[1]
        tilt = along * n * mean + noise[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            log_z = np.log(np.stack([whole + tilt, whole - tilt]))
        return log_z if np.isfinite(log_z).all() else None

    def _find_lean(self, t: FloatArray) -> float:
        """Find the largest exponent of a row that has an eigenvector of its own; 0 without one.

        That takes more than √(d/n) of an even eigenvalue (Baik, Ben Arous & Péché 2005).
        """
        energies, total = self.energies, float(self.energies.sum())
        effective = total**2 / float(energies @ energies)
        own = min(1.0, self.d / total)
        return float(t.max() * np.sqrt(own)) if own > np.sqrt(self.d / effective) else 0.0


def sum_series(b: float, x: FloatArray) -> FloatArray:
    """Sum ₀F₁(; b; x) for x ≥ 0, whose terms are positive and soon negligible."""
    total = term = np.ones_like(x)
    k = 0
    while (term > 1e-17 * total).any():
        term = term * x / ((b + k) * (k + 1.0))
        total, k = total + term, k + 1
    return total


def decompose(rows: FloatArray, mean: FloatArray | None, rank: int) -> eigen.Eigen:
    """Find the eigenpairs of ``rowsᵀ rows``; the eigenvalues beyond the rank are 0."""
    few = 2 * len(rows) <= rows.shape[1]
    found = (
        eigen.signed_eigen_of_rows(rows, mean) if few else eigen.signed_eigen(rows.T @ rows, mean)
    )
    found.values[rank:] = 0.0
    return found


def decompose_values(rows: FloatArray) -> FloatArray:
    """Find the falling eigenvalues of ``rowsᵀ rows``."""
    n, d = rows.shape
    if n >= d:
        return eigen.eigenvalues(rows.T @ rows)
    return np.pad(eigen.eigenvalues(rows @ rows.T), (0, d - n))


def log_partition(units: FloatArray, vectors: FloatArray, exponents: FloatArray) -> FloatArray:
    """Sum exp(±t_i⟨u_i, v⟩) at columns v, in logarithms: log n at directions not among them."""
    n, d = units.shape
    found = np.full((2, d), np.log(n))
    products = (units @ vectors) * exponents[:, None]
    for row in found:
        top = products.max(axis=0)
        row[: len(top)] = top + np.log(np.exp(products - top).sum(axis=0))
        np.negative(products, out=products)
    return found


def draw_eigenvalues(energies: FloatArray, d: int, rng: np.random.Generator) -> FloatArray:
    """Draw falling eigenvalues of Σ c_i u_i u_iᵀ for uniformly random directions u_i, shape (d,).

    `energies`: shape (n,); c_i, not negative, one at least positive.
    """
    groups = group_energies(energies)
    if len(groups) == 1 and are_many(groups[0], d):
        return draw_wishart_values(groups[0], d, rng)
    even = 0.0
    few = [group for group in groups if not are_many(group, d)]
    if few:
        few_rows = draw_directions(sum(map(len, few)), d, rng)
        few_rows *= np.sqrt(np.concatenate(few))[:, None]
        if len(few) == len(groups):
            return decompose_values(few_rows)
    gram = np.zeros((d, d), order="F")
    if few:
        add_gram(few_rows, gram)
    for group in groups:
        if are_many(group, d):
            factor, level = draw_factor(group, d, rng)
            add_gram(factor, gram)
            even += level
    return np.maximum(eigen.eigenvalues(gram.T) + even, 0.0)


def draw_directions(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Draw uniformly random unit rows."""
    rows = rng.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return rows


def are_many(energies: FloatArray, d: int) -> bool:
    """Tell whether the scatter of this number of rows is drawn without them."""
    return len(energies) >= DRAWN_PER_DIMENSION * d


def group_energies(energies: FloatArray) -> list[FloatArray]:
    """Split energies into groups within a factor of 2, falling; the least of them are one group."""
    falling = np.sort(energies[energies > NOTHING * energies.max()])[::-1]
    # A range that one group would nearly hold is not cut in two.
    if falling[-1] * 2.5 > falling[0]:
        return [falling]
    octave = np.log2(falling[0] / falling).astype(np.int64)
    starts = np.flatnonzero(np.diff(octave, prepend=-1))
    rest = np.cumsum(falling[::-1])[::-1]
    starts = starts[rest[starts] > LEAST_SHARE * rest[0]]
    groups = np.split(falling, starts[1:])
    if groups[-1][-1] * 2.5 < groups[-1][0]:  # of negligible rows, only their number counts
        groups[-1] = np.full_like(groups[-1], groups[-1].mean())
    return groups


def describe_group(energies: FloatArray, d: int) -> tuple[float, float]:
    """Find degrees of freedom and scale of a Wishart matrix that stands for a group of rows."""
    total = float(energies.sum())
    freedom = total**2 / float(energies @ energies)
    return freedom, total / (freedom * d)


def draw_factor(energies: FloatArray, d: int, rng: np.random.Generator) -> tuple[FloatArray, float]:
    """Draw R and e such that RᵀR + e·I is the scatter of a group of rows."""
    freedom, scale = describe_group(energies, d)
    upper = np.triu(rng.standard_normal((d, d)), 1)
    upper[np.diag_indices(d)] = np.sqrt(rng.chisquare(freedom - np.arange(d)))
    upper *= np.sqrt(scale)
    total, shrink = float(energies.sum()) / d, np.sqrt(d / (d + 2.0))
    level = total - shrink * float(np.vdot(upper, upper)) / d
    upper *= np.sqrt(shrink)
    return upper, level


def draw_wishart_values(energies: FloatArray, d: int, rng: np.random.Generator) -> FloatArray:
    """Draw falling eigenvalues of the scatter of one group, from a bidiagonal matrix."""
    from scipy.linalg import eigvalsh_tridiagonal

    total = float(energies.sum()) / d
    if d == 1:
        return np.array([total])
    freedom, scale = describe_group(energies, d)
    diagonal = rng.chisquare(freedom - np.arange(d))
    below = rng.chisquare(np.arange(d - 1, 0, -1))
    across = np.sqrt(diagonal[:-1] * below)
    diagonal[1:] += below
    values = scale * eigvalsh_tridiagonal(diagonal, across)[::-1]
    values = total + np.sqrt(d / (d + 2.0)) * (values - values.mean())
    return np.asarray(np.maximum(values, 0.0))
