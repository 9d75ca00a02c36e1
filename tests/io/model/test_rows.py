"""Rows that are read on demand, from ranges of a matrix that has to be decoded."""

from __future__ import annotations

from typing import Any

import numpy as np

from embgeo.io.model.checkpoint import RowRanges, Tensor
from embgeo.io.model.rows import RowsOnDemand

W = np.arange(60, dtype=np.float32).reshape(12, 5)


def test_rows_are_read_once_and_only_when_they_are_needed() -> None:
    asked: list[tuple[int, int]] = []

    def read(start: int, stop: int, *_: Any) -> np.ndarray:
        asked.append((start, stop))
        return W[start:stop]

    tensor = Tensor("w", W.shape, "float32", lambda: W)
    rows = RowsOnDemand(tensor, RowRanges(read, "its hash"))
    assert (rows.shape, rows.dtype, rows.identity) == (W.shape, W.dtype, "its hash")
    assert len(rows) == 12
    for none in (rows[0:0], rows[np.array([], dtype=np.int64)]):
        assert (none.shape, none.dtype) == ((0, 5), W.dtype)
    assert asked == []
    np.testing.assert_array_equal(rows[0:4], W[0:4])
    np.testing.assert_array_equal(rows[1:3], W[1:3])
    np.testing.assert_array_equal(rows[np.array([3, 0])], W[[3, 0]])
    other = rows.copy()
    np.testing.assert_array_equal(other[8:12], W[8:12])
    np.testing.assert_array_equal(rows[0:2], W[0:2])
    assert asked == [(0, 4), (8, 12)]
