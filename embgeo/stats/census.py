"""Rows that are left out: zero, non-finite and damaged ones."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask, WorkingArray
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

    def clear(self) -> None:
        self.largest = 0.0
        self._zero: list[IntArray] = []
        self._nonfinite: list[IntArray] = []
        self._flat: list[IntArray] = []
        self._small: list[IntArray] = []
        self._small_norms: list[FloatArray] = []

    def sift(
        self, index: IntArray, high: WorkingArray, low: WorkingArray, takes_part: Mask
    ) -> Mask:
        """Note the unusable rows, and take them out of `takes_part`.

        Parameters
        ----------
        index : int array, shape (b,)
        high, low : array, shape (b,)
            Largest and smallest entry of each row; NaN for a row with one.
        takes_part : bool array, shape (N,)
            Rows of the matrix to look at.

        Returns
        -------
        bool array, shape (b,)
            The usable rows among those that took part.
        """
        finite = np.isfinite(high) & np.isfinite(low)
        used = takes_part[index]
        good: Mask = used & finite & ((high != 0) | (low != 0))
        if not good.all():
            self._nonfinite.append(index[used & ~finite])
            self._zero.append(index[used & finite & ~good])
        largest = np.maximum(high, -low)
        with np.errstate(invalid="ignore", over="ignore"):
            flat = good & (high - low <= FLAT * largest)
        if flat.any():
            self._flat.append(index[flat])
        self.largest = max(self.largest, float(largest[good].max(initial=0.0)))
        takes_part[index] = good
        return good

    def leave_out(self, rows: IntArray, norms: FloatArray) -> None:
        """Note rows that are far shorter than all others, with their norms."""
        self._small.append(rows)
        self._small_norms.append(norms)

    def merge(self, other: Self) -> None:
        largest = max(self.largest, other.largest)
        super().merge(other)
        self.largest = largest

    def renumber(self, by: int) -> Census:
        """The same rows with larger row numbers."""
        other = copy(self)
        for name in ("_zero", "_nonfinite", "_flat", "_small"):
            setattr(other, name, [rows + by for rows in getattr(self, name)])
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
