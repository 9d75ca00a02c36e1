"""Sums of unit rows after some coordinates are zeroed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic


@dataclass(eq=False)
class ReducedSums(Statistic):
    """Σ of the unit rows once the first 1, 3, … of the named coordinates are zeroed.

    Parameters
    ----------
    coordinates : int array
        The order in which they are zeroed.
    counts : tuple of int
        How many of them are zeroed, ascending; the last is all of them.
    d : int

    Attributes
    ----------
    n : int array, shape (len(counts),)
        Rows that are not zero afterwards.
    sums : float64 array, shape (len(counts), d)
        The zeroed coordinates are 0.
    """

    STATE = ("n", "sums")

    coordinates: IntArray
    counts: tuple[int, ...]
    d: int

    def clear(self) -> None:
        self.n: IntArray = np.zeros(len(self.counts), dtype=np.int64)
        self.sums: FloatArray = np.zeros((len(self.counts), self.d))

    def update(self, block: Block) -> None:
        if not len(block.index):
            return
        wide, xp, unit = block.wide, block.wide.xp, block.unit
        keep = np.ones(self.sums.shape)
        for at, count in enumerate(self.counts):
            keep[at, self.coordinates[:count]] = 0.0
        rest = unit * wide.put(keep[-1])
        left = wide.to_host(xp.vecdot(rest, rest))
        named = np.square(wide.to_host(unit[:, self.coordinates.tolist()]))
        # What is left is summed up from below, never subtracted from above: nothing cancels.
        squares = np.stack([left + named[:, count:].sum(axis=1) for count in self.counts])
        alive = squares > 0.0
        inverse = np.where(alive, 1.0 / np.sqrt(np.where(alive, squares, 1.0)), 0.0)
        sums = wide.to_host(wide.put(inverse) @ unit)
        self.n += alive.sum(axis=1)
        self.sums += sums * keep
