"""Clusters of directions, and the cone and isotropy within them.

Rows in a few tight clusters have a mean cosine and an uneven partition function without a cone
(Cai et al. 2021; Mickus et al. 2024). A sample of unit rows is clustered, and measured again after
each row's cluster mean is subtracted.

Examples
--------
>>> import embgeo
>>> rng = np.random.default_rng(0)
>>> rows = np.eye(8)[rng.integers(0, 4, 400)] + 0.1 * rng.standard_normal((400, 8))
>>> found = embgeo.analyze(rows, sections=["cosine"], reference=False)
>>> int(found["cosine.clusters"].value), round(found["cosine.mean_within_clusters"].value, 2)
(4, -0.0)
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import cosine as q
from embgeo.core.values import Scalar, Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.isotropy import compute_i1_i2
from embgeo.numerics.clusters import STARTS, find_clusters, measure_distances, members, silhouettes
from embgeo.numerics.sampling import sample_rows
from embgeo.stats.reader import RowReader

FAMILY = "cosine"

#: At most this many rows are clustered, and no fewer than `LEAST`.
SAMPLE = 600
LEAST = 20
#: Candidate numbers of clusters.
TRIED = (2, 3, 4, 5, 6, 8, 10, 12, 16)
#: Least mean silhouette of clusters. Kaufman & Rousseeuw 1990 call 0.5 a reasonable and 0.7 a
#: strong structure; uniform directions in a plane, cut into arcs, reach 0.55.
REASONABLE = 0.6
REFERENCE_NOTE = "isotropic rows in clusters of the same sizes"

ALL = (q.CLUSTERS, q.SILHOUETTE, q.MEAN_WITHIN_CLUSTERS, q.I1_WITHIN_CLUSTERS)


def rows_read(facts: Facts) -> IntArray:
    if facts.m < LEAST or facts.d < 2:
        return NO_ROWS
    return sample_rows(facts.kept, SAMPLE, facts.generator("clusters"))


def compute(facts: Facts, reader: RowReader) -> list[Value]:
    rows = rows_read(facts)
    if not len(rows):
        reason = f"fewer than {LEAST} rows" if facts.d > 1 else "d = 1: rows have two directions"
        return [quantity.undefined(reason) for quantity in ALL]
    unit = reader.take_unit(rows)
    labels, scores = choose_clusters(unit, facts.generator("centers"))
    k = int(labels.max()) + 1
    partial = len(rows) < facts.m
    starts = f"{STARTS} random starts"
    sample = f"{len(rows):,} of {facts.m:,} rows, {starts}" if partial else starts
    # For rows drawn without replacement.
    shrink = float(np.sqrt((1.0 - len(rows) / facts.m) / len(rows)))
    convention = f"spherical k-means, k among {', '.join(map(str, TRIED))} of largest silhouette"
    values: list[Value] = [
        q.CLUSTERS.measured(
            k, sample=sample, convention=f"{convention}; 1 below a silhouette of {REASONABLE}"
        ),
        # Without an error: its spread over seeds comes from the search for clusters, and is ten
        # times the spread over rows.
        q.SILHOUETTE.measured(float(scores.mean()), sample=sample, convention=convention),
    ]
    rest = subtract_centers(unit, labels)
    if k == 1 or not len(rest):
        reason = "no clusters were found" if k == 1 else "the rows of each cluster are equal"
        return [*values, *(quantity.undefined(reason) for quantity in ALL[2:])]
    even = facts.generator("isotropic clusters").standard_normal(unit.shape)
    even /= np.linalg.norm(even, axis=1)[:, None]
    return [
        *values,
        measure_mean(rest, shrink, sample),
        q.I1_WITHIN_CLUSTERS.measured(
            compute_i1(rest),
            sample=sample,
            convention="E = right singular vectors of the sample, v and −v",
            reference=compute_i1(subtract_centers(even, labels)),
            reference_kind="isotropic",
            reference_note=REFERENCE_NOTE,
        ),
    ]


def choose_clusters(unit: FloatArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Labels and silhouettes of the best k; a single label if no clustering is reasonable."""
    best, best_scores = np.zeros(len(unit), dtype=np.int64), np.full(len(unit), -1.0)
    cosines = unit @ unit.T
    distances = measure_distances(cosines)
    for k in TRIED:
        if 2 * k > len(unit):
            break
        labels = np.unique(find_clusters(cosines, k, rng), return_inverse=True)[1]
        scores = silhouettes(distances, labels)
        if scores.mean() > best_scores.mean():
            best, best_scores = labels, scores
    if best_scores.mean() < REASONABLE:
        best = np.zeros(len(unit), dtype=np.int64)
    return best, best_scores


def subtract_centers(unit: FloatArray, labels: IntArray) -> FloatArray:
    """Rows minus their cluster means, scaled to norm 1; rows equal to their mean are dropped."""
    belongs = members(labels, int(labels.max()) + 1)
    means = (belongs.T @ unit) / belongs.sum(axis=0)[:, None]
    rest = unit - means[labels]
    lengths = np.linalg.norm(rest, axis=1)
    left = lengths > 1e-9
    return np.asarray(rest[left] / lengths[left, None])


def measure_mean(rest: FloatArray, shrink: float, sample: str) -> Scalar:
    """Mean cosine over pairs, with its error from the mean cosine of each row with the others."""
    n = len(rest)
    if n < 2:
        return q.MEAN_WITHIN_CLUSTERS.undefined("a single row has no pairs")
    total = rest.sum(axis=0)
    by_row = (rest @ total - 1.0) / (n - 1.0)
    return q.MEAN_WITHIN_CLUSTERS.measured(
        float(by_row.mean()),
        standard_error=2.0 * float(by_row.std(ddof=1)) * shrink if shrink else None,
        error_kind="monte_carlo",
        sample=sample,
        # The centered rows of a cluster sum to 0, whatever its size: Σ_(j≠i) cos_ij = −1.
        reference=-1.0 / (n - 1.0),
        reference_kind="isotropic",
        reference_note=REFERENCE_NOTE,
    )


def compute_i1(rest: FloatArray) -> float:
    vectors = np.linalg.svd(rest, full_matrices=False)[2]
    exponents = rest @ vectors.T
    log_z = np.log(np.stack([np.exp(exponents).sum(axis=0), np.exp(-exponents).sum(axis=0)]))
    return compute_i1_i2(log_z)[0]
