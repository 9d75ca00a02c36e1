"""Statistics that several families share, and what is derived from them once."""

from collections.abc import Iterable
from functools import cached_property
from typing import Literal, TypeVar, cast

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, SingleArray
from embgeo.core.rows import NearestRows
from embgeo.core.suspects import Suspects
from embgeo.metrics.facts import Facts
from embgeo.numerics.eigen import (
    BlockRotation,
    Eigen,
    Eigh,
    add_outside,
    add_rank_one,
    block_rotation,
    signed_eigen,
    signed_eigen_of_rows,
)
from embgeo.stats import (
    AngleTo,
    DistanceTo,
    GroupSquares,
    LogPartition,
    Moments,
    Norms,
    RowHashes,
    RowSums,
    StackedQR,
    TreatedRows,
)
from embgeo.stats.moments import are_few
from embgeo.stats.statistic import Statistic

S = TypeVar("S")
Spectrum = Literal["uncentered", "centered", "unit"]
#: Above this ratio λ_1/λ_d the error of the Gram matrix, about ε·λ_1/λ_d, leaves fewer than nine
#: digits of σ_d, and a QR pass is made.
GRAM_IS_ENOUGH = 1e6
#: Scatter matrices of this many products are summed in float32, at half the cost …
PROBED = 10**10
#: … and again in float64 where rounding may change an eigenvalue by more than this share of it.
ROUGH = 1e-6
#: A mean row this many times longer than the deviations costs them four digits in sums of squares.
LONG_MEAN = 100.0


# The statistics of the first pass that families share.


def norms(_: Facts) -> Norms:
    return Norms()


def hashes(facts: Facts) -> RowHashes:
    return RowHashes(facts.d)


def row_sums(facts: Facts) -> RowSums:
    return RowSums(facts.d)


def row_moments(facts: Facts, rows: int | None = None) -> Moments:
    """Return the mean and scatter of the rows, or of a sample, in the requested precision."""
    single, few = facts.options.precision == "float32", are_few(rows or facts.n, facts.d)
    probed = rows is None and are_probed(facts)
    return Moments(facts.d, single=single, few=few, probed=probed)


def are_probed(facts: Facts) -> bool:
    """Tell whether scatter matrices are summed in float32, with probes of the rounding."""
    asked = facts.options.precision == "float32" or are_few(facts.n, facts.d)
    return not asked and facts.n * facts.d**2 >= PROBED


def unit_moments(facts: Facts) -> Moments:
    """Return the mean and scatter of the rows divided by their norms."""
    return Moments(facts.d, of="unit", few=are_few(facts.n, facts.d))


def count_rank(sigma: FloatArray, rows: int) -> int:
    """Return the numerical rank: how many singular values exceed the rounding of the largest."""
    return int(np.count_nonzero(sigma > sigma[0] * max(rows, len(sigma)) * 2.0**-52))


