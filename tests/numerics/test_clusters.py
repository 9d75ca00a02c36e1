"""Spherical k-means and silhouettes, compared with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.numerics.clusters import find_clusters, measure_distances, silhouettes
from tests.support import naive

sklearn_metrics = pytest.importorskip("sklearn.metrics")


def unit_rows(seed, n=120, d=5, clusters=4, noise=0.1):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, clusters, n)
    centers = naive.unit(rng.standard_normal((clusters, d)))
    return naive.unit(centers[truth] + noise * rng.standard_normal((n, d))), truth


@pytest.mark.parametrize("seed", range(4))
def test_tight_clusters_are_found(seed):
    unit, truth = unit_rows(seed, d=12)
    labels = find_clusters(unit, 4, np.random.default_rng(0))
    assert sklearn_metrics.adjusted_rand_score(truth, labels) == 1.0


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_silhouettes(noise):
    unit, truth = unit_rows(5, noise=noise)
    expected = sklearn_metrics.silhouette_samples(unit, truth)
    np.testing.assert_allclose(silhouettes(measure_distances(unit), truth), expected, atol=1e-7)
    assert naive.silhouette(unit, truth) == pytest.approx(expected.mean())


def test_a_cluster_of_one_row_and_a_single_cluster_score_nothing():
    unit = np.eye(4)
    assert silhouettes(measure_distances(unit), np.array([0, 0, 0, 1]))[3] == 0.0
    assert not silhouettes(measure_distances(unit), np.zeros(4, dtype=np.int64)).any()


def test_equal_rows_need_no_more_clusters_than_there_are():
    unit = np.repeat(np.eye(3)[:2], 5, axis=0)
    labels = find_clusters(unit, 4, np.random.default_rng(0))
    assert len(set(labels[:5])) == len(set(labels[5:])) == 1
    np.testing.assert_allclose(silhouettes(measure_distances(unit), labels), 1.0)
