"""Which rows take part: zero and non-finite rows are counted, listed and left out."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray, WorkingArray
from embgeo.stats.statistic import Statistic, concatenate


class Census(Statistic):
    """Rows that are exactly zero and rows with a non-finite entry.

    Attributes
    ----------
    largest : float
        Largest magnitude of an entry in the rows that take part; 0 if there is none.
    """

    STATE = ("largest", "_zero", "_nonfinite")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.largest = 0.0
        self._zero: list[IntArray] = []
        self._nonfinite: list[IntArray] = []

    def sift(self, index: IntArray, rows: WorkingArray) -> npt.NDArray[np.bool_]:
        """Note the unusable rows among these; True for each row that takes part."""
        if not len(rows):
            return np.zeros(0, dtype=bool)
        # Both carry a NaN of the row on, so that two looks at each entry tell everything.
        return self.sift_by_extremes(index, rows.max(axis=1), rows.min(axis=1))

    def sift_by_extremes(
        self, index: IntArray, high: WorkingArray, low: WorkingArray
    ) -> npt.NDArray[np.bool_]:
        """As `sift`, from the largest and the smallest entry of each row."""
        finite = np.isfinite(high) & np.isfinite(low)
        good: npt.NDArray[np.bool_] = finite & ((high != 0) | (low != 0))
        if not good.all():
            self._nonfinite.append(index[~finite])
            self._zero.append(index[finite & ~good])
        for bound in (high[good], -low[good]):
            self.largest = max(self.largest, float(bound.max(initial=0.0)))
        return good

    def merge(self, other: Self) -> None:
        self._zero += other._zero
        self._nonfinite += other._nonfinite
        self.largest = max(self.largest, other.largest)

    def renumber(self, by: int) -> Census:
        """The same rows with larger row numbers."""
        other = self.blank()
        other.largest = self.largest
        other._zero = [rows + by for rows in self._zero]
        other._nonfinite = [rows + by for rows in self._nonfinite]
        return other

    @property
    def zero(self) -> IntArray:
        """Row numbers, ascending."""
        return np.sort(concatenate(self._zero)).astype(np.int64)

    @property
    def nonfinite(self) -> IntArray:
        """Row numbers, ascending."""
        return np.sort(concatenate(self._nonfinite)).astype(np.int64)
