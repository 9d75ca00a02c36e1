"""Clusters of directions, and the mean cosine between them (definitions, section 14).

Rows in a few tight clusters have a mean cosine and an uneven partition function without a cone
(Cai et al. 2021; Mickus et al. 2024). A sample of unit rows is clustered. What decides is the mean
cosine over pairs of rows of different clusters: subtracting the means of clusters would subtract
the common mean, too.

Examples
--------
>>> import embgeo
>>> rows = np.eye(8)[np.random.default_rng(0).integers(0, 4, 400)]
>>> rows = rows + 0.1 * np.random.default_rng(1).standard_normal((400, 8))
>>> for offset in (0.0, 1.0):
...     found = embgeo.analyze(rows + offset, sections=["cosine"], reference=False)
...     print(int(found["cosine.clusters"].value), end=" ")
...     print(f"{found['cosine.mean_between_clusters'].value + 0.001:.2f}")
4 0.00
4 0.90
"""

from itertools import combinations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import cosine as q
from embgeo.core.values import Value
from embgeo.metrics.facts import NO_ROWS
from embgeo.metrics.family import Family, Measurement
from embgeo.numerics import clusters
from embgeo.numerics.clumps import find_critical_excess, find_modes
from embgeo.numerics.sampling import generator, sample_rows

#: Rows and starts are drawn whatever the seed: no state of the verdict depends on it.
#: At most this many rows are clustered, and no fewer than `LEAST`.
SAMPLE = 600
LEAST = 20
#: Candidate numbers of clusters, and those that are tried where the last of them is the best.
TRIED = (2, 3, 4, 5, 6, 8, 10, 12, 16)
FURTHER = (20, 24, 32, 48)
#: With a smaller silhouette more clusters are not tried: those of twice as many clusters have it.
RISING = 0.3
#: Least mean silhouette of clusters. Kaufman & Rousseeuw 1990 call 0.5 a reasonable and 0.7 a
#: strong structure; uniform directions in a plane, cut into arcs, reach 0.55.
REASONABLE = 0.6
#: Wide groups, as two modalities or scripts are, are not clusters by their silhouette. They count
#: where rows held out have two modes between any two centers, this many times what chance gives,
#: and there is a gap. With a smaller mean cosine between them they are ends of lines.
SURE = 2.0
LEAST_BETWEEN = -0.1
LEAST_OF_GROUPS = 200
#: Numbers of wide groups, the largest that fits counts.
GROUPS = (5, 4, 3, 2)
#: Smaller clusters make nothing, if they are also less than half as large as clusters on average.
LEAST_SHARE = 0.05
ALL = (q.CLUSTERS, q.SILHOUETTE, q.MEAN_BETWEEN_CLUSTERS)


def rows_read(m: Measurement) -> IntArray:
    if m.facts.m < LEAST or m.facts.d < 2:
        return NO_ROWS
    return sample_rows(m.facts.kept, SAMPLE, generator(0, "clusters"))


def compute(m: Measurement) -> list[Value]:
    facts, rows = m.facts, rows_read(m)
    if not len(rows):
        reason = f"fewer than {LEAST} rows" if facts.d > 1 else "d = 1: rows have two directions"
        return [quantity.undefined(reason) for quantity in ALL]
    unit = m.reader.take_unit(rows)
    m.shared.zero_entries = float((unit == 0.0).mean())
    labels, scores, large = find_large(unit)
    starts = f"{clusters.STARTS} random starts"
    sample = f"{len(rows):,} of {facts.m:,} rows, {starts}" if len(rows) < facts.m else starts
    tried = ", ".join(map(str, (*TRIED, *FURTHER)))
    convention = f"spherical k-means, k among {tried} of largest silhouette"
    values: list[Value] = [
        q.CLUSTERS.measured(
            max(len(large), 1),
            sample=sample,
            convention=f"{convention}; below a silhouette of {REASONABLE} wide groups where other "
            "rows have two modes between their centers, else 1",
        ),
        # Without an error: its spread over seeds comes from the search for clusters, and is ten
        # times the spread over rows.
        q.SILHOUETTE.measured(float(scores.mean()), sample=sample, convention=convention),
    ]
    if len(large) < 2:
        return [*values, q.MEAN_BETWEEN_CLUSTERS.undefined("no clusters were found")]
    inside = np.isin(labels, large)
    # Without an error: another draw of rows may show other clusters.
    between = q.MEAN_BETWEEN_CLUSTERS.measured(
        clusters.mean_between(unit[inside], labels[inside]),
        sample=sample,
        reference=0.0,
        reference_kind="isotropic",
        reference_note="isotropic rows in clusters of the same sizes",
    )
    return [*values, between]


