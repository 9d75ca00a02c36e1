"""Two-dimensional pictures of the rows (definitions, section 2).

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((500, 8)) + [5, 0, 0, 0, 0, 0, 0, 0]
>>> found = embgeo.analyze(W, sections=["projection"], reference=False)
>>> found["projection.svd2"].xy.shape, round(found["projection.svd2_share"].value, 2)
((500, 2), 0.82)
>>> round(found["projection.pca2_share"].value, 2)  # without the common offset
0.3
"""

import numpy as np

from embgeo.core.quantities import projection as q
from embgeo.core.rows import choose_bound
from embgeo.core.values import Points, Value
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import row_moments
from embgeo.stats import Projection2
from embgeo.stats.statistic import Statistic


def absent(m: Measurement) -> str:
    return "a plane needs at least two columns" if m.facts.d < 2 else ""


def second(m: Measurement) -> list[Statistic]:
    facts, shared = m.facts, m.shared
    bound = choose_bound(facts.m)
    return [
        Projection2("svd2", shared.eigen.vectors[:, :2], np.zeros(facts.d), bound),
        Projection2("pca2", shared.eigen_centered.vectors[:, :2], shared.moments.mean, bound),
    ]


def compute(m: Measurement) -> list[Value]:
    shared = m.shared
    values: list[Value] = []
    for name, eigen, quantity, share in (
        ("svd2", shared.eigen, q.SVD2, q.SVD2_SHARE),
        ("pca2", shared.eigen_centered, q.PCA2, q.PCA2_SHARE),
    ):
        xy = shared.find(Projection2, name).values()
        if quantity is q.PCA2 and shared.all_rows_equal:
            values.append(share.undefined(shared.all_rows_equal))
            continue
        first, second = (eigen.values[:2] / eigen.values.sum()).tolist()
        values.append(share.measured(first + second))
        values.append(
            Points(
                quantity,
                xy,
                f"axis 1 ({100 * first:.3g}%)",
                f"axis 2 ({100 * second:.3g}%)",
                (first, second),
            )
        )
    return values


FAMILY = Family("projection", compute, first=(row_moments,), second=second, absent=absent)
