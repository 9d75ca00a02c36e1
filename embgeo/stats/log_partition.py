"""ℓ(a) = log Σ_i exp⟨w_i, a⟩ for many directions a at once: Arora's partition function."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import Array, FloatArray
from embgeo.numerics.block_rotation import BlockRotation
from embgeo.stats.backend.backend import Backend
from embgeo.stats.backend.numpy import HOST
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic

#: Exponents up to this are good to 5e-7 in float32: half its spacing there.
SINGLE_BOUND = 16.0


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
        Whether to take Z at −a, too.
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
        self.scales = tuple(map(float, scales))
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
            top = np.zeros_like(self._top)
            total = self._add_bounded(block.backend, self._multiply(block))
        else:
            directions = block.wide.constant(self.directions)
            top, total = self._add_unbounded(block.wide, block.rows @ directions)
        self._join(top, total)

    def _multiply(self, block: Block) -> Array:
        """⟨w_i, a⟩ in the precision of the stored rows, shape (b, k)."""
        backend, dtype = block.backend, block.stored.dtype
        # Many small products, as a rotation takes, cost a device more than a whole one.
        whole = self.rotation is not None and backend is not HOST
        if whole or dtype == backend.xp.float64:
            return block.stored @ backend.constant(self.directions, dtype)
        products = block.product(backend.constant(self.single))
        return products if self.rotation is None else self.rotation.apply(products)

    def _add_bounded(self, backend: Backend, products: Array) -> FloatArray:
        """Σ exp of these, where no exponent overflows."""
        xp, total = backend.xp, np.zeros_like(self._sum)
        offset = None if self.offset is None else backend.put(self.offset, products.dtype)
        for rows in backend.slices(*products.shape):
            part = products[rows]
            if offset is not None:
                part = part - offset
            for s, scale in enumerate(self.scales):
                terms = xp.exp(part if scale == 1.0 else part * scale)
                total[s, 0] += backend.sum64(terms)
                if len(self.signs) == 2:
                    total[s, 1] += backend.sum64(1.0 / terms)
        return total

    def _add_unbounded(self, wide: Backend, products: Array) -> tuple[FloatArray, FloatArray]:
        """The largest of these, and Σ exp relative to it."""
        xp, tops, total = wide.xp, np.empty_like(self._top), np.empty_like(self._sum)
        if self.offset is not None:
            products -= wide.put(self.offset)
        high, low = xp.max(products, axis=0), xp.min(products, axis=0)
        for s, scale in enumerate(self.scales):
            for at, sign in enumerate(self.signs):
                top = scale * high if sign > 0 else -scale * low
                exponents = products * (sign * scale)
                exponents -= top
                tops[s, at] = wide.to_host(top)
                total[s, at] = wide.sum64(xp.exp(exponents))
        return tops, total

    def merge(self, other: Self) -> None:
        self._join(other._top, other._sum)

    def _join(self, top: FloatArray, total: FloatArray) -> None:
        both = np.maximum(self._top, top)
        if np.all(np.isneginf(both)):
            return
        with np.errstate(under="ignore"):
            mine, theirs = np.exp(self._top - both), np.exp(top - both)
            self._sum = self._sum * mine + total * theirs
        self._top = both

    def forget_directions(self) -> None:
        """Keep what was summed; the directions are let go. No rows may be added after."""
        self.directions, self.rotation = np.empty((0, 0)), None
        self.single = np.empty((0, 0), dtype=np.float32)

    def log_z(self, scale: float = 1.0) -> FloatArray:
        """log Z: row 0 at the directions, row 1 (if `both`) at their negatives; k columns."""
        at = self.scales.index(scale)
        with np.errstate(divide="ignore"):  # of no rows, Z is 0
            return np.asarray(self._top[at] + np.log(self._sum[at]))
