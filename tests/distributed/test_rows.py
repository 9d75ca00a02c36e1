"""Rows that states carry from one machine to another."""

from __future__ import annotations

import tracemalloc

import numpy as np

from embgeo.distributed.rows import StoredRows


def make_rows(*index: int, d: int = 2) -> StoredRows:
    numbers = np.array(index)
    return StoredRows(numbers, np.repeat(numbers[:, None], d, axis=1).astype(np.float32))


def test_rows_of_several_states_are_joined_each_once() -> None:
    joined = StoredRows().join(make_rows(3, 5), StoredRows(), make_rows(1, 3, 9))
    assert joined.entries is not None
    assert joined.index.tolist() == [1, 3, 5, 9]
    assert joined.entries[:, 0].tolist() == [1, 3, 5, 9]


def test_rows_of_consecutive_parts_are_copied_once() -> None:
    # With --neighbors-of all they are the whole matrix.
    parts = [make_rows(*range(1000 * k, 1000 * (k + 1)), d=64) for k in range(8)]
    tracemalloc.start()
    joined = StoredRows().join(*parts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert joined.entries is not None
    assert len(joined.index) == 8000
    assert peak < 1.5 * joined.entries.nbytes
