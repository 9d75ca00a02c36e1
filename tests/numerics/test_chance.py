"""What isotropic rows give, against drawn ones."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.metrics.clusters import SAMPLE, choose_clusters
from embgeo.numerics import chance
from embgeo.numerics.hubness import count_occurrences, skewness
from embgeo.numerics.sampling import generator

DRAWS = 12


def directions(seed, n, d):
    rows = np.random.default_rng([seed, n, d]).standard_normal((n, d))
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def agrees(found, expected, neglected):
    """Whether the mean of draws is the expectation, but for this share of it."""
    error = np.std(found, ddof=1) / len(found) ** 0.5
    return abs(np.mean(found) - expected) < 4 * error + neglected * abs(expected)


def test_angles_to_the_mean_direction():
    for n, d in ((40, 2), (100, 8), (2000, 3), (1500, 64)):
        median, largest = [], []
        for seed in range(DRAWS):
            unit = directions(seed, n, d)
            total = unit.sum(axis=0)
            angles = np.degrees(np.arccos(unit @ total / np.linalg.norm(total)))
            median.append(np.median(angles))
            largest.append(angles.max())
        expected = chance.expect_cone_angles(n, d)
        assert agrees(median, expected[0], 0.002)
        assert agrees(largest, expected[1], 0.01)


def test_largest_coordinate_of_a_direction():
    for d in (1, 2, 5, 300):
        shares = np.square(directions(0, 4000, d)).max(axis=1)
        assert agrees(shares, chance.expect_largest_share(d), 1e-6)


@pytest.mark.parametrize(("n", "d", "spread"), [(500, 4, 0.3), (1500, 50, 0.0)])
def test_variances_and_length_of_the_mean_row(n, d, spread):
    norms = np.exp(spread * np.random.default_rng(0).standard_normal(n))
    found = []
    for seed in range(60):
        rows = directions(seed, n, d) * norms[:, None]
        variance = rows.var(axis=0)
        length = np.linalg.norm(rows.mean(axis=0))
        found.append((variance.max() / np.median(variance), length))
    expected = [f(norms**2, d) for f in (chance.expect_variance_ratio, chance.expect_mean_length)]
    for draws, value in zip(np.array(found).T, expected, strict=True):
        assert agrees(draws, value, 0.01)


@pytest.mark.slow
def test_dimension_by_two_nearest_rows():
    for n, d, spread in ((800, 2, 0.3), (800, 4, 0.0), (1000, 16, 0.3), (1000, 200, 0.1)):
        norms = np.exp(spread * np.random.default_rng(0).standard_normal(n))
        found = []
        for seed in range(DRAWS):
            rows = directions(seed, n, d) * norms[:, None]
            squares = np.square(rows).sum(axis=1)
            distances = squares[:, None] + squares - 2.0 * rows @ rows.T
            np.fill_diagonal(distances, np.inf)
            near = np.sqrt(np.partition(distances, 1, axis=1)[:, :2])
            found.append((n - 1) / np.log(near[:, 1] / near[:, 0]).sum())
        assert agrees(found, chance.expect_dimension(norms, d), 0.03)


@pytest.mark.slow
def test_hubness():
    for n, d, k in ((600, 2, 10), (600, 3, 20), (1000, 24, 10), (1000, 300, 5)):
        found = [skewness(count_occurrences(directions(s, n, d), k)[0]) for s in range(6)]
        error = np.std(found, ddof=1) / 6**0.5
        assert abs(np.mean(found) - chance.expect_hubness(n, d, k)) < 4 * error + 0.06 / k**0.5


@pytest.mark.parametrize("d", [2, 40])
@pytest.mark.slow
def test_silhouette(d):
    labels, scores = choose_clusters(directions(0, SAMPLE, d), generator(0, "centers"))
    assert labels.max() == 0
    assert scores.mean() == pytest.approx(chance.expect_silhouette(SAMPLE, d), rel=0.2)


def test_silhouettes_of_the_dimensions_that_were_simulated():
    for d, recorded in ((2, 0.549), (8, 0.107), (12, 0.071), (16, 0.0543)):
        found = chance.expect_silhouette(chance.SILHOUETTE_ROWS, d)
        assert found == pytest.approx(recorded, rel=1e-9)


def test_tables_end_where_they_were_made():
    assert chance.expect_silhouette(chance.SILHOUETTE_ROWS - 1, 8) is None
    assert chance.expect_hubness(199, 8, 10) is None
    assert chance.expect_hubness(200, 8, 10) is not None
    assert chance.expect_hubness(2000, 1, 10) is None
    assert len(chance.DIMENSIONS) == len(chance.HUBNESS) == len(chance.SILHOUETTE)
