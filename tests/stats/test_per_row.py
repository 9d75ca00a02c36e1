"""Numbers of single rows by their definitions, where products keep the digits and where not."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.stats.block import Block
from embgeo.stats.per_row import Census, DistanceTo

D = 6


@pytest.mark.parametrize("kind", ["apart", "around it", "one is the point", "one is tiny"])
def test_distances_are_the_norms_of_differences(kind: str) -> None:
    rows = np.random.default_rng(0).standard_normal((40, D))
    point = np.arange(1.0, D + 1.0)
    if kind == "around it":
        rows = point + 1e-6 * rows
    elif kind == "one is the point":
        rows[7] = point
    elif kind == "one is tiny":
        rows[7] *= 1e-170
    found = DistanceTo("point", point)
    for index in np.array_split(np.arange(40), 3):
        found.update(Block(index, rows[index]))
    exact = np.linalg.norm(rows - point, axis=1)
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
