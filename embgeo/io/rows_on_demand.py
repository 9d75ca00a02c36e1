"""Rows of a matrix that has to be decoded, read when they are needed."""

from __future__ import annotations

import copy
from threading import Lock

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.io.bounded.maps import Array
from embgeo.io.checkpoint import RowRanges, Tensor


class RowsOnDemand:
    """Indexed like an array by slices of rows and by row numbers; keeps the last range.

    `identity` distinguishes the matrix from others of its shape.
    """

    def __init__(self, tensor: Tensor, ranges: RowRanges) -> None:
        self.shape, self.dtype = tensor.shape, np.dtype(tensor.dtype)
        self.identity = ranges.identity
        self._read = ranges.read
        self._lock = Lock()
        self._first, self._held = 0, np.empty((0, self.shape[1]), self.dtype)

    def copy(self) -> RowsOnDemand:
        """Return the same matrix with its own range."""
        other = copy.copy(self)
        other._lock = Lock()
        return other

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: slice | IntArray) -> Array:
        if isinstance(index, slice):
            start, stop, step = index.indices(self.shape[0])
            first, held = self._find_range(start, max(start, stop))
            return held[start - first : stop - first : step]
        if not len(index):
            return np.empty((0, self.shape[1]), self.dtype)
        rows, places = np.unique(index, return_inverse=True)
        start, stop = int(rows[0]), int(rows[-1]) + 1
        with self._lock:
            first, held = self._first, self._held
        if first <= start and stop <= first + len(held):
            return np.asarray(held[index - first])
        return np.asarray(self._read(start, stop, rows)[places])

    def _find_range(self, start: int, stop: int) -> tuple[int, Array]:
        """Return a range that holds these rows, and its first row."""
        with self._lock:
            if not self._first <= start <= stop <= self._first + len(self._held):
                self._first, self._held = start, self._read(start, stop)
            return self._first, self._held
