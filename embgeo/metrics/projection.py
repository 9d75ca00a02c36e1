"""Two-dimensional pictures of the rows (definitions, section 2)."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.values import Points, Quantity, Value
from embgeo.metrics.base import NO_ROWS, Context, Eigen, Seen, row_moments
from embgeo.stats import Projection2
from embgeo.stats.base import Statistic

FAMILY = "projection"

SVD2 = Quantity(
    "projection.svd2",
    "SVD projection",
    "Each token's row on the two strongest directions of the matrix as it is. In a narrow cone "
    "the cloud lies to one side of the origin.",
    "rows of W·V₂, V₂ the first two right singular vectors, signs such that ⟨mean row, v⟩ ≥ 0",
    "Gao et al. 2019, §3.1; Gong et al. 2018, Fig. 1c",
)
PCA2 = Quantity(
    "projection.pca2",
    "PCA projection",
    "Each token's row on the two directions of largest variance, after the mean row is subtracted.",
    "rows of (W − 1μᵀ)·V₂ of the centered matrix, signs such that the largest entry is positive",
    "Wang et al. 2020, footnote 1",
)
SVD2_SHARE = Quantity(
    "projection.svd2_share",
    "Energy in the SVD picture",
    "Share of the sum of squares that the two axes hold: how much of the matrix the picture shows.",
    "(σ₁² + σ₂²) / Σσ²",
    "Gao et al. 2019, §3.1",
)
PCA2_SHARE = Quantity(
    "projection.pca2_share",
    "Variance in the PCA picture",
    "Share of the variance that the two axes hold.",
    "(σ₁² + σ₂²) / Σσ², centered",
    "standard",
)


def absent(context: Context) -> str:
    return "a plane needs at least two columns" if context.d < 2 else ""


def first(context: Context) -> list[Statistic]:
    return [row_moments(context)]


def second(context: Context, seen: Seen) -> list[Statistic]:
    return [
        Projection2("svd2", seen.eigen.vectors[:, :2], np.zeros(context.d)),
        Projection2("pca2", seen.eigen_centered.vectors[:, :2], seen.moments.mean),
    ]


def rows_read(context: Context, seen: Seen) -> IntArray:
    return NO_ROWS


def compute(context: Context, seen: Seen) -> list[Value]:
    values: list[Value] = []
    for name, eigen, quantity, share in (
        ("svd2", seen.eigen, SVD2, SVD2_SHARE),
        ("pca2", seen.eigen_centered, PCA2, PCA2_SHARE),
    ):
        xy = seen.find(Projection2, ("projection", name)).values()
        if quantity is PCA2 and seen.all_rows_equal:
            values.append(share.undefined(seen.all_rows_equal))
            continue
        held = _shares(eigen)
        values.append(share.measured(held[0] + held[1]))
        values.append(
            Points(
                quantity,
                xy,
                f"axis 1 ({100 * held[0]:.3g} %)",
                f"axis 2 ({100 * held[1]:.3g} %)",
                held,
            )
        )
    return values


def _shares(eigen: Eigen) -> tuple[float, float]:
    total = float(eigen.values.sum())
    return float(eigen.values[0]) / total, float(eigen.values[1]) / total
