"""Which rows take part: zero and non-finite rows are counted, listed and left out."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from embgeo.stats.base import FloatArray, IntArray, concatenated


class Census:
    """Rows that are exactly zero and rows with a non-finite entry.

    Attributes
    ----------
    largest : float
        Largest magnitude of an entry in the rows that take part; 0 if there is none.
    """

    def __init__(self) -> None:
        self.largest = 0.0
        self._zero: list[IntArray] = []
        self._nonfinite: list[IntArray] = []

    def sift(self, index: IntArray, rows: FloatArray) -> npt.NDArray[np.bool_]:
        """Note the unusable rows among these; True for each row that takes part."""
        finite = np.asarray(np.isfinite(rows).all(axis=1))
        nonzero = np.asarray(rows.any(axis=1))
        self._nonfinite.append(index[~finite])
        self._zero.append(index[finite & ~nonzero])
        good: npt.NDArray[np.bool_] = finite & nonzero
        if len(rows):
            bounds = (np.max(rows, axis=1)[good], -np.min(rows, axis=1)[good])
            self.largest = max(self.largest, *(float(b.max(initial=0.0)) for b in bounds))
        return good

    def merge(self, other: Self) -> None:
        self._zero += other._zero
        self._nonfinite += other._nonfinite
        self.largest = max(self.largest, other.largest)

    @property
    def zero(self) -> IntArray:
        """Row numbers, ascending."""
        return np.sort(concatenated(self._zero)).astype(np.int64)

    @property
    def nonfinite(self) -> IntArray:
        """Row numbers, ascending."""
        return np.sort(concatenated(self._nonfinite)).astype(np.int64)
