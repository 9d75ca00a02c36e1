"""Spectra and partition functions of isotropic rows that are not drawn, against rows that are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import hyp0f1

from embgeo.measure.reference import expect_isoscore
from embgeo.numerics import isotropic_rows
from embgeo.numerics.isotropic_rows import IsotropicRows, draw_eigenvalues, group_energies
from embgeo.numerics.spectra import (
    compute_effective_rank,
    compute_isoscore,
    compute_largest_p,
)
from tests.support.matrices import rng
from tests.support.sampling import each_value

DRAWS = 24


def make_norms(n, spread, scale=1.0):
    return scale * np.exp(spread * np.random.default_rng(5).standard_normal(n))


def summarize(norms, d, seed):
    """Numbers of one draw that scale, order and sign of I1 and I2 would change."""
    rows = IsotropicRows(norms, d, np.random.default_rng(seed))
    sigma = np.sqrt(rows.eigen.values)
    found = [
        d - compute_effective_rank(sigma),
        sigma[0] / sigma[-1],
        sigma[0] ** 2 / np.square(sigma).sum(),
        np.sqrt(rows.centered.values[0] / rows.centered.values[-1]),
    ]
    raw = rows.draw_log_z(norms)
    for log_z in (raw, raw[:1], rows.draw_log_z(np.ones(len(norms)))):
        relative = np.exp(log_z - log_z.max())
        found += [np.ptp(log_z), relative.std() / relative.mean()]
    return found


@pytest.mark.parametrize(
    ("n", "d", "spread", "scale"),
    [(3000, 6, 0.0, 1.0), (3000, 2, 0.3, 1.0), (3000, 24, 0.3, 2.0), (1500, 60, 0.2, 1.0)],
)
@pytest.mark.slow
def test_numbers_without_rows_are_those_of_drawn_rows(n, d, spread, scale, monkeypatch):
    norms = make_norms(n, spread, scale)
    drawn = np.array([summarize(norms, d, seed) for seed in range(DRAWS)])
    monkeypatch.setattr(isotropic_rows, "DRAWN_ENTRIES", 0)
    assert not IsotropicRows(norms, d, np.random.default_rng(0)).is_drawn
    without = np.array([summarize(norms, d, 2000 + seed) for seed in range(DRAWS)])
    error = np.sqrt((drawn.var(axis=0, ddof=1) + without.var(axis=0, ddof=1)) / DRAWS)
    away = np.abs(drawn.mean(axis=0) - without.mean(axis=0))
    # 1% of the number for what is neglected: third moments in groups of norms, and in Z.
    assert (away < 4 * error + 0.01 * drawn.mean(axis=0)).all(), away / error
    assert (without.std(axis=0) < 2.2 * drawn.std(axis=0)).all()
    assert (without.std(axis=0) > 0.45 * drawn.std(axis=0)).all()


@pytest.mark.parametrize("d", [8, 48])
def test_eigenvalues_of_rows_of_zipf_weights(d):
    energies = 1.0 / np.arange(1, 3001)

    def rank(values):
        return compute_effective_rank(np.sqrt(values))

    drawn, without = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = rng.standard_normal((len(energies), d))
        rows *= (np.sqrt(energies) / np.linalg.norm(rows, axis=1))[:, None]
        drawn.append(rank(np.linalg.eigvalsh(rows.T @ rows)))
        values = draw_eigenvalues(energies, d, np.random.default_rng(100 + seed))
        assert (np.diff(values) <= 0).all()
        assert values.sum() == pytest.approx(energies.sum(), rel=1e-6)
        without.append(rank(values))
    error = np.hypot(np.std(drawn), np.std(without)) / 12**0.5
    assert np.mean(without) == pytest.approx(np.mean(drawn), abs=4 * error + 1e-3)


def test_few_rows_have_as_many_directions():
    for n in (2, 5, 30):
        rows = IsotropicRows(np.ones(n), 20, np.random.default_rng(0))
        assert np.count_nonzero(rows.eigen.values > 0) == min(n, 20)
        assert np.count_nonzero(rows.centered.values > 0) == min(n - 1, 20)
        assert rows.draw_log_z(np.ones(n)).shape == (2, 20)
        assert rows.eigen.values.sum() == pytest.approx(n)


def test_long_rows_that_are_too_many_to_draw_have_no_partition_function(monkeypatch):
    norms = make_norms(3000, 1.0, 4.0)
    assert IsotropicRows(norms, 8, np.random.default_rng(0)).draw_log_z(norms) is not None
    monkeypatch.setattr(isotropic_rows, "DRAWN_ENTRIES", 0)
    rows = IsotropicRows(norms, 8, np.random.default_rng(0))
    assert rows.draw_log_z(norms) is None
    assert rows.draw_log_z(np.ones(3000)) is not None
    assert rows.draw_log_z(norms * 1e200) is None


@pytest.mark.parametrize("norm", [250.0, 300.0, 350.0, 1e4])
def test_moments_out_of_range_leave_no_partition_function(norm, monkeypatch):
    """At norms of 300 the variance of Z is 1e213, whose power of 3/2 overflows."""
    monkeypatch.setattr(isotropic_rows, "DRAWN_ENTRIES", 0)
    norms = np.full(5000, norm)
    rows = IsotropicRows(norms, 64, np.random.default_rng(0))
    assert not rows.is_drawn
    assert rows.draw_log_z(norms) is None
    assert rows.draw_log_z(norms / norm) is not None


def test_norms_of_any_size_have_the_same_spectrum():
    norms = make_norms(4000, 0.3)
    near, far = (IsotropicRows(norms * size, 3, np.random.default_rng(1)) for size in (1.0, 1e130))
    np.testing.assert_allclose(near.eigen.values, far.eigen.values, rtol=1e-12)


def test_the_series_is_that_of_scipy():
    for b in (0.5, 1.5, 32.0, 384.0):
        x = np.array([0.0, 1e-8, 0.3, 4.0, 60.0, 900.0])
        np.testing.assert_allclose(isotropic_rows.sum_series(b, x), hyp0f1(b, x), rtol=1e-11)
        with np.errstate(over="ignore"):
            assert np.isinf(isotropic_rows.sum_series(b, np.array([1e9]))).all()


# --- Edges and largest eigenvalues of isotropic rows, against tables and simulated matrices -------


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


def test_quantiles_of_tracy_and_widom():
    """Published quantiles of the law for real matrices, where the trace hardly varies."""
    for quantile, p in ((0.45014, 0.1), (0.97931, 0.05), (2.02345, 0.01)):
        n, d = 5000, 2000
        a, b = np.sqrt(n - 0.5), np.sqrt(d - 0.5)
        largest = (a + b) ** 2 + quantile * (a + b) * (1 / a + 1 / b) ** (1 / 3)
        assert compute_largest_p(largest, n, d) == pytest.approx(p, rel=0.08)


def test_the_largest_eigenvalue_far_below_the_edge_is_certain():
    assert compute_largest_p(0.0, 500, 200) == 1.0


def test_isotropic_rows_are_above_the_edge_in_a_twentieth_of_draws_at_most():
    for n, d in SHAPES:
        found = [scaled_eigenvalues(n, d, 700 + seed)[0] for seed in range(100)]
        p = np.array([compute_largest_p(one, n, d) for one in found])
        assert np.mean(p < 0.05) <= 0.05
        assert 0.1 < np.mean(p < 0.5) < 0.6


def test_planted_directions_are_counted():
    X = rng(790).standard_normal((500, 40))
    X[:, :3] *= [4.0, 3.0, 2.5]
    X /= np.linalg.norm(X, axis=1)[:, None]
    found = 40 * np.linalg.eigvalsh(X.T @ X)[::-1]
    assert [compute_largest_p(one, 500, 40) < 0.05 for one in found[:4]] == [True] * 3 + [False]
    assert compute_largest_p(found[0], 500, 40) < 1e-12


@each_value
@pytest.mark.parametrize("spread", [0.0, 0.5])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_the_isoscore_of_isotropic_rows(n, d, spread):
    norms = np.exp(spread * rng(791).standard_normal(n))
    found = [compute_isoscore(eigenvalues(n, d, 800 + seed, norms)) for seed in range(30)]
    assert np.mean(found) == pytest.approx(expect_isoscore(norms, d), rel=0.03)


def test_energies_are_grouped_within_a_factor_of_two():
    for energies, expected in (
        ([1.0, 1e3, 1.0], [[1e3], [1.0, 1.0]]),
        ([6.0, 4.0, 3.0, 1.0], [[6.0, 4.0], [3.0], [1.0]]),
        # Rows of a billionth: only their number counts.
        ([1.0, 1e9, 1.0], [[(1e9 + 2.0) / 3.0] * 3]),
        ([2.4, 1.0, 1.0], [[2.4, 1.0, 1.0]]),
    ):
        found = group_energies(np.array(energies))
        assert [group.tolist() for group in found] == [pytest.approx(one) for one in expected]
