"""Some rows of the matrix on the device, with what several kernels derive from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.stats.backend.device import Array, Device
from embgeo.stats.block import Block

#: Beyond these a square of a float64 may overflow or vanish: such blocks are left to the host.
SQUARABLE = (1e-140, 1e140)
#: Norms whose inverse float32 holds.
INVERTIBLE = (1e-30, 1e30)


class DeviceBlock:
    """Rows on the device, as `embgeo.stats.block.Block` has them on the host.

    Parameters
    ----------
    device : Device
    index : int array, shape (b,)
        Row numbers, on the host.
    stored : float32 or float64 tensor, shape (b, d)
        The rows in the narrower of the two that holds every stored entry exactly.
    pair : callable, optional
        ``pair(index)`` gives the same tokens' rows of the output projection, on the host.
    """

    def __init__(
        self,
        device: Device,
        index: IntArray,
        stored: Array,
        pair: Callable[[IntArray], FloatArray] | None = None,
    ) -> None:
        self.device = device
        self.index = index
        self.stored = stored
        self._pair = pair

    @property
    def dtype(self) -> type[np.float32] | type[np.float64]:
        """Precision of `stored`."""
        return np.float32 if self.stored.dtype == self.device.xp.float32 else np.float64

    def take(self, chosen: npt.NDArray[np.bool_]) -> DeviceBlock:
        """Only these rows of the block."""
        rows = self.device.xp.take(self.stored, self.device.put(np.flatnonzero(chosen)), axis=0)
        return DeviceBlock(self.device, self.index[chosen], rows, self._pair)

    def halves(self) -> tuple[DeviceBlock, DeviceBlock]:
        """The block cut in two, without what was derived from it."""
        middle = len(self.index) // 2
        first, second = (
            DeviceBlock(self.device, self.index[part], self.stored[part], self._pair)
            for part in (slice(0, middle), slice(middle, None))
        )
        return first, second

    @cached_property
    def host(self) -> Block:
        """The same rows on the host."""
        paired = None if self._pair is None else self._pair(self.index)
        return Block(self.index, self.device.host(self.stored), paired)

    @cached_property
    def paired(self) -> Array:
        """The output rows in float64, shape (b, q)."""
        if self._pair is None:
            raise ValueError("this statistic needs blocks with paired rows")
        return self.device.put(self._pair(self.index))

    @cached_property
    def rows(self) -> Array:
        """The rows in float64."""
        return self.device.xp.astype(self.stored, self.device.xp.float64)

    @cached_property
    def norms(self) -> Array:
        """Euclidean norms in float64."""
        if self._far:
            return self.device.put(self.host.norms)
        return self.device.xp.linalg.vector_norm(self.rows, axis=1)

    @cached_property
    def unit(self) -> Array:
        """The rows divided by their norms, in float64."""
        if self._far:
            return self.device.put(self.host.unit)
        return self.rows / self.norms[:, None]

    @cached_property
    def stored_unit(self) -> Array:
        """The rows divided by their norms, in the precision of `stored`."""
        xp = self.device.xp
        if not self.device.wide:
            return self.device.put(self.host.stored_unit)
        if self.stored.dtype == xp.float64:
            return self.unit
        shortest, longest = float(xp.min(self.norms)), float(xp.max(self.norms))
        if shortest < INVERTIBLE[0] or longest > INVERTIBLE[1]:
            return xp.astype(self.unit, xp.float32)
        return self.stored * xp.astype(1.0 / self.norms, xp.float32)[:, None]

    @cached_property
    def _far(self) -> bool:
        """Whether squares of some row may overflow or vanish in float64."""
        xp: Any = self.device.xp
        if self.stored.dtype == xp.float32:
            return False
        largest = xp.max(xp.abs(self.stored), axis=1)
        low, high = SQUARABLE
        return not bool(xp.all((largest > low) & (largest < high)))
