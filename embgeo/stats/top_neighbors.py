"""The k nearest rows by cosine for some query rows, and the rank of given rows among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from embgeo.core.arrays import Array, FloatArray, IntArray
from embgeo.stats.backend.backend import Backend
from embgeo.stats.backend.numpy import HOST
from embgeo.stats.block import Block
from embgeo.stats.nearest import (
    bound_rounding,
    compute_pairs,
    find_candidates,
    keep_best,
    leave_out_self,
)
from embgeo.stats.statistic import Statistic

#: Cosines are compared on this grid (1e-12): those of exact duplicates differ in their last bits
#: with the position of a row in its block, which must not decide an order.
GRID = 2.0**40


def round_to_grid(xp: Any, cosines: Array) -> Array:
    """Round cosines to a grid on which exact duplicates agree."""
    return xp.round(cosines * GRID) / GRID


@dataclass(eq=False)
class TopNeighbors(Statistic):
    """The k rows of largest cosine for each query, the query's own row left out.

    A row is left out by its number, never by its similarity: an exact duplicate of the query is
    a neighbor like any other. Cosines that agree to 1e-12 are ordered by row number.

    Cosines are computed in the precision of the stored rows; those that may be among the k largest
    are computed again in float64.

    Parameters
    ----------
    name : str
    index : int array, shape (q,)
        Row numbers of the queries.
    queries : float64 array, shape (q, d)
        Unit rows, on the host or where the blocks are.
    k : int
    columns : slice, optional
        Search these columns of the rows alone; the queries have their width.

    Attributes
    ----------
    neighbors : int array, shape (q, k)
        Row numbers by falling cosine; −1 where fewer than k rows were seen.
    cosines : float64 array, shape (q, k)
    """

    STATE = ("neighbors", "cosines")

    name: str
    index: IntArray
    queries: Array
    k: int
    columns: slice | None = None

    def clear(self) -> None:
        shape = (len(self.index), self.k)
        self.neighbors: Array = np.full(shape, -1, dtype=np.int64)
        self.cosines: Array = np.full(shape, -np.inf)

    def update(self, block: Block) -> None:
        if not len(block.index) or not len(self.index):
            return
        if self.columns is not None:
            block = Block(block.index, block.stored[:, self.columns], backend=block.backend)
        backend, wide, stored = block.backend, block.wide, block.stored_unit
        scores = backend.constant(self.queries, stored.dtype) @ stored.T
        leave_out_self(backend, scores, self.index, block.index)
        least, slack = wide.put(self.cosines)[:, -1], bound_rounding(backend, stored)
        found = find_candidates(backend, scores, least, slack, self.k)
        del scores
        self._join(
            wide, *(self._search_all(block) if found is None else self._measure(block, *found))
        )

    def _measure(self, block: Block, query: Array, column: Array) -> tuple[Array, Array, Array]:
        """Compute cosines of pairs of a query and a row of the block in float64."""
        wide, xp = block.wide, block.wide.xp
        used, at = xp.unique_inverse(column)
        unit = block.take(wide.to_host(used)).unit
        queries = wide.constant(self.queries, xp.float64)
        cosines = compute_pairs(
            wide,
            len(query),
            unit.shape[1],
            lambda part: xp.vecdot(queries[query[part]], unit[at[part]]),
        )
        return query, wide.put(block.index)[column], round_to_grid(xp, cosines)

    def _search_all(self, block: Block) -> tuple[Array, Array, Array]:
        """The k best rows of the block in float64, if too many rows are equally near."""
        wide, xp = block.wide, block.wide.xp
        cosines = wide.constant(self.queries, xp.float64) @ block.unit.T
        cosines = round_to_grid(xp, cosines)
        leave_out_self(wide, cosines, self.index, block.index)
        best = xp.argsort(-cosines, axis=1, stable=True)[:, : self.k]
        near = xp.take_along_axis(cosines, best, axis=1)
        query, place = xp.nonzero(near > -np.inf)
        return query, wide.put(block.index)[best[query, place]], near[query, place]

    def merge(self, other: Self) -> None:
        query, column = np.nonzero(other.neighbors >= 0)
        self._join(HOST, query, other.neighbors[query, column], other.cosines[query, column])

    def _join(self, wide: Backend, query: Array, rows: Array, cosines: Array) -> None:
        if len(query):
            self.neighbors, self.cosines = wide.put(self.neighbors), wide.put(self.cosines)
            keep_best(wide, (self.neighbors, self.cosines), query, rows, cosines)


@dataclass(eq=False)
class CloserRows(Statistic):
    """How many rows are nearer to a query than a given row is: its rank is that plus one.

    Cosines that agree to 1e-12 count as equal, so that a duplicate of the other row is not nearer.

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

    index: IntArray
    queries: FloatArray
    others: IntArray
    cosines: FloatArray

    def clear(self) -> None:
        self.closer: IntArray = np.zeros(len(self.index), dtype=np.int64)

    def update(self, block: Block) -> None:
        if not len(block.index) or not len(self.index):
            return
        wide, xp = block.wide, block.wide.xp
        cosines = round_to_grid(xp, wide.constant(self.queries) @ block.unit.T)
        closer = cosines > wide.put(round_to_grid(np, self.cosines))[:, None]
        rows = wide.put(block.index)[None, :]
        for own in (self.index, self.others):
            closer &= wide.put(own)[:, None] != rows
        self.closer = self.closer + wide.to_host(xp.count_nonzero(closer, axis=1))
