"""The default backend: numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from embgeo.core.arrays import Array, FloatArray, IntArray, WorkingArray
from embgeo.numerics.rank_update import add_gram
from embgeo.stats.backend.backend import Backend


class NumpyBackend(Backend):
    """Arrays of numpy; numpy's own namespace follows the standard."""

    name = "cpu"
    xp = np
    chunk = 2**17  # what stays in the cache

    def __init__(self) -> None:
        self.wide = self

    def put(self, array: Array, dtype: Any = None) -> Array:
        return np.asarray(array, dtype=dtype)

    def to_host(self, array: Any) -> Any:
        return array

    def sum64(self, array: WorkingArray) -> FloatArray:
        # Also runs of 256 summed in float32 would lose digits of Z that I2 of short rows needs.
        return np.asarray(array.sum(axis=0, dtype=np.float64))

    def empty_gram(self, d: int, dtype: Any) -> WorkingArray:
        return np.zeros((d, d), dtype=dtype, order="F")

    def add_gram(self, rows: WorkingArray, into: WorkingArray) -> None:
        add_gram(rows, into)

    def qr_r(self, rows: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.qr(rows, mode="r"), dtype=np.float64)

    def kth_largest(self, values: WorkingArray, k: int) -> WorkingArray:
        at = values.shape[1] - k
        return np.asarray(np.partition(values, at, axis=1)[:, at])

    def topk(self, values: WorkingArray, k: int) -> IntArray:
        return np.argpartition(-values, k - 1, axis=1)[:, :k]

    def histogram(self, values: WorkingArray, bins: int) -> IntArray:
        half = values.dtype.type(bins / 2)
        at = values * half
        at += half
        np.minimum(at, bins - 1, out=at)
        return np.bincount(at.astype(np.int64), minlength=bins)

    def words(self, rows: WorkingArray) -> IntArray:
        return np.ascontiguousarray(rows).view(np.uint32).astype(np.int64)

    def extremes(self, rows: WorkingArray) -> tuple[WorkingArray, WorkingArray]:
        return rows.max(axis=1), rows.min(axis=1)


#: The one backend of numpy: it has no state.
HOST = NumpyBackend()
