"""Rows as long as word2vec or fastText makes them before training."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.numerics.row_norms import find_initial_rows


def lengths(count: int, d: int, half_width: float, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).uniform(-half_width, half_width, (count, d))
    return np.asarray(np.linalg.norm(rows, axis=1))


@pytest.mark.parametrize("d", [16, 40, 300])
@pytest.mark.parametrize("times", [0.5, 1.0])
def test_many_rows_are_certain_in_any_dimension(d, times):
    found = find_initial_rows(np.r_[1e-17, lengths(60, d, times / d)], d)
    assert found.is_certain
    assert found.rows.tolist() == [False] + [True] * 60


@pytest.mark.parametrize(
    ("count", "d", "certain"), [(1, 16, False), (3, 16, False), (1, 500, True)]
)
def test_few_rows_of_few_dimensions_are_not_certain(count, d, certain):
    found = find_initial_rows(lengths(count, d, 0.5 / d), d)
    assert (found.rows.sum(), found.is_certain) == (count, certain)


@pytest.mark.parametrize("norm", [0.05, 0.5 / 16 * np.sqrt(16 / 3)])
def test_rows_of_one_length_are_not_those_of_an_initialization(norm):
    assert not find_initial_rows(np.full(30, norm), 16).rows.any()
