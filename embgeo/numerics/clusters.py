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
    best, best_fit = np.zeros(len(unit), dtype=np.int64), -np.inf
    for _ in range(STARTS):
        centers = draw_centers(unit, k, rng)
        labels = np.full(len(unit), -1)
        for _ in range(STEPS):
            cosines = unit @ centers.T
            nearest = np.argmax(cosines, axis=1)
            if np.array_equal(nearest, labels):
                break
            labels = nearest
            sums = members(labels, k).T @ unit
            lengths = np.linalg.norm(sums, axis=1)
            # A center that lost its rows stays where it was.
            moved = lengths > 0
            centers[moved] = sums[moved] / lengths[moved, None]
        fit = float((unit @ centers.T).max(axis=1).sum())
        if fit > best_fit:
            best, best_fit = labels.astype(np.int64), fit
    return best


def draw_centers(unit: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    """Rows far from each other: each with a probability ∝ its squared distance to the others."""
    centers = [unit[rng.integers(len(unit))]]
    nearest = np.full(len(unit), -np.inf)
    for _ in range(k - 1):
        nearest = np.maximum(nearest, unit @ centers[-1])
        weights = np.maximum(1.0 - nearest, 0.0) + 1e-15
        centers.append(unit[rng.choice(len(unit), p=weights / weights.sum())])
    return np.stack(centers)


def silhouettes(unit: FloatArray, labels: IntArray) -> FloatArray:
    """(b − a)/max(a, b) of each row by Euclidean distance (Rousseeuw 1987), shape (n,).

    a is the mean distance to the other rows of its cluster, b that to the rows of the nearest other
    one; 0 for a cluster of one row.
    """
    labels = np.unique(labels, return_inverse=True)[1]
    belongs = members(labels, int(labels.max()) + 1)
    sizes = belongs.sum(axis=0)
    distances = np.sqrt(np.maximum(2.0 - 2.0 * (unit @ unit.T), 0.0))
    np.fill_diagonal(distances, 0.0)
    sums = distances @ belongs
    own = sizes[labels]
    rows = np.arange(len(unit))
    within = sums[rows, labels] / np.maximum(own - 1, 1)
    others = sums / sizes
    others[rows, labels] = np.inf
    across = others.min(axis=1)
    larger = np.maximum(within, across)
    alone = (own == 1) | ~np.isfinite(across) | (larger == 0)
    return np.where(alone, 0.0, (across - within) / np.where(alone, 1.0, larger))


def members(labels: IntArray, k: int) -> FloatArray:
    """1 where a row is in a cluster, shape (n, k)."""
    return np.asarray(labels[:, None] == np.arange(k), dtype=np.float64)
