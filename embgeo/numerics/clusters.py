"""Clusters of unit rows: spherical k-means, and the silhouette that says whether they are any."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray

#: Starts of each k-means, of which the best is kept, and steps of each at most.
STARTS = 3
STEPS = 15


def find_clusters(unit: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Labels 0 … k − 1 of spherical k-means (Dhillon & Modha 2001), the best of some starts.

    Parameters
    ----------
    unit : float64 array, shape (n, d)
        Unit rows.
    k : int
        At most n.
    rng : numpy.random.Generator
        Draws the first centers as k-means++ does (Arthur & Vassilvitskii 2007).
    """
    n = len(unit)
    centers = np.concatenate([draw_centers(unit, k, rng) for _ in range(STARTS)])

    def measure() -> FloatArray:
        """Cosines with the centers of each start, shape (n, starts, k)."""
        return np.asarray((unit @ centers.T).reshape(n, STARTS, k))

    labels = np.full((n, STARTS), -1)
    for _ in range(STEPS):
        nearest = np.argmax(measure(), axis=2)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        sums = members(labels, k).reshape(n, -1).T @ unit
        lengths = np.linalg.norm(sums, axis=1)
        # A center that lost its rows stays where it was.
        moved = lengths > 0
        centers[moved] = sums[moved] / lengths[moved, None]
    best = int(np.argmax(measure().max(axis=2).sum(axis=0)))
    return np.asarray(labels[:, best], dtype=np.int64)


def draw_centers(unit: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    """Rows far from each other: each with a probability ∝ its squared distance to the others."""
    centers = [unit[rng.integers(len(unit))]]
    nearest = np.full(len(unit), -np.inf)
    for _ in range(k - 1):
        nearest = np.maximum(nearest, unit @ centers[-1])
        weights = np.maximum(1.0 - nearest, 0.0) + 1e-15
        centers.append(unit[rng.choice(len(unit), p=weights / weights.sum())])
    return np.stack(centers)


def measure_distances(unit: FloatArray) -> FloatArray:
    """Euclidean distances between unit rows, shape (n, n)."""
    distances = np.sqrt(np.maximum(2.0 - 2.0 * (unit @ unit.T), 0.0))
    np.fill_diagonal(distances, 0.0)
    return distances


def silhouettes(distances: FloatArray, labels: IntArray) -> FloatArray:
    """(b − a)/max(a, b) of each row (Rousseeuw 1987), shape (n,).

    a is the mean distance to the other rows of its cluster, b that to the rows of the nearest other
    one; 0 for a cluster of one row.

    Parameters
    ----------
    distances : float64 array, shape (n, n)
        Between all rows.
    labels : int array, shape (n,)
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


def members(labels: IntArray, k: int) -> FloatArray:
    """1 where a row is in a cluster: the shape of the labels and k."""
    return np.asarray(labels[..., None] == np.arange(k), dtype=np.float64)
