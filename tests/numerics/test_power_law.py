"""Power laws that are known, and samples of them."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.numerics.power_law import LEAST_TAIL, compute_tail_p, fit_slope, fit_tail
from tests.support.matrices import rng


def pareto(alpha, size, generator):
    return -np.sort(-((1.0 - generator.random(size)) ** (-1.0 / (alpha - 1.0))))


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 3.0])
def test_the_slope_of_a_power_law_is_its_exponent(alpha):
    assert fit_slope(7.0 * np.arange(1, 300.0) ** -alpha) == pytest.approx(alpha, abs=1e-12)


@pytest.mark.parametrize("alpha", [1.5, 2.5, 4.0])
def test_quantiles_of_a_power_law_give_its_exponent(alpha):
    at = (np.arange(2000) + 0.5) / 2000
    fit = fit_tail(at ** (-1.0 / (alpha - 1.0)))
    assert fit.alpha == pytest.approx(alpha, rel=0.02)
    assert fit.distance < 1e-3


def test_a_tail_is_found_below_which_there_is_another_law():
    g = rng(900)
    values = np.concatenate([pareto(2.5, 300, g), g.uniform(0.2, 1.0, 300)])
    fit = fit_tail(-np.sort(-values))
    assert 100 <= fit.size <= 360
    assert fit.alpha == pytest.approx(2.5, abs=0.3)


def test_too_few_or_equal_values_have_no_tail():
    assert fit_tail(np.arange(LEAST_TAIL - 1, 0.0, -1.0)) is None
    assert fit_tail(np.ones(50)) is None


@pytest.mark.slow
def test_the_chance_of_a_distance():
    """Uniform for a power law, small for what is none."""
    g = rng(901)
    chances = []
    for _ in range(20):
        values = pareto(2.5, 60, g)
        chances.append(compute_tail_p(values, fit_tail(values), 20, g))
    assert 0.2 < np.mean(chances) < 0.8
    bulk = -np.sort(-g.uniform(0.9, 1.0, 300))
    assert compute_tail_p(bulk, fit_tail(bulk), 20, g) < 0.5
