"""Errors over rows: derivatives by differences, parts by leaving rows out, errors by draws."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.numerics.row_errors import (
    RowsOfSpectrum,
    combine,
    entropy,
    participation_ratio,
    root_entropy,
    top_share,
)
from embgeo.numerics.spectra import compute_entropy

FUNCTIONS = {
    entropy: compute_entropy,
    root_entropy: lambda values: compute_entropy(np.sqrt(values)),
    participation_ratio: lambda values: values.sum() ** 2 / (values @ values),
    top_share: lambda values: values[0] / values.sum(),
}


def draw(seed: int, n: int = 400, decay: float = 0.5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 5)) * np.arange(1, 6) ** -decay


def decompose(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(rows.T @ rows)
    return values[::-1], vectors[:, ::-1]


def find_error(make, rows, at=slice(None)):
    values, vectors = decompose(rows)
    return RowsOfSpectrum(values, rows[at] @ vectors, len(rows)).find_error(make)


@pytest.mark.parametrize("make", FUNCTIONS)
def test_derivatives_are_those_of_differences(make) -> None:
    values, step = np.array([5.0, 3.0, 2.9, 1.0]), 1e-4
    f, of = FUNCTIONS[make], make(values)
    moves = step * np.eye(4)
    for k, one in enumerate(moves):
        slope = (f(values + one) - f(values - one)) / (2 * step)
        assert of.gradient[k] == pytest.approx(slope, abs=1e-8)
        for j, other in enumerate(moves):
            far = f(values + one + other) - f(values + one - other)
            near = f(values - one + other) - f(values - one - other)
            assert of.hessian[k, j] == pytest.approx((far - near) / (4 * step**2), abs=1e-6)


@pytest.mark.parametrize("make", FUNCTIONS)
def test_the_part_of_a_row_is_what_its_absence_costs(make) -> None:
    rows = draw(0)
    f = FUNCTIONS[make]
    whole = f(decompose(rows)[0])
    cost = np.array([whole - f(decompose(np.delete(rows, i, 0))[0]) for i in range(len(rows))])
    found = find_error(make, rows).influence
    assert np.allclose(found, cost - cost.mean(), atol=2e-3 * np.abs(cost).max())


def test_some_rows_say_what_all_of_them_do() -> None:
    rows = draw(1, n=4_000)
    some = np.random.default_rng(2).choice(4_000, 1_000, replace=False)
    found = find_error(participation_ratio, rows, some)
    assert found.error == pytest.approx(find_error(participation_ratio, rows).error, rel=0.08)
    assert len(found.influence) == 1_000


@pytest.mark.parametrize("make", FUNCTIONS)
def test_the_noise_of_a_row_is_what_signed_pairs_with_it_add(make) -> None:
    """By second differences of the function in the weights of two rows."""
    rows, step = draw(6, n=12) + 0.5, 1e-3
    f, own = FUNCTIONS[make], np.arange(12)

    def weigh(i: int, j: int, a: float, b: float) -> float:
        weights = 1.0 + a * step * (own == i) + b * step * (own == j)
        return float(f(decompose(np.sqrt(weights)[:, None] * rows)[0]))

    noise = np.zeros(12)
    for i in own:
        for j in own[own != i]:
            corners = (a * b * weigh(i, j, a, b) for a in (1, -1) for b in (1, -1))
            noise[i] += (-1) ** j * sum(corners) / (4 * step**2)
    found = find_error(make, rows).noise
    assert np.allclose(found, noise * np.sqrt(0.5), atol=1e-3 * np.abs(noise).max())


def test_equal_eigenvalues_have_derivatives() -> None:
    """Of rows along the axes, with the same sum of squares in each direction."""
    rows = np.kron(np.ones((50, 1)), np.vstack([np.eye(4), -np.eye(4)]))
    found = find_error(entropy, rows)
    assert np.isfinite(found.error)
    assert found.conservative


def test_an_error_that_few_rows_make_is_wide() -> None:
    """Student's t with four degrees of freedom, by Satterthwaite."""
    parts = np.zeros(100)
    parts[:2] = 1.0, -1.0
    assert combine(parts, 0.0, 100).error == pytest.approx(np.sqrt(2) * 2.776 / 1.96, rel=0.01)
    assert combine(np.zeros(100), 0.0, 100).error == 0.0
    assert combine(np.r_[np.nan, parts], 0.0, 101) is None


@pytest.mark.parametrize("make", FUNCTIONS)
def test_the_error_is_the_literal_jackknife(make) -> None:
    """√((n − 1)/n·Σ(θ_i − θ̄)²) over the function without each row in turn, of unlike norms."""
    rows = draw(9, n=300, decay=0.8) * np.exp(
        0.3 * np.random.default_rng(9).standard_normal((300, 1))
    )
    f = FUNCTIONS[make]
    without = np.array([f(decompose(np.delete(rows, i, 0))[0]) for i in range(300)])
    literal = np.sqrt(299 / 300 * np.square(without - without.mean()).sum())
    # The jackknife counts pairs of rows twice; Student's t widens the error where rows are few.
    assert find_error(make, rows).error == pytest.approx(literal, rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize(("decay", "least", "most"), [(0.0, 1.0, 1.35), (0.5, 0.85, 1.15)])
@pytest.mark.parametrize("make", [root_entropy, participation_ratio])
def test_errors_are_the_spread_over_draws(make, decay, least, most) -> None:
    """Of isotropic rows, without a part of single rows, they are too large at most."""
    f = FUNCTIONS[make]
    drawn = [draw(seed, decay=decay) for seed in range(300)]
    spread = np.std([f(decompose(rows)[0]) for rows in drawn], ddof=1)
    known = [find_error(make, rows).error for rows in drawn]
    assert least < np.sqrt(np.mean(np.square(known))) / spread < most


def test_the_share_of_pairs_is_that_of_the_variance() -> None:
    parts = np.array([1.0, -1.0] * 50)
    assert combine(parts, 20.0, 100).of_pairs == pytest.approx(20.0 / 80.0)
    assert combine(parts, 60.0, 100).of_pairs == 1.0
    assert combine(np.zeros(100), 0.0, 100).of_pairs == 0.0
    assert combine(parts, 20.0, 100).times(-3.0).of_pairs == pytest.approx(20.0 / 80.0)


def test_standard_coordinates_have_mean_squares_of_one() -> None:
    rows = draw(3)
    values, vectors = decompose(rows)
    found = RowsOfSpectrum(values, rows @ vectors, len(rows)).standardize()
    assert np.allclose(np.mean(found**2, axis=0), 1.0)
    assert np.allclose(found[:, 0], np.abs(rows @ vectors[:, 0]) / np.sqrt(values[0] / len(rows)))
