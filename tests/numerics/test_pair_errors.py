"""Errors of means over pairs of rows, against double sums and against draws of populations."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from embgeo.numerics.row_errors import DrawnPairs, error_from_row_means
from embgeo.numerics.scores import adjust_holm


def kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.cos(x - y) + x + y


def all_pairs(x: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Row means, mean and standard deviation of the kernel over all pairs."""
    k = kernel(x[:, None], x)
    off = ~np.eye(len(x), dtype=bool)
    rows = (k.sum(axis=1) - np.diag(k)) / (len(x) - 1)
    return rows, float(k[off].mean()), float(k[off].std())


def disjoint_products(x: np.ndarray) -> float:
    """Mean of k(i, j)·k(l, m) over all four unlike rows: θ² without bias."""
    k = kernel(x[:, None], x)
    total, count = 0.0, 0
    for four in combinations(range(len(x)), 4):
        a, b, c, d = four
        for pair, other in (((a, b), (c, d)), ((a, c), (b, d)), ((a, d), (b, c))):
            total += k[pair] * k[other]
            count += 1
    return total / count


def test_the_variance_from_all_pairs_is_the_unbiased_one() -> None:
    """U² − (mean product of disjoint pairs), term by term."""
    x = np.random.default_rng(0).standard_normal(9) * 2
    rows, mean, spread = all_pairs(x)
    found = error_from_row_means(rows, mean, spread, len(x))
    assert found.error**2 == pytest.approx(mean**2 - disjoint_products(x), rel=1e-9)


def test_the_variance_is_never_below_that_of_a_degenerate_kernel() -> None:
    found = error_from_row_means(np.full(50, 0.25), 0.25, 2.0, 50)
    assert found.error == pytest.approx(np.sqrt(2.0 * 4.0 / (50 * 49)))


@pytest.mark.parametrize(("times", "conservative"), [(3.9, True), (4.1, False)])
def test_what_pairs_add_to_a_faint_mean_is_not_subtracted(times: float, conservative: bool) -> None:
    """With a variance that is `times` that of pairs alone."""
    m, spread = 50, 2.0
    pairs = 2.0 * spread**2 / (m * (m - 1))
    noise = 2.0 * spread**2 / ((m - 2) * (m - 3))
    away = np.sqrt((times * pairs + noise) * (m - 2) * (m - 3) / (4 * (m - 1)))
    found = error_from_row_means(
        0.25 + away * np.tile([-1.0, 1.0], m // 2), 0.25, spread, m, whole=True
    )
    assert found.error**2 == pytest.approx((times + 1) * pairs + noise)
    assert found.conservative is conservative


def test_the_products_from_drawn_pairs_are_the_literal_ones() -> None:
    rng = np.random.default_rng(1)
    m, n = 12, 60
    first = rng.integers(0, m, n)
    second = (first + rng.integers(1, m, n)) % m
    x = rng.standard_normal(m) * 2
    values = kernel(x[first], x[second])
    away = values - values.mean()
    products = [
        away[p] * away[q]
        for p in range(n)
        for q in range(n)
        if len({first[p], second[p]} & {first[q], second[q]}) == 1
    ]
    zeta_one, zeta_two = np.mean(products), np.mean(away**2)
    expected = (4 * (m - 2) * zeta_one + 2 * zeta_two) / (m * (m - 1))
    assert zeta_one > 0
    assert DrawnPairs(first, second, m).find_error(values).error ** 2 == pytest.approx(expected)


def test_without_the_noise_of_pairs_the_parts_of_drawn_pairs_make_the_error() -> None:
    rng = np.random.default_rng(2)
    m, n = 400, 3_000
    first = rng.integers(0, m, n)
    second = (first + rng.integers(1, m, n)) % m
    x = rng.standard_normal((m, 16)) / 4
    for pull, conservative in ((0.0, True), (3.0, False)):
        values = np.vecdot(x[first], x[second]) + pull * (x[first] + x[second])[:, 0]
        found = DrawnPairs(first, second, m).find_error(values)
        squares = np.square(found.influence).sum() - np.square(found.noise).sum()
        with_sampling = found.error**2 + values.var() / n
        assert squares == pytest.approx(with_sampling, rel=0.15)
        assert found.conservative is conservative


def test_without_the_noise_of_pairs_the_parts_of_all_pairs_make_the_error() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((600, 16)) / 4
    signs = 2.0 * rng.integers(0, 2, (600, 600)) - 1.0
    for pull, conservative in ((0.0, True), (1.0, False)):
        k = x @ x.T + pull * (x[:, None, 0] + x[:, 0])
        np.fill_diagonal(k, 0.0)
        off = ~np.eye(600, dtype=bool)
        level, spread = float(k[off].mean()), float(k[off].std())
        signed = np.vecdot(np.where(off, k - level, 0.0), signs) / 599
        found = error_from_row_means(k.sum(axis=1) / 599, level, spread, 600, signed)
        squares = np.square(found.influence).sum() - np.square(found.noise).sum()
        noise = np.square(found.noise).sum()
        assert max(squares, noise) == pytest.approx(found.error**2, rel=0.2)
        assert found.conservative is conservative


@pytest.mark.slow
@pytest.mark.parametrize(("pull", "least", "most"), [(0.0, 1.0, 1.5), (1.0, 0.85, 1.15)])
def test_errors_are_the_spread_over_draws(pull: float, least: float, most: float) -> None:
    """Of a kernel without a part of single rows, where they are too large at most, and with one."""
    seen, known, sampled = [], [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal(80)
        k = x[:, None] * x + pull * (x[:, None] + x)
        off = ~np.eye(80, dtype=bool)
        rows = (k.sum(axis=1) - np.diag(k)) / 79
        seen.append(k[off].mean())
        known.append(error_from_row_means(rows, seen[-1], k[off].std(), 80).error)
        first = rng.integers(0, 80, 4_000)
        second = (first + rng.integers(1, 80, 4_000)) % 80
        sampled.append(DrawnPairs(first, second, 80).find_error(k[first, second]).error)
    spread = np.std(seen, ddof=1)
    for errors in (known, sampled):
        assert least < np.sqrt(np.mean(np.square(errors))) / spread < most


def test_holm_agrees_with_its_definition() -> None:
    p = np.random.default_rng(2).random(9) ** 3
    adjusted = adjust_holm(list(p))
    for level in (0.001, 0.01, 0.05, 0.3):
        rejected = set()
        for step, at in enumerate(np.argsort(p)):
            if p[at] * (9 - step) >= level:
                break
            rejected.add(int(at))
        assert rejected == {i for i, value in enumerate(adjusted) if value < level}
    assert adjust_holm([]) == []
