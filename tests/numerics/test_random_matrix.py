"""Edges and largest eigenvalues of isotropic rows, against tables and simulated matrices."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.measure.reference import expect_isoscore
from embgeo.numerics.spectra import compute_isoscore, compute_largest_p, find_edge
from tests.support.matrices import rng

SHAPES = [(400, 20), (120, 60), (40, 60)]


def eigenvalues(n, d, seed, norms):
    """Of the centered scatter of rows of these norms, falling."""
    X = rng(seed).standard_normal((n, d))
    X *= (norms / np.linalg.norm(X, axis=1))[:, None]
    X = X - X.mean(axis=0)
    return np.maximum(np.linalg.eigvalsh(X.T @ X)[::-1], 0.0)


def scaled_eigenvalues(n, d, seed):
    """Of d·ŴᵀŴ for isotropic unit rows, falling."""
    X = rng(seed).standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    return d * np.maximum(np.linalg.eigvalsh(X.T @ X)[::-1], 0.0)


@pytest.mark.parametrize(("quantile", "p"), [(0.45014, 0.1), (0.97931, 0.05), (2.02345, 0.01)])
def test_quantiles_of_tracy_and_widom(quantile, p):
    """Published quantiles of the law for real matrices, where the trace hardly varies."""
    n, d = 5000, 2000
    a, b = np.sqrt(n - 0.5), np.sqrt(d - 0.5)
    largest = (a + b) ** 2 + quantile * (a + b) * (1 / a + 1 / b) ** (1 / 3)
    assert compute_largest_p(largest, n, d) == pytest.approx(p, rel=0.08)


def test_the_largest_eigenvalue_far_below_the_edge_is_certain():
    assert compute_largest_p(0.0, 500, 200) == 1.0


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_isotropic_rows_are_above_the_edge_in_a_twentieth_of_draws_at_most(n, d):
    found = [scaled_eigenvalues(n, d, 700 + seed)[0] for seed in range(100)]
    p = np.array([compute_largest_p(one, n, d) for one in found])
    assert np.mean(p < 0.05) <= 0.05
    assert np.mean(np.array(found) > find_edge(n, d)) == np.mean(p < 0.05)
    assert 0.1 < np.mean(p < 0.5) < 0.6


def test_planted_directions_are_counted():
    X = rng(790).standard_normal((500, 40))
    X[:, :3] *= [4.0, 3.0, 2.5]
    X /= np.linalg.norm(X, axis=1)[:, None]
    found = 40 * np.linalg.eigvalsh(X.T @ X)[::-1]
    assert np.count_nonzero(found > find_edge(500, 40)) == 3
    assert compute_largest_p(found[0], 500, 40) < 1e-12


@pytest.mark.parametrize("spread", [0.0, 0.5])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_the_isoscore_of_isotropic_rows(n, d, spread):
    norms = np.exp(spread * rng(791).standard_normal(n))
    found = [compute_isoscore(eigenvalues(n, d, 800 + seed, norms)) for seed in range(30)]
    assert np.mean(found) == pytest.approx(expect_isoscore(norms, d), rel=0.03)
