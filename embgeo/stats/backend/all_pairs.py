"""The cosine of every pair of rows, counted on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.stats import PairHistogram
from embgeo.stats.backend.block import DeviceBlock
from embgeo.stats.backend.device import Array, Device
from embgeo.stats.backend.full import FLOOR, DeviceFull, fits
from embgeo.stats.backend.kernel import with_state
from embgeo.stats.block import Block
from embgeo.stats.candidates import rounding
from embgeo.stats.pair_cosines import FINE_BINS

#: Rows of either side of a tile: no more cosines in it than float32 can count.
TILE = 4096


class Tile(NamedTuple):
    """One number each, still on the device, and the rows of either side."""

    positive: Array
    lowest: Array
    place: Array
    highest: Array
    exp_sum: Array
    left: IntArray
    right: IntArray


class AllPairs:
    """Counts every pair of the blocks that it is shown, each pair once.

    Products in the precision of the stored rows, counts in int64, exponentials summed in float64
    (on a device without it, of a tile in float32). The widest pair is looked at again in float64.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.pairs = 0
        self._counts = device.xp.zeros((FINE_BINS,), dtype=device.xp.int64, device=device.at)
        self._tiles: list[Tile] = []
        self._slack = 0.0

    def add(self, left: DeviceBlock, right: DeviceBlock) -> None:
        """Every row of one block with every row of another, or of a block with itself."""
        self._slack = max(self._slack, rounding(left.stored.shape[1], left.dtype))
        for i in cuts(range(len(left.index)), TILE):
            for j in cuts(range(len(right.index)), TILE):
                # Of a block with itself, the tiles on and above the diagonal.
                if left is not right or j.start >= i.start:
                    self._tile(left, i, right, j)

    def _tile(self, left: DeviceBlock, i: range, right: DeviceBlock, j: range) -> None:
        own = left is right and i == j
        pairs = len(i) * (len(i) - 1) // 2 if own else len(i) * len(j)
        if not pairs:
            return
        done, found = fits(self.device, lambda: self._counted(left, i, right, j, own))
        if found is not None:
            tile, counts = found
            self._counts += counts
            self._tiles.append(tile)
            self.pairs += pairs
        if done:
            return
        if len(i) <= FLOOR:
            raise DeviceFull(self.device, len(i))
        halves = cuts(i, -(-len(i) // 2))
        for number, first in enumerate(halves):
            for second in halves[number:] if own else cuts(j, -(-len(j) // 2)):
                self._tile(left, first, right, second)

    def _counted(
        self, left: DeviceBlock, i: range, right: DeviceBlock, j: range, own: bool
    ) -> tuple[Tile, Array]:
        xp = self.device.xp
        grid = left.stored_unit[i.start : i.stop] @ right.stored_unit[j.start : j.stop].T
        values = grid
        if own:
            at = xp.arange(len(i), device=self.device.at)
            above = at[:, None] < at[None, :]
            values = grid[above]
            grid = xp.where(above, grid, np.inf)
        lowest, place, highest = xp.min(values), xp.argmin(grid), xp.max(values)
        positive = xp.count_nonzero(values > 0)
        values = xp.clip(values, -1.0, 1.0)
        counts = self.device.histogram(values, FINE_BINS)
        values *= 4.0
        values -= 4.0
        wide = xp.float64 if self.device.wide else None
        exp_sum = xp.sum(xp.exp(values), dtype=wide)
        rows = left.index[i.start : i.stop], right.index[j.start : j.stop]
        return Tile(positive, lowest, place, highest, exp_sum, *rows), counts

    def finish(self, take: Callable[[IntArray], FloatArray]) -> PairHistogram:
        """What was counted, on the host; ``take(rows)`` gives rows in float64."""
        if not self._tiles:
            return PairHistogram()
        host, stack = self.device.host, self.device.xp.stack
        positive, lowest, place, highest, exp_sum = (
            host(stack([tile[part] for tile in self._tiles])) for part in range(5)
        )
        # Any of these may hold the widest pair, once rounding is taken off.
        near = np.flatnonzero(lowest <= lowest.min() + 2 * self._slack)
        exact = [self._cosine(self._tiles[at], int(place[at]), take) for at in near]
        return with_state(
            PairHistogram(),
            n=self.pairs,
            positive=int(positive.sum()),
            lowest=max(min(exact), -1.0),
            highest=min(float(highest.max()), 1.0),
            exp_sum=float(exp_sum.sum(dtype=np.float64)),
            counts=host(self._counts),
        )

    def _cosine(self, tile: Tile, place: int, take: Callable[[IntArray], FloatArray]) -> float:
        """Of one pair of a tile, in float64."""
        i, j = divmod(place, len(tile.right))
        first, second = (Block(row, take(row)).unit[0] for row in (tile.left[[i]], tile.right[[j]]))
        return float(first @ second)


def cuts(rows: range, length: int) -> list[range]:
    """Neighboring parts of a range of positions."""
    return [rows[start : start + length] for start in range(0, len(rows), length)]
