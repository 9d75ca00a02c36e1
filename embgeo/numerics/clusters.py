"""Clusters of unit rows: spherical k-means and silhouettes."""

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray

#: Number of starts of k-means, of which the best is kept, and most steps of each.
STARTS = 3
STEPS = 15
#: Share of the rows of a cluster that lie at its boundary with another, and of its neighbors that
#: are on the other side where there is no gap.
BOUNDARY = 0.05
CROSSING = 0.03
#: Fits that agree to this share are equal: the first start counts.
ROUNDING = 1e-12
#: Largest squared length of a sum of unit rows that is due to rounding.
CANCELLED = 1e-12


def find_clusters(cosines: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Label rows 0 … k − 1 by spherical k-means (Dhillon & Modha 2001), the best of several starts.

    A center is the scaled sum s of its rows: ⟨u, s⟩ and ‖s‖² are sums of cosines between rows.

    `cosines`: shape (n, n); cosines between all rows. `k`: at most n. `rng`: draws the first
    centers as in k-means++ (Arthur & Vassilvitskii 2007).
    """
    starts = [draw_centers(cosines, k, rng) for _ in range(STARTS)]
    found = [move_centers(cosines, cosines[:, centers]) for centers in starts]
    best = max(score for score, _ in found) * (1.0 - ROUNDING)
    return next(labels for score, labels in found if score >= best)


def move_centers(cosines: FloatArray, near: FloatArray) -> tuple[float, IntArray]:
    """Move centers to the sums of their rows until none changes; return their fit and the labels.

    Most steps change few labels: the products with the sums of rows follow from those rows alone.

    `cosines`: shape (n, n). `near`: shape (n, k); cosines of each row with the first centers;
    overwritten.
    """
    n, k = near.shape
    rows, labels, sums = np.arange(n), np.full(n, -1), np.zeros((n, k))
    for _ in range(STEPS):
        nearest = np.argmax(near, axis=1)
        changed = np.flatnonzero(nearest != labels)
        if not len(changed):
            break
        part = cosines if len(changed) == n else cosines[changed]
        sums += part.T @ (members(nearest[changed], k) - members(labels[changed], k))
        labels = nearest
        squares = np.bincount(labels, sums[rows, labels], k)
        # A center without rows, or whose rows cancel, stays unchanged.
        moved = squares > CANCELLED
        near[:, moved] = sums[:, moved] / np.sqrt(squares[moved])
    return float(near.max(axis=1).sum()), labels


def draw_centers(cosines: FloatArray, k: int, rng: np.random.Generator) -> list[int]:
    """Draw rows far from each other, with probability ∝ squared distance to those before."""
    n = len(cosines)
    centers = [int(rng.integers(n))]
    nearest = np.full(n, -np.inf)
    for _ in range(k - 1):
        nearest = np.maximum(nearest, cosines[centers[-1]])
        weights = np.maximum(1.0 - nearest, 0.0) + 1e-15
        centers.append(int(rng.choice(n, p=weights / weights.sum())))
    return centers


def measure_distances(cosines: FloatArray) -> FloatArray:
    """Measure the Euclidean distances between unit rows from their cosines, shape (n, n)."""
    distances = np.sqrt(np.maximum(2.0 - 2.0 * cosines, 0.0))
    np.fill_diagonal(distances, 0.0)
    return distances


def silhouettes(distances: FloatArray, labels: IntArray) -> FloatArray:
    """Return (b − a)/max(a, b) of each row (Rousseeuw 1987), shape (n,).

    a is the mean distance to the other rows of the cluster, b the mean distance to the rows of the
    nearest other cluster; 0 for a cluster of one row.

    `distances`: shape (n, n). `labels`: shape (n,).
    """
    labels = np.unique(labels, return_inverse=True)[1]
    belongs = members(labels, int(labels.max()) + 1)
    sizes = belongs.sum(axis=0)
    sums = distances @ belongs
    own = sizes[labels]
    rows = np.arange(len(labels))
    within = sums[rows, labels] / np.maximum(own - 1, 1)
    others = sums / sizes
    others[rows, labels] = np.inf
    across = others.min(axis=1)
    larger = np.maximum(within, across)
    alone = (own == 1) | ~np.isfinite(across) | (larger == 0)
    return np.where(alone, 0.0, (across - within) / np.where(alone, 1.0, larger))


def join_without_gap(distances: FloatArray, labels: IntArray) -> IntArray:
    """Join clusters that touch: rows at the boundary have neighbors on the other side.

    K-means cuts a curve or a cloud into pieces as tight as clusters. Of the rows of one cluster
    those lie at the boundary with another whose mean distance to it, less that to their own, is
    smallest. Where there is a gap, hardly any of their nearest rows is there.

    `distances`: shape (n, n). `labels`: shape (n,). Returns labels 0, 1, …
    """
    from scipy.sparse.csgraph import connected_components

    labels = np.unique(labels, return_inverse=True)[1]
    belongs = members(labels, int(labels.max()) + 1)
    sizes = belongs.sum(axis=0)
    means = (distances @ belongs) / sizes
    other = distances.copy()
    np.fill_diagonal(other, np.inf)
    counts = np.maximum(2, np.round(BOUNDARY * sizes)).astype(int)
    nearest = np.argsort(other, axis=1, kind="stable")[:, : counts.max()]
    touching = np.zeros((len(sizes), len(sizes)))
    for own, count in enumerate(counts):
        rows = np.flatnonzero(labels == own)
        depths = means[rows] - means[rows, own, None]
        for cluster in range(len(sizes)):
            edge = rows[np.argsort(depths[:, cluster], kind="stable")[:count]]
            touching[own, cluster] = (labels[nearest[edge, :count]] == cluster).mean()
    return np.asarray(
        connected_components(touching > CROSSING, directed=False)[1][labels], dtype=np.int64
    )


def members(labels: IntArray, k: int) -> FloatArray:
    """Return 1 if a row is in a cluster, else 0; with the shape of the labels and k."""
    return np.asarray(labels[..., None] == np.arange(k), dtype=np.float64)


def mean_between(unit: FloatArray, labels: IntArray) -> float:
    """Mean cosine over pairs of unit rows of different clusters, of which there are two or more.

    ‖Σu‖² − Σ_c‖Σ_c u‖² counts every such pair twice.

    Examples
    --------
    >>> mean_between(np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]), np.array([0, 0, 1]))
    -1.0
    """
    sums = members(labels, int(labels.max()) + 1).T @ unit
    sizes = np.bincount(labels).astype(np.float64)
    total = sums.sum(axis=0)
    pairs = len(unit) ** 2 - float(sizes @ sizes)
    return (float(total @ total) - float(np.square(sums).sum())) / pairs
