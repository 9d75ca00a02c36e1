"""Spherical k-means and silhouettes, compared with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.numerics.clusters import (
    draw_centers,
    find_clusters,
    measure_distances,
    silhouettes,
)
from tests.support import naive
from tests.support.sampling import each_value

sklearn_metrics = pytest.importorskip("sklearn.metrics")


def unit_rows(seed, n=120, d=5, clusters=4, noise=0.1):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, clusters, n)
    centers = naive.unit(rng.standard_normal((clusters, d)))
    return naive.unit(centers[truth] + noise * rng.standard_normal((n, d))), truth


def test_tight_clusters_are_found():
    for seed in range(4):
        unit, truth = unit_rows(seed, d=12)
        labels = find_clusters(unit @ unit.T, 4, np.random.default_rng(0))
        assert sklearn_metrics.adjusted_rand_score(truth, labels) == 1.0


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_silhouettes(noise):
    unit, truth = unit_rows(5, noise=noise)
    expected = sklearn_metrics.silhouette_samples(unit, truth)
    np.testing.assert_allclose(
        silhouettes(measure_distances(unit @ unit.T), truth), expected, atol=1e-7
    )
    assert naive.silhouette(unit, truth) == pytest.approx(expected.mean())


def test_a_cluster_of_one_row_and_a_single_cluster_score_nothing():
    unit = np.eye(4)
    assert silhouettes(measure_distances(unit @ unit.T), np.array([0, 0, 0, 1]))[3] == 0.0
    assert not silhouettes(measure_distances(unit @ unit.T), np.zeros(4, dtype=np.int64)).any()


def test_equal_rows_need_no_more_clusters_than_there_are():
    unit = np.repeat(np.eye(3)[:2], 5, axis=0)
    labels = find_clusters(unit @ unit.T, 4, np.random.default_rng(0))
    assert len(set(labels[:5])) == len(set(labels[5:])) == 1
    np.testing.assert_allclose(silhouettes(measure_distances(unit @ unit.T), labels), 1.0)


def find_clusters_slowly(unit, k, rng, starts=3, steps=15):
    """The same draws, with centers as vectors."""
    found = []
    for centers in [unit[draw_centers(unit @ unit.T, k, rng)] for _ in range(starts)]:
        labels = None
        for _ in range(steps):
            nearest = (unit @ centers.T).argmax(axis=1)
            if labels is not None and np.array_equal(nearest, labels):
                break
            labels = nearest
            for cluster in set(labels.tolist()):
                centers[cluster] = naive.unit(unit[labels == cluster].sum(axis=0)[None])[0]
        found.append(((unit @ centers.T).max(axis=1).sum(), labels))
    return max(found, key=lambda one: one[0])[1]


@each_value
@pytest.mark.parametrize("k", [2, 5, 16])
@pytest.mark.parametrize("noise", [0.3, 2.0])
def test_cosines_between_rows_give_the_clusters_that_vectors_give(k, noise):
    unit, _ = unit_rows(7, noise=noise)
    expected = find_clusters_slowly(unit, k, np.random.default_rng(1))
    found = find_clusters(unit @ unit.T, k, np.random.default_rng(1))
    np.testing.assert_array_equal(found, expected)


def test_a_center_whose_rows_cancel_stays_where_it_was():
    unit = np.repeat(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 3, axis=0)
    labels = find_clusters(unit @ unit.T, 2, np.random.default_rng(0))
    assert sorted(np.bincount(labels, minlength=2).tolist()) in ([3, 9], [6, 6])
