"""Two-dimensional pictures of the rows (definitions, section 2)."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.quantities import projection as q
from embgeo.core.values import Points, Value
from embgeo.metrics.base import NO_ROWS, Context, Eigen, Seen, row_moments
from embgeo.stats import Projection2
from embgeo.stats.statistic import Statistic

FAMILY = "projection"


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
        ("svd2", seen.eigen, q.SVD2, q.SVD2_SHARE),
        ("pca2", seen.eigen_centered, q.PCA2, q.PCA2_SHARE),
    ):
        xy = seen.find(Projection2, ("projection", name)).values()
        if quantity is q.PCA2 and seen.all_rows_equal:
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
