"""log Z and its gradient at a few directions, from one pass over the rows."""

from __future__ import annotations

from typing import Self

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.stats.block import Block
from embgeo.stats.log_partition import SINGLE_BOUND
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
        self.single = bound <= SINGLE_BOUND
        self.clear()

    def clear(self) -> None:
        self._top: FloatArray = np.full(self.directions.shape[1], -np.inf)
        self._sum: FloatArray = np.zeros(self.directions.shape[1])
        self._weighted: FloatArray = np.zeros_like(self.directions)

    def update(self, block: Block) -> None:
        if not len(block.index):
            return
        in_single = self.single and block.stored.dtype == block.backend.xp.float32
        backend = block.backend if in_single else block.wide
        rows = block.stored if in_single else block.rows
        exponents = rows @ backend.put(self.directions, rows.dtype)
        top = backend.xp.max(exponents, axis=0)
        terms = backend.xp.exp(exponents - top)
        total = block.wide.xp.sum(backend.widen(terms), axis=0)
        host = [backend.to_host(array) for array in (top, rows.T @ terms)]
        self._join(host[0], block.wide.to_host(total), host[1])

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
