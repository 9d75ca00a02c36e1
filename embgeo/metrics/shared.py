"""Statistics that several families use, and what is derived from them once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.nearest_rows import NearestRows
from embgeo.core.options import Options
from embgeo.metrics.facts import Facts
from embgeo.numerics.block_rotation import BlockRotation, block_rotation
from embgeo.numerics.eigen import Eigen, Eigh, eigenvalues, signed_eigen
from embgeo.numerics.rank_one import add_rank_one
from embgeo.stats import LogPartition, Moments, Norms, OutputNorms, StackedQR
from embgeo.stats.per_row import PerRow
from embgeo.stats.statistic import Statistic

S = TypeVar("S")
Spectrum = Literal["uncentered", "centered", "unit"]
#: A mean row this many times as long as the rows' deviations from it would take four of their
#: digits in a sum of squares.
LONG_MEAN = 100.0
#: Key of the moments of the unit rows.
UNIT_MOMENTS = ("moments", "unit")


def row_moments(facts: Facts, options: Options) -> Moments:
    """Mean and scatter of the rows, in the precision that was asked for."""
    return Moments(facts.d, single=options.precision == "float32")


class SharedStatistics:
    """The statistics after their passes, by key, with what several families derive from them.

    Parameters
    ----------
    eigh : callable, optional
        Eigendecompositions on a device.
    frugal : bool
        Scatter matrices and directions are released once they are used.

    Attributes
    ----------
    nearest : NearestRows or None
        Of the rows whose neighbors a family has searched.
    """

    def __init__(self, eigh: Eigh | None = None, frugal: bool = False) -> None:
        self.statistics: dict[Hashable, Statistic] = {}
        self.nearest: NearestRows | None = None
        self._singular_values: dict[Spectrum, FloatArray] = {}
        self._eigh = eigh
        self._frugal = frugal and eigh is None

    def add(self, statistics: Iterable[Statistic]) -> None:
        """Add the statistics of a pass that is over."""
        for statistic in statistics:
            self.statistics[statistic.key] = statistic
            if self._frugal and statistic.key == UNIT_MOMENTS:
                _ = self.unit_eigenvalues  # the last that needs the scatter
                self.unit_moments.forget_scatter()
            elif self._frugal and isinstance(statistic, LogPartition):
                statistic.forget_directions()

    def forget_rows(self) -> None:
        """Release what has an entry for each row and is not used after the families' values."""
        if self._frugal:
            self.statistics = {
                key: statistic
                for key, statistic in self.statistics.items()
                if not isinstance(statistic, PerRow) or isinstance(statistic, Norms | OutputNorms)
            }

    def find(self, kind: type[S], key: Hashable) -> S:
        """The statistic of a key.

        Raises
        ------
        TypeError
            If it is of another kind.
        """
        statistic = self.statistics[key]
        if not isinstance(statistic, kind):
            raise TypeError(f"{key!r} is {type(statistic).__name__}, not {kind.__name__}")
        return statistic

    @property
    def moments(self) -> Moments:
        """Mean and scatter of the rows."""
        return self.find(Moments, ("moments", "rows"))

    @property
    def unit_moments(self) -> Moments:
        """Mean and scatter of the rows divided by their norms."""
        return self.find(Moments, UNIT_MOMENTS)

    @cached_property
    def unit_eigenvalues(self) -> FloatArray:
        """Of ŴᵀŴ, the largest first, shape (d,)."""
        return eigenvalues(self.unit_moments.gram(), self.unit_moments.n)

    @property
    def norms(self) -> FloatArray:
        """Euclidean norms of the kept rows, shape (M,)."""
        return np.asarray(self.find(Norms, "Norms").values())

    @property
    def mean_direction(self) -> FloatArray | None:
        """Σŵ_i as a unit vector; None where the unit rows cancel but for rounding."""
        mean = self.unit_moments.mean
        length = float(np.linalg.norm(mean))
        return None if length < 1e-13 else mean / length

    @cached_property
    def all_rows_equal(self) -> str:
        """A reason if nothing but rounding is left once the mean row is subtracted, else empty."""
        left = self.moments.trace()
        total = left + self.moments.n * float(np.square(self.moments.mean).sum())
        if left > total * 1e-28:
            return ""
        return "all kept rows are equal, nothing is left once the mean row is subtracted"

    @cached_property
    def mean_is_long(self) -> bool:
        """Whether the rows vary by less than a hundredth of their mean row's length."""
        level = float(np.linalg.norm(self.moments.mean))
        return level > LONG_MEAN * float(np.sqrt(self.moments.trace() / self.moments.n))

    @property
    def eigen(self) -> Eigen:
        """Of WᵀW; signs so that ⟨mean row, v⟩ ≥ 0."""
        return self._uncentered[0]

    @property
    def rotation(self) -> BlockRotation | None:
        """What turns the centered eigenvectors into those of WᵀW, where a product gains by it."""
        return self._uncentered[1]

    @cached_property
    def _uncentered(self) -> tuple[Eigen, BlockRotation | None]:
        """WᵀW is the centered scatter and n·μμᵀ."""
        rows, mean = self.moments.n, self.moments.mean
        if (self._eigh is not None or 2 * rows <= len(mean)) and not self.mean_is_long:
            return signed_eigen(self.moments.gram(), mean, self._eigh, rows), None
        known = self.eigen_centered
        mean = known.vectors.T @ mean
        values, q = add_rank_one(known.values, np.sqrt(rows) * mean)
        q *= np.where(mean @ q < 0, -1.0, 1.0)
        # Next to a long mean the others keep the digits that they have in the centered matrix.
        scale = max(known.values[0], np.finfo(float).eps * values[0])
        return Eigen(values, known.vectors @ q, float(scale)), block_rotation(q)

    def singular_values(self, of: Spectrum) -> FloatArray:
        """σ_1 … σ_d: from the QR factor where one was requested, else from the Gram matrix.

        Parameters
        ----------
        of : {"uncentered", "centered", "unit"}
            The rows, the rows without their mean, or the rows divided by their norms.
        """
        if of not in self._singular_values:
            self._singular_values[of] = self._decompose(of)
        return self._singular_values[of]

    def _decompose(self, of: Spectrum) -> FloatArray:
        key, d = ("stacked qr", of), self.moments.d
        if key in self.statistics:
            sigma = np.linalg.svd(self.find(StackedQR, key).r, compute_uv=False)
            return np.concatenate([sigma, np.zeros(d - len(sigma))])
        if of == "unit":
            return np.sqrt(self.unit_eigenvalues)
        return np.sqrt((self.eigen if of == "uncentered" else self.eigen_centered).values)

    def directions_without(self, coordinates: IntArray) -> FloatArray:
        """Eigenvectors of WᵀW once these coordinates are zeroed in W, shape (d, d − count)."""
        whole = self.eigen
        left = np.setdiff1d(np.arange(len(whole.values)), coordinates)
        rows = whole.vectors[left]
        directions = np.zeros((len(whole.values), len(left)))
        gram = (rows * whole.values) @ rows.T
        directions[left] = signed_eigen(gram, None, self._eigh, self.moments.n).vectors
        return directions

    @cached_property
    def eigen_centered(self) -> Eigen:
        """Of the centered scatter; signs so that the entry of largest magnitude is positive."""
        scatter = self.moments.scatter
        if self._frugal:
            self.moments.forget_scatter()
        return signed_eigen(scatter, None, self._eigh, self.moments.n)
