"""Numbers of single rows by their definitions, where products keep the digits and where not."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.stats.block import Block
from embgeo.stats.per_row import Census, DistanceTo
from embgeo.stats.sums import PairedSums

D = 6


def test_distances_are_the_norms_of_differences() -> None:
    for kind in ("apart", "short", "around it", "one is the point", "one is tiny"):
        rows = np.random.default_rng(0).standard_normal((40, D))
        point = np.arange(1.0, D + 1.0)
        if kind == "short":
            rows, point = 0.01 * rows, 0.01 * point
        elif kind == "around it":
            rows = point + 1e-6 * rows
        elif kind == "one is the point":
            rows[7] = point
        elif kind == "one is tiny":
            rows[7] *= 1e-170
        exact = np.linalg.norm(rows - point, axis=1)
        for parts in (1, 3):
            found = DistanceTo("point", point)
            for index in np.array_split(np.arange(40)[::-1], parts):
                found.update(Block(index, rows[index]))
            np.testing.assert_allclose(found.values(), exact, rtol=1e-9, atol=0)


def test_rows_of_a_part_get_the_numbers_of_the_whole() -> None:
    high, low = np.array([0.0, 1.0, np.nan, 2.0]), np.array([0.0, 1.0, np.nan, 0.5])
    census = Census()
    assert census.sift(np.arange(4), high, low, np.ones(4, dtype=bool)).tolist() == [
        False,
        True,
        False,
        True,
    ]
    moved = census.renumber(100)
    assert (moved.zero.tolist(), moved.nonfinite.tolist()) == ([100], [102])
    assert moved.flat.tolist() == [101]
    assert (census.zero.tolist(), census.flat.tolist()) == ([0], [1])


def test_sums_over_pairs_of_rows_are_the_literal_ones() -> None:
    g = np.random.default_rng(1)
    x, y = 3.0 * g.standard_normal((30, D)), 0.2 * g.standard_normal((30, D))
    found = PairedSums(D)
    for index in np.array_split(np.arange(30), 3):
        found.update(Block(index, np.c_[x, y][index]))
    pairs = list(zip(x, y, strict=True))
    assert found.first == pytest.approx(sum(one @ one for one in x))
    assert found.second == pytest.approx(sum(one @ one for one in y))
    assert found.product == pytest.approx(sum(a @ b for a, b in pairs))
    assert found.difference == pytest.approx(sum((b - a) @ (b - a) for a, b in pairs))
    cosines = [a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in pairs]
    assert found.cosines == pytest.approx(sum(cosines))
