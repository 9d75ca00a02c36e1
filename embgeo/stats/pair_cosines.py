"""Cosines of pairs of rows: a sample that is kept, or every pair in a fine histogram."""

from typing import Self

import numpy as np

from embgeo.core.arrays import Array, FloatArray
from embgeo.stats.backend.backend import HOST, Backend
from embgeo.stats.block import Block
from embgeo.stats.nearest import bound_rounding
from embgeo.stats.statistic import Statistic, concatenate

#: Bins of the fine histogram over [−1, 1]; quantiles read from it are good to 8e-6.
FINE_BINS = 2**18


class PairSample(Statistic):
    """A list of cosines, for a sample or for all pairs of a small matrix."""

    STATE = ("_values",)

    def clear(self) -> None:
        self._values: list[FloatArray] = []

    def add(self, cosines: FloatArray) -> None:
        if cosines.size:
            self._values.append(np.clip(cosines.ravel(), -1.0, 1.0))

    def add_pairs(self, left: Block, right: Block) -> None:
        """Add every row of one block with every row of another, or each pair of a block once."""
        cosines = left.unit @ right.unit.T
        self.add(cosines[np.triu_indices(len(cosines), 1)] if left is right else cosines)

    def values(self) -> FloatArray:
        """Return all cosines, ascending."""
        return np.sort(self.in_order())

    def in_order(self) -> FloatArray:
        """Return all cosines, in the order in which they were added."""
        return np.asarray(concatenate(self._values))


class PairHistogram(Statistic):
    """Every pair, counted: share of positive cosines, extremes, and a histogram.

    `counts`: shape (FINE_BINS,).
    """

    STATE = ("n", "positive", "lowest", "highest", "counts")

    def clear(self) -> None:
        self.n = 0
        self.positive = 0
        self.lowest = np.inf
        self.highest = -np.inf
        self.counts: Array = np.zeros(FINE_BINS, dtype=np.int64)

    def add_pairs(self, left: Block, right: Block) -> None:
        """Add every row of one block with every row of another, or each pair of a block once.

        Products are taken in the precision of the stored rows; the widest pair is computed
        again in float64, because its angle depends on the last digits of its cosine.
        """
        backend, xp = left.backend, left.backend.xp
        values = grid = xp.reshape(left.stored_unit @ right.stored_unit.T, (-1,))
        if left is right:
            number = backend.put(np.arange(len(left.index)))
            above = xp.reshape(number[:, None] < number[None, :], (-1,))
            values, grid = grid[above], xp.where(above, grid, xp.ones_like(grid))
        if not values.shape[0]:
            return
        place = int(xp.argmin(grid))
        lowest = float(grid[place])
        slack = bound_rounding(backend, left.stored)
        if lowest <= self.lowest + slack:
            i, j = divmod(place, len(right.index))
            one, other = (side.take(np.array([at])).unit for side, at in ((left, i), (right, j)))
            lowest = float(left.wide.xp.vecdot(one, other)[0])
        self.add(values, lowest, backend)

    def add(self, cosines: Array, lowest: float | None = None, backend: Backend = HOST) -> None:
        """Count cosines; `lowest` is their minimum if it is known more precisely."""
        xp = backend.xp
        values = xp.reshape(cosines, (-1,))
        if not values.shape[0]:
            return
        least = float(xp.min(values)) if lowest is None else lowest
        highest, positive = float(xp.max(values)), int(xp.count_nonzero(values > 0))
        counts = backend.put(self.counts)
        for start in range(0, values.shape[0], backend.chunk):
            inside = xp.clip(values[start : start + backend.chunk], -1.0, 1.0)
            counts = counts + backend.histogram(inside, FINE_BINS)
        self.n += values.shape[0]
        self.positive += positive
        self.lowest = min(self.lowest, max(least, -1.0))
        self.highest = min(max(self.highest, highest), 1.0)
        self.counts = counts

    def merge(self, other: Self) -> None:
        ends = min(self.lowest, other.lowest), max(self.highest, other.highest)
        super().merge(other)
        self.lowest, self.highest = ends
