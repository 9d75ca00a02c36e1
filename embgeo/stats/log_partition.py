"""ℓ(a) = log Σ_i exp⟨w_i, a⟩ for many directions a at once: Arora's partition function."""

from __future__ import annotations

from typing import Self

import numpy as np

from embgeo.stats.base import Block, FloatArray


class LogPartition:
    """log Z at ±a for each column a of `directions`, in the log domain.

    Parameters
    ----------
    name : str
    directions : float64 array, shape (d, k)
        Unit columns.
    scales : tuple of float
        Z is taken of ``scale·(W − 1·shiftᵀ)`` for each scale, from one product.
    shift : float64 array, shape (d,), optional

    Notes
    -----
    State is the running maximum of the exponents and the sum of exponentials relative to it, so
    that no norm overflows.
    """

    def __init__(
        self,
        name: str,
        directions: FloatArray,
        scales: tuple[float, ...] = (1.0,),
        shift: FloatArray | None = None,
    ) -> None:
        self.name = name
        self.directions = directions
        self.scales = scales
        self.offset = None if shift is None else shift @ directions
        shape = (len(scales), 2, directions.shape[1])
        self._top: FloatArray = np.full(shape, -np.inf)
        self._sum: FloatArray = np.zeros(shape)

    @property
    def key(self) -> tuple[str, str]:
        return ("log partition", self.name)

    def update(self, block: Block) -> None:
        if not len(block.index):
            return
        products = block.rows @ self.directions
        if self.offset is not None:
            products -= self.offset
        high, low = products.max(axis=0), products.min(axis=0)
        for s, scale in enumerate(self.scales):
            for sign, top in ((0, scale * high), (1, -scale * low)):
                signed = products * (scale if sign == 0 else -scale)
                signed -= top
                np.exp(signed, out=signed)
                self._join((s, sign), top, signed.sum(axis=0))

    def merge(self, other: Self) -> None:
        for s in range(len(self.scales)):
            for sign in (0, 1):
                self._join((s, sign), other._top[s, sign], other._sum[s, sign])

    def _join(self, at: tuple[int, int], top: FloatArray, total: FloatArray) -> None:
        mine = self._top[at]
        both = np.maximum(mine, top)
        if np.all(np.isneginf(both)):
            return
        with np.errstate(under="ignore"):
            self._sum[at] = self._sum[at] * np.exp(mine - both) + total * np.exp(top - both)
        self._top[at] = both

    def log_z(self, scale: float = 1.0) -> FloatArray:
        """log Z, shape (2, k): row 0 at the directions, row 1 at their negatives."""
        at = self.scales.index(scale)
        with np.errstate(divide="ignore"):  # of no rows, Z is 0
            return np.asarray(self._top[at] + np.log(self._sum[at]))
