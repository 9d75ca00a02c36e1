"""Joint sums of two matrices over the same tokens, from two or three passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from embgeo.comparison.shared import Shared
from embgeo.core.arrays import FloatArray
from embgeo.numerics.principal_angles import (
    column_basis,
    cosines_and_sines,
    principal_cosines_and_sines,
)
from embgeo.stats import DistanceTo, Moments, PairedSums, StackedQR
from embgeo.stats.statistic import Statistic

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
        """Dimensions of both column spaces, and cosines and sines of the angles between them."""
        p, q = self.p, self.y.shape[1]
        if self.full_rank and p >= q:
            # The factor is triangular: the first p unit vectors span the space of X.
            return (p, q), *cosines_and_sines(*np.split(np.linalg.qr(self.y)[0], [p]))
        if self.full_rank:
            x, y = np.linalg.qr(self.x)[0], np.linalg.qr(self.y)[0]
        else:
            x, y = column_basis(self.x, self.n), column_basis(self.y, self.n)
        dimensions = x.shape[1], y.shape[1]
        if not all(dimensions):
            return dimensions, np.zeros(0), np.zeros(0)
        smaller, larger = sorted((y, x), key=np.size)
        return dimensions, *principal_cosines_and_sines(larger, smaller)


def read_joint(
    shared: Shared, advance: Callable[[int], None], more: Sequence[Statistic] = ()
) -> Joint:
    """Two passes over both matrices, and a third if a QR factor is needed.

    The first pass also feeds the statistics in `more`.
    """
    p, width = shared.p, shared.p + shared.q
    moments, sums = Moments(width), PairedSums(p)
    shared.fold([moments, sums, *more], advance)
    factor = cholesky_factor(moments.gram())
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
    """Upper triangular F with FᵀF = `gram`; None if it would not be accurate."""
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