def find_large(unit: FloatArray) -> tuple[IntArray, FloatArray, IntArray]:
    """Find clusters or wide groups: their labels, the silhouettes, and which are large."""
    labels, scores = choose_clusters(unit, generator(0, "centers"))
    if labels.max() == 0:
        labels = find_loose_groups(unit, generator(0, "groups"))
    sizes = np.bincount(labels) / len(unit)
    return labels, scores, np.flatnonzero(sizes >= min(LEAST_SHARE, 0.5 / len(sizes)))


def choose_clusters(unit: FloatArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Choose labels and silhouettes of the best k, after clusters without a gap are joined.

    A single label if no clustering is reasonable.
    """
    best, best_scores = np.zeros(len(unit), dtype=np.int64), np.zeros(len(unit))
    pieces, largest = 0, -1.0
    cosines = unit @ unit.T
    distances = clusters.measure_distances(cosines)
    for k in (*TRIED, *FURTHER):
        few = largest < RISING or pieces < TRIED[-1]
        if 2 * k > len(unit) or (k in FURTHER and few):
            break
        labels = np.unique(clusters.find_clusters(cosines, k, rng), return_inverse=True)[1]
        scores = clusters.silhouettes(distances, labels)
        if scores.mean() > largest:
            pieces, largest = int(labels.max()) + 1, float(scores.mean())
        if scores.mean() >= REASONABLE:
            joined = clusters.join_without_gap(distances, labels)
            if joined.max() == 0:
                continue
            if joined.max() < labels.max():
                labels, scores = joined, clusters.silhouettes(distances, joined)
        if scores.mean() > best_scores.mean():
            best, best_scores = labels, scores
    if best_scores.mean() < REASONABLE:
        best = np.zeros(len(unit), dtype=np.int64)
    return best, best_scores


def find_loose_groups(unit: FloatArray, rng: np.random.Generator) -> IntArray:
    """Label wide groups, from the centers of one half of the rows; all 0 if there are none.

    Between any two centers the other half has to have two modes, and between any two groups a gap.
    """
    none = np.zeros(len(unit), dtype=np.int64)
    distinct = np.unique(unit, axis=0, return_index=True)[1]
    if len(distinct) < LEAST_OF_GROUPS:
        return none
    first, second = np.array_split(rng.permutation(distinct), 2)
    cosines = unit[first] @ unit[first].T
    distances = clusters.measure_distances(unit @ unit.T)
    for k in GROUPS:
        found = clusters.find_clusters(cosines, k, rng)
        centers = np.array([unit[first[found == label]].mean(axis=0) for label in np.unique(found)])
        labels = np.argmax(unit @ centers.T - np.square(centers).sum(axis=1) / 2.0, axis=1)
        if (
            len(np.unique(labels)) == k
            and are_apart(unit[second], labels[second], centers)
            and clusters.mean_between(unit, labels) >= LEAST_BETWEEN
            and clusters.join_without_gap(distances, labels).max() + 1 == k
        ):
            return np.asarray(labels, dtype=np.int64)
    return none


def are_apart(unit: FloatArray, labels: IntArray, centers: FloatArray) -> bool:
    """Tell whether rows have two modes between any two centers, this many times those of chance."""
    for one, other in combinations(range(len(centers)), 2):
        rows = unit[(labels == one) | (labels == other)]
        if len(rows) < 3:
            return False
        excess = find_modes(rows @ (centers[other] - centers[one])).excess
        if excess <= SURE * find_critical_excess(len(rows)):
            return False
    return True


FAMILY = Family("cosine", compute, rows_read=rows_read)
