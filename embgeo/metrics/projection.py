"""Two-dimensional pictures of the rows (definitions, section 2).

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((500, 8)) + [5, 0, 0, 0, 0, 0, 0, 0]
>>> found = embgeo.analyze(W, sections=["projection"], reference=False)
>>> found["projection.svd2"].xy.shape, round(found["projection.svd2_share"].value, 2)
((500, 2), 0.82)
"""

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.quantities import projection as q
from embgeo.core.rows import choose_bound
from embgeo.core.values import Points, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import row_moments
from embgeo.stats import Projection2
from embgeo.stats.statistic import Statistic

#: Rows that t-SNE places, and its perplexity.
MOST_PLACED, PERPLEXITY = 5_000, 30.0


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
    for name, eigen, quantity in (
        ("svd2", shared.eigen, q.SVD2),
        ("pca2", shared.eigen_centered, q.PCA2),
    ):
        xy = shared.find(Projection2, name).values()
        if quantity is q.PCA2 and shared.all_rows_equal:
            continue
        first, second = (eigen.values[:2] / eigen.values.sum()).tolist()
        if quantity is q.SVD2:
            values.append(q.SVD2_SHARE.measured(first + second))
        values.append(
            Points(
                quantity,
                xy,
                f"axis 1 ({100 * first:.3g}%)",
                f"axis 2 ({100 * second:.3g}%)",
                (first, second),
            )
        )
    if m.facts.options.plane == "tsne":
        values.append(place_neighbors(m))
    return values


def place_neighbors(m: Measurement) -> Points:
    """Place up to `MOST_PLACED` rows by t-SNE; the others have no place."""
    # Its import takes as long as a small analysis.
    from sklearn.manifold import TSNE

    facts, reader = m.facts, m.reader
    rows = spread_rows(facts, MOST_PLACED)
    reader.announce(f"t-SNE of {len(rows):,} rows", 0)
    tsne = TSNE(
        init="pca",
        perplexity=min(PERPLEXITY, (len(rows) - 1) / 3.0),
        random_state=facts.options.seed % 2**32,
        metric="euclidean",
        n_jobs=1,
    )
    # Of unit rows, whose squared distances are 2 − 2 cos.
    xy = np.full((facts.m, 2), np.nan)
    xy[np.searchsorted(facts.kept, rows)] = tsne.fit_transform(reader.take_unit(rows))
    note = "" if len(rows) == facts.m else f"{len(rows):,} of {facts.m:,} rows"
    return Points(q.TSNE, xy, "t-SNE 1", "t-SNE 2", (0.0, 0.0), note)


def spread_rows(facts: Facts, most: int) -> IntArray:
    """Choose at most this many kept rows, evenly over the order of frequency; all of so few."""
    if facts.m <= most:
        return facts.kept
    order = np.arange(facts.m)
    if facts.frequency is not None:
        order = np.argsort(-facts.frequency.counts[facts.kept], kind="stable")
    return np.sort(facts.kept[order[np.linspace(0, facts.m - 1, most).astype(np.int64)]])


FAMILY = Family("projection", compute, first=(row_moments,), second=second, absent=absent)
