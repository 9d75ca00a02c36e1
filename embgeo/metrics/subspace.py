"""Distance between input and output column spaces (definitions, section 6; Inan appendix B)."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import subspace as q
from embgeo.core.values import Series, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.shared import SharedStatistics
from embgeo.stats import StackedQR
from embgeo.stats.statistic import Statistic

FAMILY = "subspace"


def absent(facts: Facts) -> str:
    return "" if facts.output_width else facts.output_absent


def second(facts: Facts) -> list[Statistic]:
    return [StackedQR("input|output", facts.d + (facts.output_width or 0), of="paired")]


def compute(facts: Facts, shared: SharedStatistics) -> list[Value]:
    qr = shared.find(StackedQR, ("stacked qr", "input|output"))
    return subspace_values(qr.r, facts.d, qr.n)


def subspace_values(r: FloatArray, width: int, rows: int) -> list[Value]:
    """Values from the triangular factor of ``[X | Y]``, X of `width` columns, over `rows` tokens.

    In the coordinates of the common orthonormal factor X and Y are small matrices, and the part
    of one basis that lies off the other space is formed there directly, not as 1 − cos².
    """
    x, y = column_basis(r[:, :width], rows), column_basis(r[:, width:], rows)
    if not x.shape[1] or not y.shape[1]:
        reason = "a matrix of rank 0 spans no subspace"
        return [q.DISTANCE.undefined(reason)]
    larger, smaller = (x, y) if x.shape[1] >= y.shape[1] else (y, x)
    cosines, sines = principal_cosines_and_sines(larger, smaller)
    distance = float(np.sqrt(np.mean(np.square(sines))))
    angles = np.degrees(np.arctan2(sines, cosines))
    chance = float(np.sqrt(max(0.0, 1.0 - larger.shape[1] / rows)))
    return [
        q.DISTANCE.measured(
            distance,
            convention="column spaces in R^N; V is the smaller space; numerical ranks",
            reference=chance,
            reference_note=(
                f"chance: √(1 − p/N) for random {larger.shape[1]}-dimensional subspaces of "
                f"R^{rows:,}"
            ),
        ),
        q.RANK_INPUT.measured(float(x.shape[1])),
        q.RANK_OUTPUT.measured(float(y.shape[1])),
        Series(
            q.PRINCIPAL_ANGLES,
            np.arange(1, len(angles) + 1, dtype=np.float64),
            {"principal angle": angles},
            "index i",
            "θ_i (°)",
        ),
    ]


def column_basis(a: FloatArray, rows: int) -> FloatArray:
    """Orthonormal basis of the column space, by numerical rank; columns are scaled first so that
    a token dimension of small norm still counts as a dimension."""
    norms = np.linalg.norm(a, axis=0)
    if not norms.any():
        return np.zeros((a.shape[0], 0))
    scaled = a[:, norms > 0] / norms[norms > 0]
    u, sigma, _ = np.linalg.svd(scaled, full_matrices=False)
    rank = int(np.count_nonzero(sigma > sigma[0] * max(rows, a.shape[1]) * 2.0**-52))
    return np.asarray(u[:, :rank])


def principal_cosines_and_sines(
    larger: FloatArray, smaller: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """cos θ_i falling and sin θ_i rising, each to full relative accuracy where it is small."""
    inside = larger.T @ smaller
    residual = smaller - larger @ inside
    # Once more: the first projection leaves a rounding error inside the larger space.
    residual -= larger @ (larger.T @ residual)
    cosines = np.linalg.svd(inside, compute_uv=False)
    sines = np.linalg.svd(residual, compute_uv=False)[::-1]
    return np.minimum(cosines, 1.0), np.minimum(sines, 1.0)
