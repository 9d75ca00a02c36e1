"""Tails of norms and coordinates, next to integrals, sorted values and rows left out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from embgeo.numerics.tails import measure_coordinate_tail, measure_norm_index, measure_norm_tail

DRAWS = {
    "gaussian": lambda rng: np.linalg.norm(rng.standard_normal((400, 8)), axis=1),
    "lognormal": lambda rng: np.exp(0.5 * rng.standard_normal(400)),
    "bounded": lambda rng: np.sqrt(rng.uniform(1.0, 2.0, 400)),
    "student": lambda rng: np.abs(rng.standard_t(4, 400)),
}


def continue_literally(norms: np.ndarray) -> tuple[float, float]:
    """Shape, and the mean fourth power by an integral over the density of the longer rows."""
    squares = sorted(norms**2)
    k = len(squares) // 10
    limit, tail = squares[-k - 1], squares[-k:]
    above = [value - limit for value in tail]
    b0 = sum(above) / k
    b1 = sum(y * (1.0 - (j + 1 - 0.35) / k) for j, y in enumerate(above)) / k
    shape, scale = 2.0 - b0 / (b0 - 2.0 * b1), 2.0 * b0 * b1 / (b0 - 2.0 * b1)
    larger = shape + 1.0 / k**0.5

    def survive(y: float) -> float:
        return max(0.0, 1.0 + larger * y / scale) ** (-1.0 / larger)

    end = scale * ((20.0 * k) ** larger - 1.0) / larger
    # E(u + Y)² = u² + ∫ 2(u + y)·P(Y > y) dy up to the longest row of twenty matrices.
    ends = np.geomspace(1e-6 * end, end, 12)
    pieces = zip(np.r_[0.0, ends[:-1]], ends, strict=True)
    more = sum(quad(lambda y: 2.0 * (limit + y) * survive(y), a, b)[0] for a, b in pieces)
    tail_now = sum(value**2 for value in tail)
    body = sum(value**2 for value in squares) - tail_now
    return shape, (body + max(tail_now, k * (limit**2 + more))) / len(squares)


@pytest.mark.parametrize("draw", DRAWS)
def test_fourth_powers_of_longer_rows_are_an_integral(draw: str) -> None:
    for seed in range(3):
        norms = DRAWS[draw](np.random.default_rng(seed))
        found = measure_norm_tail(norms)
        shape, fourth = continue_literally(norms)
        assert found.shape == pytest.approx(shape, rel=1e-9)
        assert found.fourth == pytest.approx(fourth, rel=1e-3)
        assert found.fourth >= np.mean(norms**4) * (1 - 1e-12)


def test_the_scale_of_norms_is_that_of_their_fourth_powers() -> None:
    norms = DRAWS["lognormal"](np.random.default_rng(5))
    one, other = measure_norm_tail(norms), measure_norm_tail(7.0 * norms)
    assert other.shape == pytest.approx(one.shape)
    assert other.fourth == pytest.approx(7.0**4 * one.fourth)


def test_equal_norms_and_few_rows_have_no_tail() -> None:
    for norms in (np.ones(100), np.arange(1.0, 20.0), np.r_[np.ones(1), np.full(99, 2.0)]):
        found = measure_norm_tail(norms)
        assert found.shape == -np.inf
        assert found.fourth == pytest.approx(np.mean(norms**4))
    assert measure_norm_index(np.ones(100)) == np.inf
    assert measure_norm_index(np.ones(1)) == np.inf


@pytest.mark.parametrize("d", [2, 20, 300])
def test_norms_that_are_equal_but_for_rounding_have_no_tail(d: int) -> None:
    """Norms of unit rows in float64 take a few values, and few rows have the largest."""
    rows = np.random.default_rng(d).standard_normal((900, d))
    norms = np.linalg.norm(rows / np.linalg.norm(rows, axis=1, keepdims=True), axis=1)
    assert len(np.unique(norms)) > 1
    assert measure_norm_tail(norms).shape == -np.inf
    norms[:30] *= 1.0 + 1e-9 * np.arange(30)  # more than rounding
    assert measure_norm_tail(norms).shape > -np.inf


def test_rows_that_vanish_next_to_the_longest_have_the_heaviest_tail() -> None:
    assert measure_norm_index(np.r_[np.zeros(95), np.ones(5)]) == 0.0


def test_one_row_far_longer_than_all_others_has_no_fourth_powers() -> None:
    norms = DRAWS["gaussian"](np.random.default_rng(0))
    norms[0] = 1e6
    found = measure_norm_tail(norms)
    assert found.shape > 0.9
    assert np.isfinite(found.fourth)


def test_the_index_of_norms_is_that_of_the_longest_eighth() -> None:
    norms = DRAWS["student"](np.random.default_rng(1))
    ordered = np.sort(norms)
    expected = 1.0 / np.mean(np.log(ordered[-50:] / ordered[-51]))
    assert measure_norm_index(norms) == pytest.approx(expected)


@pytest.mark.parametrize(("rows", "k"), [(400, 100), (200, 60)])
def test_the_index_of_coordinates_is_hills_with_an_error_over_rows(rows: int, k: int) -> None:
    """The error by leaving out a row at a time, with the limit as it is."""
    rng = np.random.default_rng(rows)
    sizes = rng.standard_normal((rows, 6)) * np.exp(0.5 * rng.standard_normal((rows, 1)))
    found = measure_coordinate_tail(sizes)
    ordered = np.sort(np.abs(sizes), axis=None)
    limit = ordered[-k - 1]
    assert found.index == pytest.approx(1.0 / np.mean(np.log(ordered[-k:] / limit)))
    without = []
    for left in range(rows):
        rest = np.abs(np.delete(sizes, left, 0))
        without.append(1.0 / np.mean(np.log(rest[rest > limit] / limit)))
    literal = np.sqrt((rows - 1) / rows * np.sum((np.array(without) - np.mean(without)) ** 2))
    assert found.error == pytest.approx(literal, rel=0.1)


def test_equal_coordinates_have_no_tail() -> None:
    for sizes in (np.ones((100, 4)), np.zeros((100, 4)), np.ones((10, 6))):
        assert measure_coordinate_tail(sizes).index == np.inf
