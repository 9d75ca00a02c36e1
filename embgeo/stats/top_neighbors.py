"""The k nearest rows by cosine for some query rows, and the rank of given rows among them."""

from __future__ import annotations

from typing import Self

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, WorkingArray
from embgeo.stats.block import Block, row_products
from embgeo.stats.candidates import best_of_each, candidates, kth_best, rounding
from embgeo.stats.statistic import Statistic

#: Cosines are compared on this grid (1e-12): those of exact duplicates differ in their last bits
#: with the place that a row has in its block, and no order may hang on that.
GRID = 2.0**40


def gridded(cosines: FloatArray) -> FloatArray:
    return np.rint(cosines * GRID) / GRID


class TopNeighbors(Statistic):
    """The k rows of largest cosine for each query, the query's own row left out.

    A row is left out by its number, never by its similarity: an exact duplicate of the query is
    a neighbor like any other. Cosines that agree to 1e-12 are ordered by row number.

    Cosines are looked at in the precision of the stored rows; whatever may be among the k nearest
    is computed again in float64.

    Parameters
    ----------
    name : str
    index : int array, shape (q,)
        Row numbers of the queries.
    queries : float64 array, shape (q, d)
        Unit rows.
    k : int

    Attributes
    ----------
    neighbors : int array, shape (q, k)
        Row numbers by falling cosine; −1 where fewer than k rows were seen.
    cosines : float64 array, shape (q, k)
    """

    STATE = ("neighbors", "cosines")

    def __init__(self, name: str, index: IntArray, queries: FloatArray, k: int) -> None:
        self.name = name
        self.index = index
        self.queries = queries
        self.k = k
        self.clear()

    def clear(self) -> None:
        shape = (len(self.index), self.k)
        self.neighbors: IntArray = np.full(shape, -1, dtype=np.int64)
        self.cosines: FloatArray = np.full(shape, -np.inf)

    @property
    def key(self) -> tuple[str, str]:
        return ("top neighbors", self.name)

    def update(self, block: Block) -> None:
        if not len(block.index) or not len(self.index):
            return
        stored = block.stored_unit
        scores = self.queries.astype(stored.dtype) @ stored.T
        self._leave_out_self(scores, block.index)
        slack = rounding(stored.shape[1], stored.dtype)
        least = self.cosines[:, -1]
        if np.isneginf(least).any():
            least = np.maximum(least, kth_best(scores, self.k))
        found = candidates(scores, least - slack, self.k)
        if found is None:
            self._join_dense(block)
            return
        self.take_in(block, *found)

    def take_in(self, block: Block, query: IntArray, column: IntArray) -> None:
        """Add these rows of a block for these queries; every other row must be further away."""
        self._join(query, block.index[column], self._exact(block, query, column))

    def _exact(self, block: Block, query: IntArray, column: IntArray) -> FloatArray:
        """Cosines of some queries with some rows of the block, in float64."""
        used, at = np.unique(column, return_inverse=True)
        unit = Block(block.index[used], block.stored[used]).unit
        cosines = np.empty(len(query))
        step = max(1, 2**21 // unit.shape[1])
        for start in range(0, len(query), step):
            part = slice(start, start + step)
            cosines[part] = row_products(self.queries[query[part]], unit[at[part]])
        return gridded(cosines)

    def _join_dense(self, block: Block) -> None:
        """Where very many rows are equally near: the k best of the block in float64."""
        cosines = gridded(self.queries @ block.unit.T)
        self._leave_out_self(cosines, block.index)
        keep = min(self.k, cosines.shape[1])
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :keep]
        query = np.repeat(np.arange(len(self.index)), keep)
        near = np.take_along_axis(cosines, best, axis=1).ravel()
        real = near > -np.inf
        self._join(query[real], block.index[best].ravel()[real], near[real])

    def _leave_out_self(self, scores: WorkingArray, index: IntArray) -> None:
        _, mine, theirs = np.intersect1d(self.index, index, True, return_indices=True)
        scores[mine, theirs] = -np.inf

    def merge(self, other: Self) -> None:
        query, column = np.nonzero(other.neighbors >= 0)
        self._join(query, other.neighbors[query, column], other.cosines[query, column])

    def _join(self, query: IntArray, rows: IntArray, cosines: FloatArray) -> None:
        mine = np.repeat(np.arange(len(self.index)), self.k)
        self.neighbors, self.cosines = best_of_each(
            np.concatenate([mine, query]),
            np.concatenate([self.neighbors.ravel(), rows]),
            np.concatenate([self.cosines.ravel(), cosines]),
            len(self.index),
            self.k,
        )


class CloserRows(Statistic):
    """How many rows are nearer to a query than a given row is: its rank is that plus one.

    Cosines that agree to 1e-12 count as equal, so that a duplicate of the other row is no nearer.

    Parameters
    ----------
    index : int array, shape (p,)
        Row numbers of the queries, one for each (query, other) pair.
    queries : float64 array, shape (p, d)
        Unit rows.
    others : int array, shape (p,)
    cosines : float64 array, shape (p,)
        Cosine of each pair.
    """

    STATE = ("closer",)

    def __init__(
        self, index: IntArray, queries: FloatArray, others: IntArray, cosines: FloatArray
    ) -> None:
        self.index = index
        self.queries = queries
        self.others = others
        self.cosines = cosines
        self.clear()

    def clear(self) -> None:
        self.closer: IntArray = np.zeros(len(self.index), dtype=np.int64)

    @property
    def key(self) -> str:
        return "closer rows"

    def update(self, block: Block) -> None:
        if not len(block.index) or not len(self.index):
            return
        cosines = gridded(self.queries @ block.unit.T)
        closer = cosines > gridded(self.cosines)[:, None]
        closer &= self.index[:, None] != block.index[None, :]
        closer &= self.others[:, None] != block.index[None, :]
        self.closer += closer.sum(axis=1)

    def merge(self, other: Self) -> None:
        self.closer = self.closer + other.closer
