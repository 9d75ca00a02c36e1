"""The second mode of numbers, against intervals that are all tried."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from embgeo.numerics.clumps import find_critical_excess, find_levels, find_modes
from tests.support.sampling import each_value


def naive_excess(numbers: np.ndarray) -> float:
    """Over the same levels: the best two disjoint intervals less the best one, all tried."""
    lengths = np.diff(np.sort(numbers))
    mass = 1.0 / len(lengths)
    known = lengths[lengths > 0]
    intervals = list(combinations(range(len(numbers)), 2))
    best = 0.0
    for level in find_levels(mass / known):
        gains = {(a, b): float(np.sum(mass - level * lengths[a:b])) for a, b in intervals}
        one = max(0.0, *gains.values())
        ending, starting = dict.fromkeys(range(len(numbers)), 0.0), {}
        for (_, b), gain in gains.items():
            ending[b] = max(ending[b], gain)
        starting = {
            a: max([0.0, *(gain for (start, _), gain in gains.items() if start >= a)])
            for a in range(len(numbers))
        }
        two = max(ending[a] + starting[a] for a in ending)
        best = max(best, two - one)
    return best


@each_value
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("apart", [0.0, 3.0])
def test_every_interval_gives_the_same(seed, apart):
    rng = np.random.default_rng(seed)
    numbers = np.concatenate([rng.standard_normal(9), apart + 0.3 * rng.standard_normal(5)])
    assert find_modes(numbers).excess == pytest.approx(naive_excess(numbers), abs=1e-12)


def test_of_two_points_far_apart_it_is_the_smaller_share():
    for share in (0.05, 0.2, 0.45):
        rng = np.random.default_rng(0)
        numbers = np.where(np.arange(4000) < share * 4000, 0.0, 100.0) + 0.01 * rng.random(4000)
        found = find_modes(numbers)
        assert found.excess == pytest.approx(share, abs=0.01)
        assert found.valley == pytest.approx(50.0, abs=0.1)


def test_scale_shift_order_and_sign_do_not_matter():
    rng = np.random.default_rng(1)
    numbers = np.concatenate([rng.standard_normal(900), 6.0 + rng.standard_normal(100)])
    found = find_modes(numbers)
    other = find_modes(7.0 - 3.0 * rng.permutation(numbers))
    assert other.excess == pytest.approx(found.excess, abs=1e-9)
    assert other.valley == pytest.approx(7.0 - 3.0 * found.valley, rel=1e-6)


def test_equal_numbers_have_one_mode():
    assert find_modes(np.full(10, 3.0)) == (0.0, 3.0)


@each_value
@pytest.mark.parametrize("draw", ["random", "standard_normal", "exponential", "standard_cauchy"])
@pytest.mark.parametrize("count", [100, 3000])
def test_one_mode_stays_below_the_critical_value(draw, count):
    rng = np.random.default_rng(2)
    found = [find_modes(getattr(rng, draw)(size=count)).excess for _ in range(40)]
    assert np.quantile(found, 0.9) < find_critical_excess(count)
