"""Distances to the first and second nearest other row, for TwoNN."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from embgeo.stats.base import Block, FloatArray, IntArray, Statistic

#: Candidates whose distance is computed from the difference: the product form loses small ones.
CANDIDATES = 4


class TwoNearest(Statistic):
    """The two smallest Euclidean distances from each query to rows that take part.

    Parameters
    ----------
    index : int array, shape (q,)
        Row numbers of the queries; a query is no neighbour of itself.
    queries : float64 array, shape (q, d)
    takes_part : bool array, shape (N,)
        Rows that may be neighbours; TwoNN wants each point of space once.

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
        index, rows = block.index[chosen], block.rows[chosen]
        if not len(index) or not len(self.index):
            return
        # ‖x‖² − 2⟨q, x⟩ orders the rows as their distances do.
        order = np.square(rows).sum(axis=1) - 2.0 * (self.queries @ rows.T)
        order[self.index[:, None] == index[None, :]] = np.inf
        keep = min(CANDIDATES, len(index))
        near = np.argpartition(order, keep - 1, axis=1)[:, :keep]
        distances = np.linalg.norm(rows[near] - self.queries[:, None, :], axis=2)
        distances[self.index[:, None] == index[near]] = np.inf
        self._join(distances)

    def merge(self, other: Self) -> None:
        self._join(other.distances)

    def _join(self, distances: FloatArray) -> None:
        self.distances = np.sort(np.hstack([self.distances, distances]), axis=1)[:, :2]
