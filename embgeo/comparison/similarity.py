"""Subspace distance, CKA, Procrustes residual, and the change itself, from a joint factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from embgeo.comparison.shared import Shared
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import compare as q
from embgeo.core.values import Scalar, Series
from embgeo.numerics.principal_angles import column_basis, principal_cosines_and_sines
from embgeo.numerics.spectra import compute_effective_rank
from embgeo.stats import Moments, PairedSums, StackedQR
from embgeo.stats.statistic import Statistic

#: A change smaller than this share of the matrices is of the size of rounding errors.
LEAST_CHANGE = 1e-10
#: The Cholesky factor of the Gram matrix (of columns scaled to length 1) serves while its smallest
#: eigenvalue is above this: squared sines are off by about 1e-14 over it. Below, X or Y is
#: ill-conditioned or their spaces nearly agree, and the rows are read again for a QR factor.
GRAM_IS_ENOUGH = 1e-5


def similarities(joint: Joint) -> list[Scalar | Series]:
    """Every number of two matrices that needs no neighbors."""
    return [
        *subspace_values(joint),
        cka(joint),
        procrustes(joint),
        *change_values(joint),
    ]


def subspace_values(joint: Joint) -> list[Scalar | Series]:
    """Distance and angles of the column spaces; sines are formed from residuals."""
    x, y = joint.bases()
    if not x.shape[1] or not y.shape[1]:
        return [q.SUBSPACE_DISTANCE.undefined("a matrix of rank 0 spans no subspace")]
    larger, smaller = (x, y) if x.shape[1] >= y.shape[1] else (y, x)
    cosines, sines = principal_cosines_and_sines(larger, smaller)
    angles = np.degrees(np.arctan2(sines, cosines))
    wide = larger.shape[1]
    return [
        q.SUBSPACE_DISTANCE.measured(
            float(np.sqrt(np.mean(np.square(sines)))),
            convention=f"column spaces of dimension {x.shape[1]:,} and {y.shape[1]:,} in "
            f"R^{joint.n:,}; V is the smaller; uncentered",
            reference=float(np.sqrt(max(0.0, 1.0 - wide / joint.n))),
            reference_kind="chance",
            reference_note=f"chance: √(1 − p/N) for random {wide:,}-dimensional subspaces of "
            f"R^{joint.n:,}",
        ),
        Series(
            q.PRINCIPAL_ANGLES,
            np.arange(1, len(angles) + 1, dtype=np.float64),
            {"principal angle": angles},
            "index i",
            "θ_i (°)",
        ),
    ]


def cka(joint: Joint) -> Scalar:
    """Linear CKA, and its mean over all ways to pair the tokens of one with those of the other.

    That mean is tr(K)·tr(L) / ((N−1)·‖K‖_F·‖L‖_F) for the centered Gram matrices K and L.
    """
    scatter, p = joint.moments.scatter, joint.p
    level = np.diag(joint.moments.gram())
    parts = (slice(None, p), slice(p, None))
    for part in parts:
        if not np.trace(scatter[part, part]) > level[part].sum() * 1e-28:
            return q.CKA.undefined("all rows of one side are equal, centring leaves nothing")
    # Scaled by their traces first, so that no square overflows.
    own = [float(np.trace(scatter[part, part])) for part in parts]
    xx, yy = (scatter[part, part] / size for part, size in zip(parts, own, strict=True))
    xy = scatter[parts[0], parts[1]] / np.sqrt(own[0]) / np.sqrt(own[1])
    lengths = float(np.linalg.norm(xx) * np.linalg.norm(yy))
    return q.CKA.measured(
        min(1.0, float(np.square(xy).sum()) / lengths),
        convention="linear, centered, biased",
        reference=min(1.0, 1.0 / ((joint.n - 1) * lengths)),
        reference_kind="chance",
        reference_note="chance: the mean over all pairings of the tokens",
    )


def procrustes(joint: Joint) -> Scalar:
    """min_Q ‖X/‖X‖ − (Y/‖Y‖)Q‖_F, the residual formed."""
    x, y = same_width(joint.x, joint.y)
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    u, _, vt = np.linalg.svd(y.T @ x)
    padded = "" if joint.x.shape[1] == joint.y.shape[1] else "; the narrower padded with zeros"
    return q.PROCRUSTES.measured(
        float(np.linalg.norm(x - y @ (u @ vt))),
        convention=f"uncentered; reflections allowed; between 0 and √2{padded}",
    )


def same_width(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The narrower one padded with zero columns."""
    width = max(x.shape[1], y.shape[1])
    padded = [np.pad(a, ((0, 0), (0, width - a.shape[1]))) for a in (x, y)]
    return padded[0], padded[1]


