"""ℓ(a) = log Σ_i exp⟨w_i, a⟩ for many directions a at once: Arora's partition function."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, WorkingArray
from embgeo.numerics.block_rotation import BlockRotation
from embgeo.stats.block import SINGLE_BOUND, Block
from embgeo.stats.statistic import Statistic

#: Entries whose exponentials are taken at a time: they stay in the cache.
CHUNK = 2**17


class LogPartition(Statistic):
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
    single : float32 array, shape (d, k), optional
        What rows in float32 are multiplied with, where several statistics share the product;
        `directions` by default.
    rotation : BlockRotation, optional
        Turns the product with `single` into that with `directions`.
    bound : float
        No |scale·⟨w − shift, a⟩| is larger. Up to `SINGLE_BOUND` rows that are stored in float32
        or less are multiplied as they are, and exponentials need no common factor taken out.

    Notes
    -----
    State is the running maximum of the exponents and the sum of exponentials relative to it, so
    that no norm overflows.
    """

    STATE = ("_top", "_sum")

    def __init__(
        self,
        name: str,
        directions: FloatArray,
        scales: tuple[float, ...] = (1.0,),
        shift: FloatArray | None = None,
        both: bool = True,
        bound: float = np.inf,
        single: npt.NDArray[np.float32] | None = None,
        rotation: BlockRotation | None = None,
    ) -> None:
        self.name = name
        self.directions = directions
        self.scales = scales
        self.offset = None if shift is None else shift @ directions
        self.signs = (1.0, -1.0) if both else (1.0,)
        self.bounded = bound <= SINGLE_BOUND
        self.single = directions.astype(np.float32) if single is None else single
        self.rotation = rotation
        self.clear()

    def clear(self) -> None:
        shape = (len(self.scales), len(self.signs), self.directions.shape[1])
        self._top: FloatArray = np.full(shape, -np.inf)
        self._sum: FloatArray = np.zeros(shape)

    @property
    def key(self) -> tuple[str, str]:
        return ("log partition", self.name)

    def update(self, block: Block) -> None:
        if not len(block.index):
            return
        if self.bounded:
            self.add_products(self._products(block))
        else:
            self._add_unbounded(block.rows @ self.directions)

    def _products(self, block: Block) -> WorkingArray:
        if block.stored.dtype == np.float64:
            return block.stored @ self.directions
        products = block.product(self.single)
        return products if self.rotation is None else self.rotation.apply(products)

    def add_products(self, products: WorkingArray) -> None:
        """Take in ⟨w_i, a⟩ for some rows, shape (b, k), where no exponent overflows."""
        total = np.zeros_like(self._sum)
        # Few rows at a time: float32 sums of a thousand would lose a digit.
        step = max(1, min(256, CHUNK // products.shape[1]))
        offset = None if self.offset is None else self.offset.astype(products.dtype)
        for start in range(0, len(products), step):
            part = products[start : start + step]
            if offset is not None:
                part = part - offset
            for s, scale in enumerate(self.scales):
                terms = np.exp(part if scale == 1.0 else part * part.dtype.type(scale))
                total[s, 0] += terms.sum(axis=0)
                if len(self.signs) == 2:
                    np.reciprocal(terms, out=terms)
                    total[s, 1] += terms.sum(axis=0)
        top = np.zeros(products.shape[1])
        for at in np.ndindex(total.shape[:2]):
            self._join(at, top, total[at])

    def _add_unbounded(self, products: FloatArray) -> None:
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
        for at in np.ndindex(self._sum.shape[:2]):
            self._join(at, other._top[at], other._sum[at])

    def _join(self, at: tuple[int, ...], top: FloatArray, total: FloatArray) -> None:
        mine = self._top[at]
        both = np.maximum(mine, top)
        if np.all(np.isneginf(both)):
            return
        with np.errstate(under="ignore"):
            self._sum[at] = self._sum[at] * np.exp(mine - both) + total * np.exp(top - both)
        self._top[at] = both

    def forget_directions(self) -> None:
        """Keep what was summed; the directions are let go. No rows may be added after."""
        self.directions, self.rotation = np.empty((0, 0)), None
        self.single = np.empty((0, 0), dtype=np.float32)

    def log_z(self, scale: float = 1.0) -> FloatArray:
        """log Z: row 0 at the directions, row 1 (if looked at) at their negatives; k columns."""
        at = self.scales.index(scale)
        with np.errstate(divide="ignore"):  # of no rows, Z is 0
            return np.asarray(self._top[at] + np.log(self._sum[at]))