class SharedStatistics:
    """The statistics of finished passes by key, with what several families derive from them.

    `eigh` decomposes on a device. Scatter matrices and directions are released after their last
    use.
    """

    def __init__(self, eigh: Eigh | None = None) -> None:
        self.statistics: dict[tuple[str, str], Statistic] = {}
        #: Neighbors of the rows that a family has searched.
        self.nearest: NearestRows | None = None
        #: Rows that stand out, of the input embedding and then of the output matrix.
        self.suspects: list[Suspects] = []
        #: Share of the entries that are exactly zero, in a sample of rows.
        self.zero_entries: float | None = None
        #: Whether scatter matrices are kept until `release_scatter`.
        self.keeps_scatter = False
        self._singular_values: dict[Spectrum, FloatArray] = {}
        self._eigh = eigh

    def add(self, statistics: Iterable[Statistic]) -> None:
        """Add the statistics of a finished pass."""
        for statistic in statistics:
            self.statistics[statistic.key] = statistic
            if isinstance(statistic, Moments) and statistic.name == "unit":
                _ = self.unit_eigenvalues  # the last that needs the scatter
                if not self.keeps_scatter:
                    statistic.forget_scatter()
            elif isinstance(statistic, LogPartition | GroupSquares | TreatedRows):
                statistic.forget_directions()
                for name in ("single", "single_centered"):
                    self.__dict__.pop(name, None)

    def get(self, kind: type[S], name: str = "") -> S | None:
        """Return the statistic of a class and a name; None if no pass made it."""
        return cast("S | None", self.statistics.get((kind.__name__, name)))

    def find(self, kind: type[S], name: str = "") -> S:
        """Return a statistic that was requested; KeyError without it."""
        return cast(S, self.statistics[kind.__name__, name])

    @property
    def moments(self) -> Moments:
        """Mean and scatter of the rows."""
        return self.find(Moments, "rows")

    @property
    def unit_moments(self) -> Moments:
        """Mean and scatter of the rows divided by their norms."""
        return self.find(Moments, "unit")

    @property
    def sums(self) -> RowSums:
        """Sums of the rows, and of the rows divided by their norms."""
        return self.find(RowSums)

    def release_scatter(self) -> None:
        """Forget the scatter matrices that were kept."""
        if self.keeps_scatter:
            _ = self.eigen_centered
            self.keeps_scatter = False
            self.moments.forget_scatter()
            self.unit_moments.forget_scatter()

    @property
    def is_rough(self) -> bool:
        """Whether rounding in float32 may show in a singular value of the centered rows."""
        moments = self.get(Moments, "rows")
        if moments is None or not moments.probed:
            return False
        eigen = self.eigen_centered
        return bool((moments.bound_errors(eigen.vectors) > ROUGH * eigen.values).any())

    def replace_moments(self, moments: Moments) -> None:
        """Take the mean and scatter of the rows from other sums."""
        self.add([moments])
        self.__dict__.pop("eigen_centered", None)

    @cached_property
    def unit_eigenvalues(self) -> FloatArray:
        """Eigenvalues of ŴᵀŴ, falling, shape (d,)."""
        return self.unit_moments.eigenvalues()

    @property
    def norms(self) -> FloatArray:
        """Euclidean norms of the kept rows, shape (M,)."""
        return np.asarray(self.find(Norms).values())

    @property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """Hashes of the kept rows, shape (M,)."""
        return self.find(RowHashes).values()

    @property
    def mean_direction(self) -> FloatArray | None:
        """Σŵ_i as a unit vector; None if the unit rows cancel up to rounding."""
        unit = self.get(Moments, "unit")
        mean = self.sums.unit / self.sums.n if unit is None else unit.mean
        length = float(np.linalg.norm(mean))
        return None if length < 1e-13 else mean / length

    def request_mean_angles(self) -> list[Statistic]:
        """Return the statistic of the second pass that `mean_angles` reads."""
        return [] if self.mean_direction is None else [AngleTo("mean", self.mean_direction)]

    @property
    def mean_angles(self) -> FloatArray | None:
        """Angles of the kept rows to the mean direction in radians; None if there is none."""
        angles = self.get(AngleTo, "mean")
        return None if angles is None else angles.values()

    def request_mean_distances(self) -> list[Statistic]:
        """Return the statistic of the second pass that `mean_distances` reads."""
        return [DistanceTo("mean row", self.sums.rows / self.sums.n)]

    @property
    def mean_distances(self) -> FloatArray:
        """Distances of the kept rows to the mean row, shape (M,)."""
        return self.find(DistanceTo, "mean row").values()

    @cached_property
    def all_rows_equal(self) -> str:
        """Why centered values do not exist: all rows equal their mean; empty if they differ."""
        left = self.moments.trace()
        total = left + self.moments.n * float(np.square(self.moments.mean).sum())
        if left > total * 1e-28:
            return ""
        return "all kept rows are equal, nothing is left once the mean row is subtracted"

    @cached_property
    def mean_is_long(self) -> bool:
        """Whether the mean row is a hundred times longer than the deviations from it."""
        level = float(np.linalg.norm(self.moments.mean))
        return level > LONG_MEAN * float(np.sqrt(self.moments.trace() / self.moments.n))

    @property
    def eigen(self) -> Eigen:
        """Eigenpairs of WᵀW, with signs such that ⟨mean row, v⟩ ≥ 0."""
        return self._uncentered[0]

    @property
    def rotation(self) -> BlockRotation | None:
        """Rotates the centered eigenvectors into those of WᵀW; None if it would not save work."""
        return self._uncentered[1]

    @cached_property
    def single_centered(self) -> SingleArray:
        """What rows in float32 are multiplied with for products with the centered eigenvectors."""
        return self.eigen_centered.vectors.astype(np.float32)

    @cached_property
    def single(self) -> SingleArray:
        """The same for the eigenvectors of WᵀW, before `rotation`."""
        return (
            self.eigen.vectors.astype(np.float32) if self.rotation is None else self.single_centered
        )

    @property
    def _decomposes_gram(self) -> bool:
        """Whether WᵀW is decomposed itself, on a device."""
        return not (self._eigh is None or self.moments.few or self.mean_is_long)

    @cached_property
    def _uncentered(self) -> tuple[Eigen, BlockRotation | None]:
        """Eigenpairs of the centered scatter plus n·μμᵀ, which is WᵀW."""
        rows, mean = self.moments.n, self.moments.mean
        if self._decomposes_gram:
            return signed_eigen(self.moments.gram(), mean, self._eigh), None
        known = self.eigen_centered
        basis = add_outside(known.vectors, mean)
        mean = basis.T @ mean
        values, q = add_rank_one(known.values[: len(mean)], np.sqrt(rows) * mean)
        q *= np.where(mean @ q < 0, -1.0, 1.0)
        # Next to a long mean the others keep the digits that they have in the centered matrix.
        scale = max(known.values[0], np.finfo(float).eps * values[0])
        values = np.pad(values, (0, len(known.values) - len(values)))
        rotation = None if self.moments.few else block_rotation(q)
        return Eigen(values, basis @ q, float(scale)), rotation

    def singular_values(self, of: Spectrum) -> FloatArray:
        """Return σ_1 … σ_d: from the QR factor if one was requested, else from the Gram matrix."""
        if of not in self._singular_values:
            self._singular_values[of] = self._decompose(of)
        return self._singular_values[of]

    def request_singular_values(self, of: Spectrum) -> list[Statistic]:
        """Return the statistic of the second pass that `singular_values` needs, if any."""
        d, moments = self.moments.d, self.moments
        values = {
            "uncentered": lambda: self.eigen.values,
            "centered": lambda: self.eigen_centered.values,
            "unit": lambda: self.unit_eigenvalues,
        }[of]()
        if values[-1] * GRAM_IS_ENOUGH >= values[0]:
            return []
        if of == "centered":
            return [StackedQR(of, d, shift=moments.mean)]
        return [StackedQR(of, d, of="unit" if of == "unit" else "rows")]

    @property
    def rank(self) -> int:
        """The numerical rank of W."""
        return count_rank(self.singular_values("uncentered"), int(self.moments.n))

    def _decompose(self, of: Spectrum) -> FloatArray:
        if (qr := self.get(StackedQR, of)) is not None:
            sigma = np.linalg.svd(qr.r, compute_uv=False)
            return np.pad(sigma, (0, self.moments.d - len(sigma)))
        if of == "unit":
            return np.sqrt(self.unit_eigenvalues)
        return np.sqrt((self.eigen if of == "uncentered" else self.eigen_centered).values)

    @cached_property
    def eigen_centered(self) -> Eigen:
        """Eigenpairs of the centered scatter, with the entry of largest magnitude positive."""
        if self._decomposes_gram:
            _ = self._uncentered  # while there is a scatter
        few = self.moments.few
        found = self.moments.factor if few else self.moments.scatter
        if not self.keeps_scatter:
            self.moments.forget_scatter()
        return signed_eigen_of_rows(found) if few else signed_eigen(found, None, self._eigh)
