"""Two matrices over their shared tokens, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.matrix import Matrix
from embgeo.stats.block import Block
from embgeo.stats.resources import Resources, shared_fold
from embgeo.stats.statistic import Statistic


@dataclass(frozen=True, slots=True)
class Shared:
    """X and Y side by side: row i of ``[X | Y]`` belongs to shared token i."""

    #: With p and with q columns.
    first: Matrix
    second: Matrix
    #: Row numbers of the shared tokens in either matrix.
    first_rows: IntArray
    second_rows: IntArray
    resources: Resources = field(default_factory=Resources)

    @property
    def n(self) -> int:
        """S, the number of shared tokens."""
        return len(self.first_rows)

    @property
    def p(self) -> int:
        return self.first.d

    @property
    def q(self) -> int:
        return self.second.d

    def rows(self, index: IntArray) -> tuple[FloatArray, FloatArray]:
        """The rows of some shared tokens, in float64."""
        x = self.first.take(self.first_rows[index])
        return x, self.second.take(self.second_rows[index])

    def fold(self, statistics: Sequence[Statistic], advance: Callable[[int], None]) -> None:
        """One pass: feed all rows ``[x | y]`` to the statistics, on all threads."""
        plan = self.resources.plan(self.n, self.p + self.q)

        def blocks(start: int, stop: int) -> Iterator[Block]:
            for first in range(start, stop, plan.block_rows):
                index = np.arange(first, min(first + plan.block_rows, stop), dtype=np.int64)
                x = self.first.stored(self.first_rows[index])
                y = self.second.stored(self.second_rows[index])
                yield Block(index, np.hstack([x, y]))

        shared_fold(plan, self.n, blocks, statistics, advance)

    def fold_sides(self, first: Sequence[Statistic], second: Sequence[Statistic]) -> None:
        """One pass over either matrix: rows x to the first statistics, rows y to the second."""
        sides = (self.first, self.first_rows, first), (self.second, self.second_rows, second)
        for matrix, rows, statistics in sides:
            plan = self.resources.plan(self.n, matrix.d)
            blocks = partial(read_side, matrix, rows, plan.block_rows)
            shared_fold(plan, self.n, blocks, statistics, lambda _rows: None)


def read_side(matrix: Matrix, rows: IntArray, step: int, start: int, stop: int) -> Iterator[Block]:
    """The shared tokens from `start` to `stop` in one matrix, block by block."""
    for _, stored in matrix.blocks(rows, start=start, stop=stop, step=step):
        index = np.arange(start, start + len(stored), dtype=np.int64)
        start += len(stored)
        yield Block(index, stored)
