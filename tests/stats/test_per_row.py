"""Numbers of single rows by their definitions, where products keep the digits and where not."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.stats.block import Block
from embgeo.stats.per_row import DistanceTo

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
