"""ℓ(a) = log Σ_i exp⟨w_i, a⟩ for many directions a at once: Arora's partition function."""

from __future__ import annotations

from typing import Self

import numpy as np

from embgeo.stats.base import Block, FloatArray


class LogPartition:
    """log Z at each column a of `directions`, and at −a, in the log domain.

    Parameters
    ----------
    name : str
    directions : float64 array, shape (d, k)
        Unit columns.
    scales : tuple of float
        Z is taken of ``scale·(W − 1·shiftᵀ)`` for each scale, from one product.
    shift : float64 array, shape (d,), optional
    both : bool
        Whether −a is looked at too.

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
        both: bool = True,
    ) -> None:
        self.name = name
        self.directions = directions
        self.scales = scales
        self.offset = None if shift is None else shift @ directions
        self.signs = (1.0, -1.0) if both else (1.0,)
        shape = (len(scales), len(self.signs), directions.shape[1])
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
            for at, sign in enumerate(self.signs):
                top = scale * high if sign > 0 else -scale * low
                exponents = products * (sign * scale)
                exponents -= top
                np.exp(exponents, out=exponents)
                self._join((s, at), top, exponents.sum(axis=0))

    def merge(self, other: Self) -> None:
        for s in range(len(self.scales)):
            for at in range(len(self.signs)):
                self._join((s, at), other._top[s, at], other._sum[s, at])

    def _join(self, at: tuple[int, int], top: FloatArray, total: FloatArray) -> None:
        mine = self._top[at]
        both = np.maximum(mine, top)
        if np.all(np.isneginf(both)):
            return
        with np.errstate(under="ignore"):
            self._sum[at] = self._sum[at] * np.exp(mine - both) + total * np.exp(top - both)
        self._top[at] = both

    def log_z(self, scale: float = 1.0) -> FloatArray:
        """log Z: row 0 at the directions, row 1 (if looked at) at their negatives; k columns."""
        at = self.scales.index(scale)
        with np.errstate(divide="ignore"):  # of no rows, Z is 0
            return np.asarray(self._top[at] + np.log(self._sum[at]))