def change_values(joint: Joint) -> list[Scalar | Series]:
    """The difference Y − X itself; it takes matrices of equally many columns."""
    sums = joint.sums
    wanted = (q.RELATIVE_CHANGE, q.MATRIX_COSINE, q.CHANGE_EFFECTIVE_RANK)
    if joint.x.shape[1] != joint.y.shape[1]:
        reason = f"{joint.x.shape[1]:,} columns are not {joint.y.shape[1]:,}"
        return [quantity.undefined(reason) for quantity in wanted]
    relative = float(np.sqrt(sums.difference / sums.first))
    return [
        q.RELATIVE_CHANGE.measured(relative),
        q.MATRIX_COSINE.measured(sums.product / float(np.sqrt(sums.first) * np.sqrt(sums.second))),
        *change_spectrum(joint, relative),
    ]


def change_spectrum(joint: Joint, relative: float) -> list[Scalar | Series]:
    if not relative > LEAST_CHANGE:
        reason = "nothing changed" if relative == 0 else "the change is of the size of rounding"
        return [q.CHANGE_EFFECTIVE_RANK.undefined(reason)]
    sigma = np.asarray(np.linalg.svd(joint.y - joint.x, compute_uv=False), dtype=np.float64)
    return [
        q.CHANGE_EFFECTIVE_RANK.measured(
            compute_effective_rank(sigma), convention="σ, not σ²; uncentered"
        ),
        Series(
            q.CHANGE_SINGULAR_VALUES,
            np.arange(1, len(sigma) + 1, dtype=np.float64),
            {"σ_k / σ_1": sigma / sigma[0]},
            "index k",
            "σ_k / σ₁",
            log_y=True,
            note=f"σ₁ = {sigma[0]:.6g}",
        ),
    ]


@dataclass(frozen=True, slots=True)
class Joint:
    """What the passes over the shared rows have left of them.

    Attributes
    ----------
    n : int
        Shared tokens.
    p : int
        Columns of X; those of Y follow.
    moments : Moments
        Of the rows ``[x | y]``.
    sums : PairedSums
    factor : float64 array, shape (m, p + q)
        FᵀF is the Gram matrix of ``[X | Y]``: up to a rotation of R^N that both share, its columns
        are those of X and of Y.
    full_rank : bool
        Whether X and Y are known to have full column rank.
    """

    n: int
    p: int
    moments: Moments
    sums: PairedSums
    factor: FloatArray
    full_rank: bool

    @property
    def x(self) -> FloatArray:
        return self.factor[:, : self.p]

    @property
    def y(self) -> FloatArray:
        return self.factor[:, self.p :]

    def bases(self) -> tuple[FloatArray, FloatArray]:
        """Orthonormal bases of both column spaces."""
        if self.full_rank:
            return np.linalg.qr(self.x)[0], np.linalg.qr(self.y)[0]
        return column_basis(self.x, self.n), column_basis(self.y, self.n)


def read_joint(
    shared: Shared, advance: Callable[[int], None], beside: Sequence[Statistic] = ()
) -> Joint:
    """One pass over both matrices; a second where the Gram matrix is not accurate enough.

    Parameters
    ----------
    advance : callable
        Hears of rows that were read.
    beside : sequence of Statistic
        Others that the first pass feeds as well.
    """
    width = shared.p + shared.q
    moments, sums = Moments(width), PairedSums(shared.p)
    shared.fold([moments, sums, *beside], advance)
    factor = cholesky_factor(moments.gram())
    if factor is not None:
        return Joint(shared.n, shared.p, moments, sums, factor, full_rank=True)
    qr = StackedQR("first|second", width)
    shared.fold([qr], lambda _rows: None)
    return Joint(shared.n, shared.p, moments, sums, qr.r, full_rank=False)


def cholesky_factor(gram: FloatArray) -> FloatArray | None:
    """Upper triangular F with FᵀF = `gram`; None where it would not be accurate."""
    from scipy.linalg import lapack

    lengths = np.sqrt(np.diag(gram))
    if not lengths.all():
        return None
    scaled = gram / lengths / lengths[:, None]
    norm = float(np.abs(scaled).sum(axis=0).max())
    factor, failed = lapack.dpotrf(scaled, lower=0, clean=1)
    if failed:
        return None
    # An estimate of 1/‖G⁻¹‖₁, which no eigenvalue lies below.
    smallest = lapack.dpocon(factor, norm)[0] * norm
    return np.asarray(factor * lengths) if smallest > GRAM_IS_ENOUGH else None
