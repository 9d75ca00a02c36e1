"""Distances to the k nearest other rows, for intrinsic dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from embgeo.core.arrays import Array, FloatArray, IntArray, Mask
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

#: Candidates beyond k whose distance is computed from the difference: products lose small ones.
MORE = 2
#: If the largest square lies between these, float32 neither loses digits of it nor overflows.
SINGLE_SQUARES = (1e-30, 1e30)


@dataclass(eq=False)
class NearestDistances(Statistic):
    """The k smallest Euclidean distances from each query to rows that take part.

    Parameters
    ----------
    index : int array, shape (q,)
        Row numbers of the queries; a query is not its own neighbor.
    queries : float64 array, shape (q, d)
        On the host or where the blocks are.
    takes_part : bool array, shape (N,)
        Rows that may be neighbors; dimensions need each point of space once.
    k : int
    shift : float64 array, shape (d,), optional
        Subtracted from all rows before products are taken, where these would cancel: their mean,
        if it is long.

    Attributes
    ----------
    distances : float64 array, shape (q, k)
        Rising; infinite where fewer than k rows were seen.
    """

    STATE = ("distances",)

    index: IntArray
    queries: Array
    takes_part: Mask
    k: int
    shift: FloatArray | None = None

    def clear(self) -> None:
        self.distances: Array = np.full((len(self.index), self.k), np.inf)

    def update(self, block: Block) -> None:
        chosen = self.takes_part[block.index]
        if not chosen.any() or not len(self.index):
            return
        part = block if chosen.all() else block.take(chosen)
        query, column = self._find_near(part) or self._search_all(part)
        self._join(part.wide, query, self._measure(part, query, column))

    def _shift(self, block: Block) -> tuple[Block, Array]:
        """The rows, and the queries in float64, without `shift`."""
        wide = block.wide
        queries = wide.constant(self.queries, wide.xp.float64)
        if self.shift is None:
            return block, queries
        shift = wide.put(self.shift)
        return Block(block.index, block.rows - shift, backend=wide), queries - shift

    def _find_near(self, block: Block) -> tuple[Array, Array] | None:
        """Queries and columns that may be nearer than the current k-th distance."""
        block, queries = self._shift(block)
        wide, xp = block.wide, block.wide.xp
        squares, own = xp.square(block.norms), xp.vecdot(queries, queries)
        longest = float(xp.max(squares))
        ordinary = SINGLE_SQUARES[0] < max(float(xp.max(own)), longest) < SINGLE_SQUARES[1]
        backend = block.backend if ordinary else wide
        stored = block.stored if ordinary else block.rows
        # −‖x‖² + 2⟨q, x⟩ orders the rows as their distances do.
        wide_rows = stored.dtype == xp.float64
        used = queries if wide_rows else backend.constant(self.queries, stored.dtype)
        scores = (2.0 * used) @ stored.T
        scores -= backend.put(squares, stored.dtype)
        leave_out_self(backend, scores, self.index, block.index)
        least = own - xp.square(wide.put(self.distances)[:, -1])
        slack = 2.0 * bound_rounding(backend, stored) * xp.clip(own, longest, None)
        return find_candidates(backend, scores, least, slack, self.k)

    def _search_all(self, block: Block) -> tuple[Array, Array]:
        """The best few by the product in float64, if too many rows are equally near."""
        block, queries = self._shift(block)
        wide, xp = block.wide, block.wide.xp
        scores = queries @ block.rows.T
        scores *= 2.0
        scores -= xp.sum(xp.square(block.rows), axis=1)
        leave_out_self(wide, scores, self.index, block.index)
        best = wide.topk(scores, min(self.k + MORE, len(block.index)))
        query, place = xp.nonzero(xp.take_along_axis(scores, best, axis=1) > -np.inf)
        return query, best[query, place]

    def _measure(self, block: Block, query: Array, column: Array) -> Array:
        """Distances of some queries to some rows of the block, from the differences."""
        wide, rows = block.wide, block.rows
        queries = wide.constant(self.queries, wide.xp.float64)
        return compute_pairs(
            wide,
            len(query),
            rows.shape[1],
            lambda part: wide.xp.linalg.vector_norm(
                rows[column[part]] - queries[query[part]], axis=1
            ),
        )

    def merge(self, other: Self) -> None:
        every = np.repeat(np.arange(len(self.index)), self.k)
        self._join(HOST, every, other.distances.ravel())

    def _join(self, wide: Backend, query: Array, distances: Array) -> None:
        if not len(query):
            return
        nearness = -wide.put(self.distances)
        rows = wide.xp.zeros_like(nearness), wide.xp.zeros_like(distances)  # which do not matter
        keep_best(wide, (rows[0], nearness), query, rows[1], -distances)
        self.distances = -nearness
