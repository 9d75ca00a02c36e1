"""Subspace distance, Procrustes residual, and the change itself, from a joint factor."""

from __future__ import annotations

import numpy as np

from embgeo.comparison.alignment import cka_values
from embgeo.comparison.joint import Joint
from embgeo.core.quantities import compare as q
from embgeo.core.values import Scalar, Series
from embgeo.numerics.spectra import compute_effective_rank

#: A relative change below this limit is of the size of rounding errors.
LEAST_CHANGE = 1e-10


def similarities(joint: Joint) -> list[Scalar | Series]:
    """Every number of two matrices that does not need neighbors."""
    first = [*subspace_values(joint), *cka_values(joint)]
    return [*first, procrustes(joint), *change_values(joint)]


def subspace_values(joint: Joint) -> list[Scalar | Series]:
    """Distance and angles of the column spaces; sines are computed from residuals."""
    dimensions, cosines, sines = joint.angles()
    wide = max(dimensions)
    if not min(dimensions):
        return [q.SUBSPACE_DISTANCE.undefined("a matrix of rank 0 spans no subspace")]
    angles = np.degrees(np.arctan2(sines, cosines))
    return [
        q.SUBSPACE_DISTANCE.measured(
            float(np.sqrt(np.mean(np.square(sines)))),
            convention=f"column spaces of dimension {dimensions[0]:,} and {dimensions[1]:,} in "
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


def procrustes(joint: Joint) -> Scalar:
    """min_Q ‖X/‖X‖ − (Y/‖Y‖)Q‖_F, from the residual; the narrower matrix gets zero columns."""
    width = max(joint.x.shape[1], joint.y.shape[1])
    x, y = (
        np.pad(a, ((0, 0), (0, width - a.shape[1]))) / np.linalg.norm(a) for a in (joint.x, joint.y)
    )
    u, _, vt = np.linalg.svd(y.T @ x)
    padded = "" if joint.x.shape[1] == joint.y.shape[1] else "; the narrower padded with zeros"
    return q.PROCRUSTES.measured(
        float(np.linalg.norm(x - y @ (u @ vt))),
        convention=f"uncentered; reflections allowed; between 0 and √2{padded}",
    )


def change_values(joint: Joint) -> list[Scalar | Series]:
    """The difference Y − X, which needs matrices with the same number of columns."""
    sums = joint.sums
    quantities = q.RELATIVE_CHANGE, q.MATRIX_COSINE, q.TOKEN_COSINE, q.CHANGE_EFFECTIVE_RANK
    if joint.x.shape[1] != joint.y.shape[1]:
        reason = f"{joint.x.shape[1]:,} columns are not {joint.y.shape[1]:,}"
        return [quantity.undefined(reason) for quantity in quantities]
    relative = float(np.sqrt(sums.difference / sums.first))
    return [
        q.RELATIVE_CHANGE.measured(relative),
        q.MATRIX_COSINE.measured(sums.product / float(np.sqrt(sums.first) * np.sqrt(sums.second))),
        q.TOKEN_COSINE.measured(sums.cosines / joint.n),
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
