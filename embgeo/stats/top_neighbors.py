"""The k nearest rows by cosine for some query rows, and the rank of given rows among them."""

from __future__ import annotations

from typing import Self

import numpy as np

from embgeo.stats.base import Block, FloatArray, IntArray, Statistic

#: Cosines are compared on this grid (1e-12): those of exact duplicates differ in their last bits
#: with the place that a row has in its block, and no order may hang on that.
GRID = 2.0**40


def gridded(cosines: FloatArray) -> FloatArray:
    return np.rint(cosines * GRID) / GRID


class TopNeighbors(Statistic):
    """The k rows of largest cosine for each query, the query's own row left out.

    A row is left out by its number, never by its similarity: an exact duplicate of the query is
    a neighbour like any other. Cosines that agree to 1e-12 are ordered by row number.

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
        cosines = gridded(self.queries @ block.unit.T)
        cosines[self.index[:, None] == block.index[None, :]] = -np.inf
        keep = min(self.k, cosines.shape[1])
        best = np.argpartition(-cosines, keep - 1, axis=1)[:, :keep]
        # Of rows that tie at the edge, argpartition keeps any; the first ones are wanted.
        edge = np.take_along_axis(cosines, best, axis=1).min(axis=1, keepdims=True)
        tied = np.count_nonzero(cosines >= edge, axis=1) > keep
        if tied.any():
            best[tied] = np.argsort(-cosines[tied], axis=1, kind="stable")[:, :keep]
        self._join(block.index[best], np.take_along_axis(cosines, best, axis=1))

    def merge(self, other: Self) -> None:
        self._join(other.neighbors, other.cosines)

    def _join(self, neighbors: IntArray, cosines: FloatArray) -> None:
        all_rows = np.hstack([self.neighbors, neighbors])
        all_cosines = np.hstack([self.cosines, cosines])
        order = np.lexsort((all_rows, -all_cosines), axis=1)[:, : self.k]
        self.cosines = np.take_along_axis(all_cosines, order, axis=1)
        found = np.take_along_axis(all_rows, order, axis=1)
        self.neighbors = np.where(np.isneginf(self.cosines), -1, found)


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
