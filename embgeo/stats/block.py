"""A block of rows; norms, unit rows and products are computed once for all statistics."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import Array, FloatArray, IntArray, SingleArray
from embgeo.numerics.eigen import BlockRotation
from embgeo.stats.backend.backend import HOST, Backend

#: Entries between these have squares that neither overflow nor vanish in float64.
SQUARABLE = (1e-140, 1e140)
#: Norms between these can be squared and divided by in float64, …
DIVISIBLE = (1e-150, 1e150)
#: … and between these in float32.
INVERTIBLE = (1e-30, 1e30)


class Block:
    """Consecutive or selected rows of the matrix, on a backend.

    `stored` and `stored_unit` are arrays of `backend`; float64 arrays belong to `wide`, which is
    numpy if the device has no float64.

    `index`: shape (b,); row numbers, on the host. `stored`: shape (b, d); the rows in the narrower
    of the two that holds every stored entry exactly. No row is zero or non-finite. `read_paired`:
    reads the same tokens' rows of the output matrix, float64, shape (b, q).
    """

    def __init__(
        self,
        index: IntArray,
        stored: Array,
        read_paired: Callable[[], FloatArray] | None = None,
        backend: Backend = HOST,
    ) -> None:
        self.index = index
        self.stored = stored
        self.backend = backend
        self.wide = backend.wide
        self._read_paired = read_paired
        self._products: dict[tuple[int, int | None], tuple[Any, Array]] = {}
        self._splits: dict[float, tuple[Block, Block]] = {}

    def take(self, chosen: slice | npt.NDArray[Any]) -> Block:
        """Select rows of the block by a slice, positions or a mask on the host."""
        if isinstance(chosen, slice) or self.backend is HOST:
            stored = self.stored[chosen]
        else:
            at = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
            stored = self.backend.xp.take(self.stored, self.backend.put(at), axis=0)
        read = self._read_paired
        paired = None if read is None else lambda: read()[chosen]
        return Block(self.index[chosen], stored, paired, self.backend)

    def split(self, norm: float) -> tuple[Block | None, Block | None]:
        """Split into rows of at most this norm and longer ones, once; None for none."""
        if norm not in self._splits:
            short = self.wide.to_host(self.norms) <= norm
            # Not kept: a block that refers to itself lives until garbage is collected.
            if short.all():
                return self, None
            if not short.any():
                return None, self
            self._splits[norm] = self.take(short), self.take(~short)
        return self._splits[norm]

    @cached_property
    def rows(self) -> Array:
        """The rows in float64."""
        return self.backend.widen(self.stored)

    @cached_property
    def paired(self) -> Array:
        """Rows of the output matrix in float64."""
        if self._read_paired is None:
            raise ValueError("this statistic needs blocks with paired rows")
        return self.wide.put(self._read_paired(), self.wide.xp.float64)

    @cached_property
    def norms(self) -> Array:
        """Euclidean norms in float64."""
        if self._scaled is None:
            return self.wide.xp.sqrt(self.wide.xp.vecdot(self.rows, self.rows))
        scaled, exponents = self._scaled
        return self.wide.put(np.ldexp(np.sqrt(np.vecdot(scaled, scaled)), exponents))

    @cached_property
    def is_divisible(self) -> bool:
        """Whether all norms can be squared and divided by."""
        xp, (low, high) = self.wide.xp, DIVISIBLE
        return low < float(xp.min(self.norms)) and float(xp.max(self.norms)) < high

    @cached_property
    def unit(self) -> Array:
        """The rows divided by their norms, in float64."""
        if self._scaled is None:
            return self.rows / self.norms[:, None]
        scaled, _ = self._scaled
        return self.wide.put(scaled / np.sqrt(np.vecdot(scaled, scaled))[:, None])

    def along(self, axes: Array) -> Array:
        """Return ``unit @ axes`` in `wide`, without making unit rows where norms divide."""
        if not self.is_divisible:
            return self.unit @ axes
        return (self.rows @ axes) / self.norms[:, None]

    @cached_property
    def stored_unit(self) -> Array:
        """The rows divided by their norms, in the precision of `stored`."""
        xp = self.backend.xp
        if self.stored.dtype == xp.float64:
            return self.unit
        norms = self.wide.to_host(self.norms)
        if norms.min(initial=1.0) < INVERTIBLE[0] or norms.max(initial=1.0) > INVERTIBLE[1]:
            return self.backend.put(self.unit, xp.float32)
        return self.stored * self.backend.put(1.0 / self.norms, xp.float32)[:, None]

    def product(
        self,
        directions: FloatArray,
        single: SingleArray | None = None,
        rotation: BlockRotation | None = None,
    ) -> Array:
        """Return ``stored @ directions`` in the precision of `stored`, computed once.

        Rows in float32 are multiplied with `single`, which several statistics share, and turned by
        `rotation`. Many small products, as a rotation takes, cost a device more than a whole one.
        """
        backend, dtype = self.backend, self.stored.dtype
        if dtype == backend.xp.float64 or single is None or (rotation and backend is not HOST):
            return self._multiply(directions, dtype)
        product = self._multiply(single)
        if rotation is None:
            return product
        key = id(single), id(rotation)
        if key not in self._products:
            self._products[key] = rotation, rotation.apply(product)
        return self._products[key][1]

    def _multiply(self, directions: Array, dtype: Any = None) -> Array:
        key = id(directions), None
        if key not in self._products:
            # The array is kept with its product, so that its id is not reused.
            product = self.stored @ self.backend.constant(directions, dtype)
            self._products[key] = directions, product
        return self._products[key][1]

    @cached_property
    def _scaled(self) -> tuple[FloatArray, npt.NDArray[np.int32]] | None:
        """Each row divided by a power of two, and its exponent; None if all squares are safe."""
        xp = self.backend.xp
        if self.stored.dtype == xp.float32:  # whose squares all lie well inside float64
            return None
        low, high = SQUARABLE
        largest = xp.max(xp.abs(self.stored), axis=1)
        if bool(xp.all((largest > low) & (largest < high))):
            return None
        exponents = np.frexp(self.backend.to_host(largest))[1]
        return np.ldexp(self.backend.to_host(self.stored), -exponents[:, None]), exponents
