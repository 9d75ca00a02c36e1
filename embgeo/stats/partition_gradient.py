"""log Z and its gradient at a few directions, from one pass over the rows."""

from __future__ import annotations

from typing import Self

import numpy as np

from embgeo.core.arrays import FloatArray, WorkingArray
from embgeo.stats.block import SINGLE_BOUND, Block
from embgeo.stats.statistic import Statistic


class PartitionGradient(Statistic):
    """ℓ(a) = log Σ exp⟨w_i, a⟩ and ∇ℓ(a) = Wᵀ softmax(Wa) for each column of `directions`.

    Parameters
    ----------
    directions : float64 array, shape (d, s)
    bound : float
        No |⟨w, a⟩| is larger; up to `SINGLE_BOUND` the products are taken in the precision of the
        stored rows.
    """

    STATE = ("_top", "_sum", "_weighted")

    def __init__(self, directions: FloatArray, bound: float = np.inf) -> None:
        self.directions = directions
        self.single = directions.astype(np.float32) if bound <= SINGLE_BOUND else None
        self.clear()

    def clear(self) -> None:
        self._top: FloatArray = np.full(self.directions.shape[1], -np.inf)
        self._sum: FloatArray = np.zeros(self.directions.shape[1])
        self._weighted: FloatArray = np.zeros_like(self.directions)

    def update(self, block: Block) -> None:
        rows: WorkingArray
        directions: WorkingArray
        if not len(block.index):
            return
        if self.single is not None and block.stored.dtype == np.float32:
            rows, directions = block.stored, self.single
        else:
            rows, directions = block.rows, self.directions
        exponents = rows @ directions
        top = exponents.max(axis=0)
        terms = np.exp(exponents - top)
        self._join(top, terms.sum(axis=0, dtype=np.float64), rows.T @ terms)

    def merge(self, other: Self) -> None:
        self._join(other._top, other._sum, other._weighted)

    def _join(self, top: FloatArray, total: FloatArray, weighted: FloatArray) -> None:
        both = np.maximum(self._top, top)
        if np.all(np.isneginf(both)):
            return
        with np.errstate(under="ignore"):
            mine, theirs = np.exp(self._top - both), np.exp(top - both)
            self._sum = self._sum * mine + total * theirs
            self._weighted = self._weighted * mine + weighted * theirs
        self._top = both

    def log_z(self) -> FloatArray:
        """ℓ at each direction, shape (s,)."""
        with np.errstate(divide="ignore"):  # of no rows, Z is 0
            return np.asarray(self._top + np.log(self._sum))

    def gradient(self) -> FloatArray:
        """∇ℓ at each direction, shape (d, s)."""
        return np.asarray(self._weighted / np.maximum(self._sum, np.finfo(float).tiny))
