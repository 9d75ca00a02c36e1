"""The rows of shared tokens of two matrices, and joint sums of them from two or three passes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.matrix import Matrix
from embgeo.metrics.shared import PROBED, ROUGH
from embgeo.numerics import principal_angles
from embgeo.stats import DistanceTo, Moments, PairedSums, StackedQR
from embgeo.stats.block import Block
from embgeo.stats.moments import SAFETY, are_few
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


@dataclass(eq=False)
class ChangeMoments(Moments):
    """Moments of rows ``[x | y − x]``, for rows ``[x | y]`` of equal widths.

    A small change is a small block of its own: its Gram matrix does not cancel, and the columns are
    far from dependent where those of X and Y nearly agree.
    """

    def update(self, block: Block) -> None:
        rows = np.array(block.stored if self.probed else block.rows)
        x, y = np.split(rows, 2, axis=1)
        y -= x  # of nearly equal entries exact in float32, too
        super().update(Block(block.index, rows))


def add_first(changes: FloatArray) -> FloatArray:
    """Turn the columns of ``[X | Y − X]`` into those of ``[X | Y]``, in place."""
    x, y = np.split(changes, 2, axis=1)
    y += x
    return changes


@dataclass(frozen=True, slots=True)
class Joint:
    """The sums of the passes over shared rows."""

    #: The number of shared tokens.
    n: int
    #: Columns of X; those of Y follow.
    p: int
    #: The mean of the rows ``[x | y]``.
    mean: FloatArray
    #: Their Σ(r − μ)(r − μ)ᵀ; of few rows R with RᵀR equal to it.
    scatter: FloatArray
    few: bool
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
    """Read both matrices in two passes, and in another if float32 or a Gram matrix is not precise.

    The first pass also feeds the statistics in `more`. What rounding in float32 adds to the scatter
    matrix C, E, changes its factor by C^{-1/2}·E·C^{-1/2}, relatively, and that of the Gram matrix,
    which has one part more, by less.
    """
    p, width = shared.p, shared.p + shared.q
    # Of few rows the QR factor is smaller than a Gram matrix, which would be singular.
    few, equal = are_few(shared.n, width), p == shared.q
    probed = not few and shared.n * width**2 >= PROBED
    kind = ChangeMoments if equal and not few else Moments
    moments, sums = kind(width, few=few, probed=probed), PairedSums(p)
    shared.fold([moments, sums, *more], advance)
    factor, scatter = None, moments.factor if few else moments.scatter
    if not few:
        enough = max(GRAM_IS_ENOUGH, SAFETY * moments.find_rounding() / ROUGH)
        columns = p if equal and not sums.difference else width
        own, least = factor_scatter(scatter[:columns, :columns], enough)
        if GRAM_IS_ENOUGH < least <= enough:
            moments = replace(moments, probed=False)
            shared.fold([moments], lambda _rows: None)
            scatter = moments.scatter
            own, least = factor_scatter(scatter[:columns, :columns], GRAM_IS_ENOUGH)
        if least > GRAM_IS_ENOUGH:
            own = add_row(own, moments.mean[:columns] * np.sqrt(shared.n))
            factor = own if columns == width else np.pad(own, (0, width - columns))
    full_rank = factor is not None
    if factor is None:
        qr = StackedQR("first|second", width)
        if isinstance(moments, ChangeMoments):
            # Of a row that is far shorter than the other, the difference has lost the digits.
            moments = Moments(width, probed=probed)
            shared.fold([qr, moments], lambda _rows: None)
            scatter = moments.scatter
        else:
            shared.fold([qr], lambda _rows: None)
        factor = qr.r
    mean = moments.mean
    if isinstance(moments, ChangeMoments):
        factor, scatter = add_first(factor), add_first(add_first(scatter).T)
        mean = add_first(mean[None])[0]
    first, second = DistanceTo("mean", mean[:p]), DistanceTo("mean", mean[p:])
    shared.fold_sides([first], [second])
    distances = first.values(), second.values()
    return Joint(shared.n, p, mean, scatter, few, sums, distances, factor, full_rank)


def factor_scatter(scatter: FloatArray, enough: float) -> tuple[FloatArray, float]:
    """Return upper triangular F with FᵀF = `scatter`, and how far it is from singular.

    That is the smallest eigenvalue of the matrix scaled to a diagonal of ones, or a lower bound
    above `enough`; 0 where there is no factor.
    """
    from scipy.linalg import eigvalsh, lapack

    lengths = np.sqrt(np.diag(scatter))
    if not lengths.all():
        return scatter, 0.0

    def scale() -> FloatArray:
        scaled = scatter / lengths
        scaled /= lengths[:, None]
        return scaled

    factor = scale()
    norm = float(np.abs(factor).sum(axis=0).max())
    # Its transpose is the same matrix, in the column order of LAPACK, and takes the factor.
    factor, failed = lapack.dpotrf(factor.T, lower=0, clean=1, overwrite_a=1)
    # An estimate of 1/‖C⁻¹‖₁ bounds all eigenvalues.
    least = 0.0 if failed else float(lapack.dpocon(factor, norm)[0] * norm)
    if 0.0 < least <= enough:
        least = float(eigvalsh(scale(), subset_by_index=[0, 0], overwrite_a=True)[0])
    factor *= lengths
    return factor, least


def add_row(factor: FloatArray, row: FloatArray) -> FloatArray:
    """Make upper triangular F with FᵀF = RᵀR + rrᵀ of a factor R and a row r of any length.

    `factor` is overwritten. With Rᵀz = r that is Rᵀ(I + zzᵀ)R. The factor of I + zzᵀ is known: with
    t_j = 1 + Σ_{i≤j} z_i², its diagonal is √(t_j/t_{j−1}), and its other entries are
    z_j·z_k/√(t_j·t_{j−1}). Nothing cancels, so that a long row drowns nothing.
    """
    from scipy.linalg import solve_triangular

    z = solve_triangular(factor, row, trans="T")
    totals = np.sqrt(1.0 + np.cumsum(np.append(0.0, np.square(z))))
    before, after = totals[:-1, None], totals[1:, None]
    # Σ_{k>j} z_k·R_k for each j.
    below = np.cumsum((z[:, None] * factor)[:0:-1], axis=0)[::-1]
    below *= (z[:, None] / (after * before))[:-1]
    factor *= after / before
    factor[:-1] += below
    return factor
