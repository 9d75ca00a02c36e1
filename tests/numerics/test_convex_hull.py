"""Rows that are not known to be repeated; hulls themselves are in tests/metrics/test_hidden.py."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.numerics.convex_hull import distance_to_hull


def test_without_repetitions_every_row_counts() -> None:
    points = np.random.default_rng(0).normal((4.0, 0.0, 0.0), size=(40, 3))

    def blocks() -> Iterator[tuple[IntArray, FloatArray]]:
        for start in range(0, 40, 16):
            yield np.arange(start, min(start + 16, 40)), points[start : start + 16]

    found = distance_to_hull(blocks, 3)
    asked = distance_to_hull(blocks, 3, repeated=np.zeros(40, dtype=bool))
    assert found.side == asked.side == "outside"
    assert found.upper == asked.upper
    nearest = found.weights @ points[found.rows]
    np.testing.assert_allclose(np.linalg.norm(nearest), found.upper, rtol=1e-9)
