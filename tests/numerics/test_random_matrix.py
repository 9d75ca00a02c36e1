"""Edges and largest eigenvalues of isotropic rows, against tables and simulated matrices."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.measure.reference import expect_isoscore
from embgeo.numerics.spectra import (
    compute_isoscore,
    compute_largest_p,
    estimate_level,
    find_edge,
    find_median,
)
from tests.support.matrices import rng

SHAPES = [(400, 20), (120, 60), (40, 60)]


def eigenvalues(n, d, seed, norms=None):
    """Of the centered scatter of Gaussian rows, falling."""
    X = rng(seed).standard_normal((n, d))
    if norms is not None:
        X *= (norms / np.linalg.norm(X, axis=1))[:, None]
    X = X - X.mean(axis=0)
    return np.maximum(np.linalg.eigvalsh(X.T @ X)[::-1], 0.0)


@pytest.mark.parametrize(("quantile", "p"), [(0.45014, 0.1), (0.97931, 0.05), (2.02345, 0.01)])
def test_quantiles_of_tracy_and_widom(quantile, p):
    """Published quantiles of the law for real matrices."""
    n, d = 500, 200
    root = np.sqrt(n) + np.sqrt(d)
    scale = root * (1 / np.sqrt(n) + 1 / np.sqrt(d)) ** (1 / 3)
    assert compute_largest_p(root**2 + quantile * scale, n, d) == pytest.approx(p, rel=0.02)


def test_the_largest_eigenvalue_far_below_the_edge_is_certain():
    assert compute_largest_p(0.0, 500, 200) == 1.0


def test_few_columns_have_equal_eigenvalues():
    assert find_median(10**8, 1) == pytest.approx(10**8, rel=1e-3)


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_isotropic_rows_have_the_level_edge_and_chance_that_they_should(n, d):
    large, small = max(n - 1, d), min(n - 1, d)
    levels, above, p = [], [], []
    for seed in range(60):
        found = eigenvalues(n, d, 700 + seed)
        level = estimate_level(found, n - 1, d)
        levels.append(level)
        above.append(np.count_nonzero(found > level * find_edge(n - 1, d)))
        p.append(compute_largest_p(found[0] / level, large, small))
    assert np.mean(levels) == pytest.approx(1.0, rel=0.05)
    assert np.mean(above) < 0.6
    assert np.mean(np.array(p) < 0.05) < 0.15
    assert 0.3 < np.mean(np.array(p) < 0.5) < 0.7


def test_planted_directions_are_counted():
    X = rng(790).standard_normal((500, 40))
    X[:, :3] *= [4.0, 3.0, 2.5]
    X -= X.mean(axis=0)
    found = np.linalg.eigvalsh(X.T @ X)[::-1]
    level = estimate_level(found, 499, 40)
    assert np.count_nonzero(found > level * find_edge(499, 40)) == 3
    assert compute_largest_p(found[0] / level, 499, 40) < 1e-12


@pytest.mark.parametrize("spread", [0.0, 0.5])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_the_isoscore_of_isotropic_rows(n, d, spread):
    norms = np.exp(spread * rng(791).standard_normal(n))
    found = [compute_isoscore(eigenvalues(n, d, 800 + seed, norms)) for seed in range(30)]
    assert np.mean(found) == pytest.approx(expect_isoscore(norms, d), rel=0.03)
