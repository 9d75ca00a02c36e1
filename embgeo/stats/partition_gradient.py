"""log Z and its gradient at a few directions, from one pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.stats.block import Block
from embgeo.stats.log_partition import SINGLE_BOUND, LogSums


@dataclass(eq=False)
class PartitionGradient(LogSums):
    """ℓ(a) = log Σ exp⟨w_i, a⟩ and ∇ℓ(a) = Wᵀ softmax(Wa) for each column of `directions`.

    Parameters
    ----------
    directions : float64 array, shape (d, s)
    bound : float
        No |⟨w, a⟩| is larger; up to `SINGLE_BOUND` the products are taken in the precision of the
        stored rows.
    """

    STATE = ("_top", "_sum", "_weighted")

    directions: FloatArray
    bound: float = np.inf

    def clear(self) -> None:
        self._top = np.full(self.directions.shape[1], -np.inf)
        self._sum = np.zeros(self.directions.shape[1])
        self._weighted: FloatArray = np.zeros_like(self.directions)

    def update(self, block: Block) -> None:
        if not len(block.index):
            return
        in_single = self.bound <= SINGLE_BOUND and block.stored.dtype == block.backend.xp.float32
        backend = block.backend if in_single else block.wide
        rows = block.stored if in_single else block.rows
        exponents = rows @ backend.put(self.directions, rows.dtype)
        top = backend.xp.max(exponents, axis=0)
        terms = backend.xp.exp(exponents - top)
        total = block.wide.xp.sum(backend.widen(terms), axis=0)
        host = [backend.to_host(array) for array in (top, rows.T @ terms)]
        self._join(host[0], block.wide.to_host(total), host[1])

    def log_z(self) -> FloatArray:
        """ℓ at each direction, shape (s,)."""
        return self._log()

    def gradient(self) -> FloatArray:
        """∇ℓ at each direction, shape (d, s)."""
        return np.asarray(self._weighted / np.maximum(self._sum, np.finfo(float).tiny))
