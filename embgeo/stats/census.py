"""Rows that are left out: zero, non-finite and damaged ones."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray, WorkingArray
from embgeo.stats.statistic import Statistic, concatenate

#: Rows whose entries differ by less than this share of the largest one may be constant.
FLAT = 1e-3


class Census(Statistic):
    """Rows that are exactly zero, rows with a non-finite entry, and rows that are far too short.

    The last kind is known once all norms are, and is added by `leave_out`.

    Attributes
    ----------
    largest : float
        Largest magnitude of an entry in the rows that take part; 0 if there is none.
    """

    STATE = ("largest", "_zero", "_nonfinite", "_flat", "_small", "_small_norms")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.largest = 0.0
        self._zero: list[IntArray] = []
        self._nonfinite: list[IntArray] = []
        self._flat: list[IntArray] = []
        self._small: list[IntArray] = []
        self._small_norms: list[FloatArray] = []

    def sift(self, index: IntArray, rows: WorkingArray) -> npt.NDArray[np.bool_]:
        """Note the unusable rows; returns a mask of the usable ones."""
        if not len(rows):
            return np.zeros(0, dtype=bool)
        # Both propagate NaN, so that two comparisons per entry suffice.
        return self.sift_by_extremes(index, rows.max(axis=1), rows.min(axis=1))

    def sift_by_extremes(
        self, index: IntArray, high: WorkingArray, low: WorkingArray
    ) -> npt.NDArray[np.bool_]:
        """Like `sift`, from the largest and the smallest entry of each row."""
        finite = np.isfinite(high) & np.isfinite(low)
        good: npt.NDArray[np.bool_] = finite & ((high != 0) | (low != 0))
        if not good.all():
            self._nonfinite.append(index[~finite])
            self._zero.append(index[finite & ~good])
        largest = np.maximum(high, -low)
        with np.errstate(invalid="ignore", over="ignore"):
            flat = good & (high - low <= FLAT * largest)
        if flat.any():
            self._flat.append(index[flat])
        self.largest = max(self.largest, float(largest[good].max(initial=0.0)))
        return good

    def leave_out(self, rows: IntArray, norms: FloatArray) -> None:
        """Note rows that are far shorter than all others, with their norms."""
        self._small.append(rows)
        self._small_norms.append(norms)

    def merge(self, other: Self) -> None:
        self._zero += other._zero
        self._nonfinite += other._nonfinite
        self._flat += other._flat
        self._small += other._small
        self._small_norms += other._small_norms
        self.largest = max(self.largest, other.largest)

    def renumber(self, by: int) -> Census:
        """The same rows with larger row numbers."""
        other = self.blank()
        other.largest = self.largest
        other._zero = [rows + by for rows in self._zero]
        other._nonfinite = [rows + by for rows in self._nonfinite]
        other._flat = [rows + by for rows in self._flat]
        other._small = [rows + by for rows in self._small]
        other._small_norms = list(self._small_norms)
        return other

    @property
    def zero(self) -> IntArray:
        """Row numbers, ascending."""
        return np.sort(concatenate(self._zero)).astype(np.int64)

    @property
    def nonfinite(self) -> IntArray:
        """Row numbers, ascending."""
        return np.sort(concatenate(self._nonfinite)).astype(np.int64)

    @property
    def flat(self) -> IntArray:
        """Numbers of the rows whose entries are nearly equal, ascending: candidates for a check."""
        return np.sort(concatenate(self._flat)).astype(np.int64)

    @property
    def small(self) -> IntArray:
        """Numbers of the rows noted by `leave_out`, ascending."""
        return np.sort(concatenate(self._small)).astype(np.int64)

    @property
    def small_norms(self) -> FloatArray:
        """Their norms, in the order of `small`."""
        return np.asarray(concatenate(self._small_norms)[np.argsort(concatenate(self._small))])
