"""The gap between norms that separates damaged rows, next to a loop over all gaps."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embgeo.numerics.row_norms import (
    find_initial_rows,
    find_norm_gap,
    find_norm_limit,
)
from tests.support.sampling import each_value


def naive_gap(norms):
    """Every gap with at most one row in twenty below it; the lowest of the widest ones."""
    ordered = sorted(norms)
    gaps = [
        (math.log10(high) - math.log10(low), -at)
        for at, (low, high) in enumerate(pairwise(ordered))
        if 20 * (at + 1) <= len(ordered)
    ]
    return max(gaps, default=None)


@given(
    norms=st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=100),
    n=st.integers(1, 100),
)
@pytest.mark.slow
def test_equals_a_loop_over_all_gaps(norms, n):
    repeated = (norms * n)[:100]
    found, expected = find_norm_gap(np.array(repeated)), naive_gap(repeated)
    if expected is None:
        assert found is None
    else:
        assert found.decades == pytest.approx(expected[0], abs=1e-12)
        assert found.above >= found.below


@pytest.mark.parametrize("small", [1, 5])
def test_five_percent_and_no_more(small):
    norms = np.r_[np.full(small, 1e-17), np.linspace(0.5, 2.0, 100 - small)]
    gap = find_norm_gap(norms)
    assert (gap.below, gap.above) == (1e-17, 0.5)
    assert gap.decades == pytest.approx(math.log10(0.5) + 17)
    more = np.r_[np.full(6, 1e-17), np.linspace(0.5, 2.0, 94)]
    assert find_norm_gap(more).decades == 0.0


def test_too_few_rows():
    assert find_norm_gap(np.full(19, 1.0)) is None


def test_rows_two_decades_below_are_damaged_whatever_their_share():
    for dead in (1, 49, 51, 451, 520, 951, 990):
        norms = np.r_[np.full(dead, 0.0049), np.linspace(0.5, 2.0, 1000 - dead)]
        assert find_norm_limit(norms, 8) == 0.5


@pytest.mark.parametrize(("dead", "limit"), [(50, 0.5), (51, 0.0)])
def test_a_gap_of_less_than_two_decades_damages_five_percent(dead, limit):
    norms = np.r_[np.full(dead, 0.0051), np.linspace(0.5, 2.0, 1000 - dead)]
    assert find_norm_limit(norms, 8) == limit


@pytest.mark.parametrize(("alive", "limit"), [(9, 0.0), (10, 0.5)])
def test_fewer_than_one_row_in_a_hundred_are_long_rows(alive, limit):
    norms = np.r_[np.full(1000 - alive, 1e-3), np.linspace(0.5, 2.0, alive)]
    assert find_norm_limit(norms, 8) == limit


def test_a_gap_that_chance_makes_in_few_dimensions_damages_nothing():
    for d, rows, decades in ((1, 1, 3.0), (1, 2, 1.5), (2, 1, 1.5), (1, 3, 1.0)):
        norms = np.linspace(0.5, 2.0, 100)
        narrow = np.r_[np.full(rows, 0.51 / 10**decades), norms]
        wide = np.r_[np.full(rows, 0.49 / 10**decades), norms]
        assert [find_norm_limit(one, d) for one in (narrow, wide)] == [0.0, 0.5]


# --- Rows as long as word2vec or fastText makes them before training ------------------------------


def lengths(count: int, d: int, half_width: float, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).uniform(-half_width, half_width, (count, d))
    return np.asarray(np.linalg.norm(rows, axis=1))


@each_value
@pytest.mark.parametrize("d", [16, 40, 300])
@pytest.mark.parametrize("times", [0.5, 1.0])
def test_many_rows_are_certain_in_any_dimension(d, times):
    found = find_initial_rows(np.r_[1e-17, lengths(60, d, times / d)], d)
    assert found.is_certain
    assert found.rows.tolist() == [False] + [True] * 60


def test_few_rows_of_few_dimensions_are_not_certain():
    for count, d, certain in ((1, 16, False), (3, 16, False), (1, 500, True)):
        found = find_initial_rows(lengths(count, d, 0.5 / d), d)
        assert (found.rows.sum(), found.is_certain) == (count, certain)


@pytest.mark.parametrize("norm", [0.05, 0.5 / 16 * np.sqrt(16 / 3)])
def test_rows_of_one_length_are_not_those_of_an_initialization(norm):
    assert not find_initial_rows(np.full(30, norm), 16).rows.any()
