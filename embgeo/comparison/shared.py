"""The rows of shared tokens of two matrices, and joint sums of them from two or three passes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.matrix import Matrix
from embgeo.numerics import principal_angles
from embgeo.stats import DistanceTo, Moments, PairedSums, StackedQR
from embgeo.stats.block import Block
from embgeo.stats.moments import are_few
from embgeo.stats.resources import Resources, shared_fold
from embgeo.stats.statistic import Statistic


@dataclass(frozen=True, slots=True)
class Shared:
    """X and Y side by side: row i of ``[X | Y]`` belongs to shared token i."""

    #: With p and with q columns.
    first: Matrix
    second: Matrix
    #: Row numbers of the shared tokens in either matrix.
    first_rows: IntArray
    second_rows: IntArray
    resources: Resources = field(default_factory=Resources)

    @property
    def n(self) -> int:
        """S, the number of shared tokens."""
        return len(self.first_rows)

    @property
    def p(self) -> int:
        return self.first.d

    @property
    def q(self) -> int:
        return self.second.d

    def rows(self, index: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows of some shared tokens, in float64."""
        x = self.first.take(self.first_rows[index])
        return x, self.second.take(self.second_rows[index])

    def fold(self, statistics: Sequence[Statistic], advance: Callable[[int], None]) -> None:
        """Feed all rows ``[x | y]`` to the statistics in one pass, on all threads."""
        plan = self.resources.plan(self.n, self.p + self.q)

        def blocks(start: int, stop: int) -> Iterator[Block]:
            for first in range(start, stop, plan.block_rows):
                index = np.arange(first, min(first + plan.block_rows, stop), dtype=np.int64)
                x = self.first.stored(self.first_rows[index])
                y = self.second.stored(self.second_rows[index])
                yield Block(index, np.hstack([x, y]))

        shared_fold(plan, self.n, blocks, statistics, advance)

    def fold_sides(self, first: Sequence[Statistic], second: Sequence[Statistic]) -> None:
        """Feed rows x to the first statistics and rows y to the second, a pass over each matrix."""
        sides = (self.first, self.first_rows, first), (self.second, self.second_rows, second)
        for matrix, rows, statistics in sides:
            plan = self.resources.plan(self.n, matrix.d)
            blocks = partial(read_side, matrix, rows, plan.block_rows)
            shared_fold(plan, self.n, blocks, statistics, lambda _rows: None)


def read_side(matrix: Matrix, rows: IntArray, step: int, start: int, stop: int) -> Iterator[Block]:
    """Yield the shared tokens from `start` to `stop` in one matrix, block by block."""
    for _, stored in matrix.blocks(rows, start=start, stop=stop, step=step):
        index = np.arange(start, start + len(stored), dtype=np.int64)
        start += len(stored)
        yield Block(index, stored)


#: The Cholesky factor of the Gram matrix (of columns scaled to length 1) is accurate enough if the
#: smallest eigenvalue of that matrix is above this limit: squared sines then have errors of about
#: 1e-14 over the eigenvalue. Below, X or Y is ill-conditioned or their spaces nearly agree, and the
#: rows are read again for a QR factor.
GRAM_IS_ENOUGH = 1e-5


@dataclass(frozen=True, slots=True)
class Joint:
    """The sums of the passes over shared rows."""

    #: The number of shared tokens.
    n: int
    #: Columns of X; those of Y follow.
    p: int
    #: Moments of the rows ``[x | y]``.
    moments: Moments
    sums: PairedSums
    #: Distances of the rows of X to their mean, and of the rows of Y to theirs.
    distances: tuple[FloatArray, FloatArray]
    #: FᵀF is the Gram matrix of ``[X | Y]``: its columns are those of X and Y, up to a rotation of
    #: R^N that both share.
    factor: FloatArray
    #: Whether X and Y are known to have full column rank.
    full_rank: bool

    @property
    def x(self) -> FloatArray:
        return self.factor[:, : self.p]

    @property
    def y(self) -> FloatArray:
        return self.factor[:, self.p :]

    def angles(self) -> tuple[tuple[int, int], FloatArray, FloatArray]:
        """Get dimensions of both column spaces, and cosines and sines of the angles between
        them.
        """
        p, q = self.p, self.y.shape[1]
        if self.full_rank and p >= q:
            # The factor is triangular: the first p unit vectors span the space of X.
            return (p, q), *principal_angles.cosines_and_sines(
                *np.split(np.linalg.qr(self.y)[0], [p])
            )
        if self.full_rank:
            x, y = np.linalg.qr(self.x)[0], np.linalg.qr(self.y)[0]
        else:
            x, y = (
                principal_angles.column_basis(self.x, self.n),
                principal_angles.column_basis(self.y, self.n),
            )
        dimensions = x.shape[1], y.shape[1]
        if not all(dimensions):
            return dimensions, np.zeros(0), np.zeros(0)
        smaller, larger = sorted((y, x), key=np.size)
        return dimensions, *principal_angles.principal_cosines_and_sines(larger, smaller)


def read_joint(
    shared: Shared, advance: Callable[[int], None], more: Sequence[Statistic] = ()
) -> Joint:
    """Read both matrices in two passes, and in a third if a QR factor is needed.

    The first pass also feeds the statistics in `more`.
    """
    p, width = shared.p, shared.p + shared.q
    # Of few rows the QR factor is smaller than a Gram matrix, which would be singular.
    few = are_few(shared.n, width)
    moments, sums = Moments(width, few=few), PairedSums(p)
    shared.fold([moments, sums, *more], advance)
    factor = None if few else cholesky_factor(moments.gram())
    full_rank = factor is not None
    first, second = DistanceTo("mean", moments.mean[:p]), DistanceTo("mean", moments.mean[p:])
    shared.fold_sides([first], [second])
    if factor is None:
        qr = StackedQR("first|second", width)
        shared.fold([qr], lambda _rows: None)
        factor = qr.r
    distances = first.values(), second.values()
    return Joint(shared.n, p, moments, sums, distances, factor, full_rank)


def cholesky_factor(gram: FloatArray) -> FloatArray | None:
    """Return the upper triangular F with FᵀF = `gram`; None if it would not be accurate."""
    from scipy.linalg import lapack

    lengths = np.sqrt(np.diag(gram))
    if not lengths.all():
        return None
    scaled = gram / lengths / lengths[:, None]
    norm = float(np.abs(scaled).sum(axis=0).max())
    factor, failed = lapack.dpotrf(scaled, lower=0, clean=1)
    if failed:
        return None
    # An estimate of 1/‖G⁻¹‖₁, a lower bound of all eigenvalues.
    smallest = lapack.dpocon(factor, norm)[0] * norm
    return np.asarray(factor * lengths) if smallest > GRAM_IS_ENOUGH else None
