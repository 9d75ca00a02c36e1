"""Distances to the first and second nearest other row, for TwoNN."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray, WorkingArray
from embgeo.stats.block import Block
from embgeo.stats.candidates import best_of_each, candidates, kth_best, rounding
from embgeo.stats.statistic import Statistic

#: Candidates whose distance is computed from the difference: the product form loses small ones.
CANDIDATES = 4
#: If the largest square lies between these, float32 neither loses digits of it nor overflows.
SINGLE_SQUARES = (1e-30, 1e30)


class TwoNearest(Statistic):
    """The two smallest Euclidean distances from each query to rows that take part.

    Parameters
    ----------
    index : int array, shape (q,)
        Row numbers of the queries; a query is no neighbor of itself.
    queries : float64 array, shape (q, d)
    takes_part : bool array, shape (N,)
        Rows that may be neighbors; TwoNN wants each point of space once.

    Attributes
    ----------
    distances : float64 array, shape (q, 2)
        Infinite where fewer than two rows were seen.
    """

    STATE = ("distances",)

    def __init__(
        self, index: IntArray, queries: FloatArray, takes_part: npt.NDArray[np.bool_]
    ) -> None:
        self.index = index
        self.queries = queries
        self.takes_part = takes_part
        self.clear()

    def clear(self) -> None:
        self.distances: FloatArray = np.full((len(self.index), 2), np.inf)

    @property
    def key(self) -> str:
        return "two nearest"

    def update(self, block: Block) -> None:
        chosen = self.takes_part[block.index]
        if not chosen.any() or not len(self.index):
            return
        part = block if chosen.all() else Block(block.index[chosen], block.stored[chosen])
        found = self._near(part)
        if found is None:
            self._join_dense(part)
        else:
            self.take_in(part, *found)

    def take_in(self, block: Block, query: IntArray, column: IntArray) -> None:
        """Add these rows of a block for these queries; every other row must be further away."""
        distances = np.empty(len(query))
        step = max(1, 2**21 // block.stored.shape[1])
        for start in range(0, len(query), step):
            part = slice(start, start + step)
            apart = block.rows[column[part]] - self.queries[query[part]]
            distances[part] = np.linalg.norm(apart, axis=1)
        self._join(query, distances)

    def _near(self, block: Block) -> tuple[IntArray, IntArray] | None:
        """Queries and columns of whatever may be nearer than what was seen before."""
        squares = np.square(block.norms)
        own = np.square(self.queries).sum(axis=1)
        ordinary = SINGLE_SQUARES[0] < max(own.max(), squares.max()) < SINGLE_SQUARES[1]
        stored = block.stored if ordinary else block.rows
        # −‖x‖² + 2⟨q, x⟩ orders the rows as their distances do.
        scores = self.queries.astype(stored.dtype) @ stored.T
        scores *= 2
        scores -= squares.astype(stored.dtype)
        self._leave_out_self(scores, block.index)
        least = own - np.square(self.distances[:, 1])
        if np.isneginf(least).any():
            least = np.maximum(least, kth_best(scores, 2))
        slack = 2.0 * rounding(stored.shape[1], stored.dtype) * np.maximum(own, squares.max())
        return candidates(scores, least - slack, 2)

    def _join_dense(self, block: Block) -> None:
        """Where the product cannot tell the rows apart: the few best of it, by their difference."""
        order = np.square(block.rows).sum(axis=1) - 2.0 * (self.queries @ block.rows.T)
        self._leave_out_self(order, block.index, np.inf)
        keep = min(CANDIDATES, len(block.index))
        near = np.argpartition(order, keep - 1, axis=1)[:, :keep]
        distances = np.linalg.norm(block.rows[near] - self.queries[:, None, :], axis=2)
        distances[self.index[:, None] == block.index[near]] = np.inf
        self._join(np.repeat(np.arange(len(self.index)), keep), distances.ravel())

    def _leave_out_self(
        self, scores: WorkingArray, index: IntArray, worst: float = -np.inf
    ) -> None:
        _, mine, theirs = np.intersect1d(self.index, index, True, return_indices=True)
        scores[mine, theirs] = worst

    def merge(self, other: Self) -> None:
        self._join(np.repeat(np.arange(len(self.index)), 2), other.distances.ravel())

    def _join(self, query: IntArray, distances: FloatArray) -> None:
        mine = np.repeat(np.arange(len(self.index)), 2)
        every = np.concatenate([self.distances.ravel(), distances])
        _, best = best_of_each(
            np.concatenate([mine, query]),
            np.zeros(len(every), dtype=np.int64),
            -every,
            len(self.index),
            2,
        )
        self.distances = -best
