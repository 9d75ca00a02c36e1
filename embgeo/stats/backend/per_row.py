"""One or a few numbers for each row, computed on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from embgeo.stats import AngleAfterRemoval, AngleTo, Norms, Projection2, RowHashes
from embgeo.stats.backend.block import DeviceBlock
from embgeo.stats.backend.device import Array, Device
from embgeo.stats.backend.kernel import Kernel, Working
from embgeo.stats.per_row import PerRow

#: Entries whose products are held at a time in the sum of a hash.
HASHED = 2**25


class PerRowKernel(Kernel[PerRow]):
    """Numbers that need nothing but the row; gathered on the host."""

    @classmethod
    def serves(cls, statistic: PerRow, device: Device, working: Working) -> bool:
        return device.wide and type(statistic) in COMPUTE

    def update(self, block: DeviceBlock) -> None:
        values = COMPUTE[type(self.statistic)](self.statistic, block)
        self.found.add(
            block.index, values if isinstance(values, np.ndarray) else self.device.host(values)
        )


def norms(statistic: Norms, block: DeviceBlock) -> Array:
    return block.norms


def projection(statistic: Projection2, block: DeviceBlock) -> Array:
    shift = block.device.put(statistic.shift @ statistic.axes)
    return block.rows @ block.device.put(statistic.axes) - shift


def angle_to(statistic: AngleTo, block: DeviceBlock) -> Array:
    return angle_between(block, block.unit, block.device.put(statistic.direction))


def angle_after_removal(statistic: AngleAfterRemoval, block: DeviceBlock) -> Array:
    xp, put = block.device.xp, block.device.put
    removed = put(statistic.removed)
    rest = block.unit - (block.unit @ removed)[:, None] * removed
    lengths = xp.linalg.vector_norm(rest, axis=1)
    rest /= xp.clip(lengths, 1e-300, None)[:, None]
    angles = angle_between(block, rest, put(statistic.direction))
    return xp.where(lengths > 1e-12, angles, np.pi / 2)


def angle_between(block: DeviceBlock, u: Array, v: Array) -> Array:
    """Angles between unit rows and a unit vector, accurate at 0 and π (Kahan)."""
    xp = block.device.xp
    apart = xp.linalg.vector_norm(u - v, axis=1)
    together = xp.linalg.vector_norm(u + v, axis=1)
    return 2.0 * xp.atan2(apart, together)


def row_hashes(statistic: RowHashes, block: DeviceBlock) -> Array:
    """Multiply-and-add modulo 2⁶⁴, which signed integers of 64 bits give as well."""
    xp = block.device.xp
    bits = (block.stored + 0.0).view(xp.int32)
    multipliers = block.device.put(statistic.multipliers[: bits.shape[1]].view(np.int64))
    step = max(1, HASHED // bits.shape[1])
    parts = []
    for start in range(0, bits.shape[0], step):
        words = xp.astype(bits[start : start + step], xp.int64) & 0xFFFFFFFF
        words *= multipliers
        parts.append(xp.sum(words, axis=1))
    return block.device.host(xp.concat(parts)).view(np.uint64)


#: What is computed of each row, by statistic.
COMPUTE: dict[type[PerRow], Callable[[Any, DeviceBlock], Array]] = {
    AngleAfterRemoval: angle_after_removal,
    AngleTo: angle_to,
    Norms: norms,
    Projection2: projection,
    RowHashes: row_hashes,
}
