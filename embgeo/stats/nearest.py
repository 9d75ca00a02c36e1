"""The nearest rows of some query rows, by cosine and by distance."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from embgeo.core.arrays import Array, FloatArray, IntArray, Mask
from embgeo.numerics.hubness import draw_order
from embgeo.stats.backend.backend import HOST, Backend
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic

#: Candidates for each row sought; with more of them, searching the whole block is faster.
MOST = 8


def bound_rounding(backend: Backend, rows: Array) -> float:
    """Return twice the rounding error of a product of two unit rows, in the precision of `rows`."""
    return 8.0 * float(backend.xp.finfo(rows.dtype).eps) * float(np.sqrt(rows.shape[1]))


def find_candidates(
    backend: Backend, scores: Array, least: Array, slack: Array | float, k: int
) -> tuple[Array, Array] | None:
    """Find the query and the column of every score that may be among the k best of its query.

    `scores`: shape (q, b); the larger the better; −inf never is. `least`: shape (q,); score of the
    k-th best row so far; −inf where fewer than k rows were seen. `slack`: shape (q,); rounding of
    the scores.
    """
    xp, wide = backend.xp, backend.wide.xp
    if scores.shape[1] >= k and bool(wide.any(wide.isinf(least))):
        least = wide.maximum(least, backend.widen(backend.kth_largest(scores, k)))
    lowest = float(xp.finfo(scores.dtype).min)  # −inf lies below it
    mask = scores >= xp.clip(backend.put(least - slack, scores.dtype), lowest, None)[:, None]
    if int(xp.count_nonzero(mask)) > MOST * k * scores.shape[0]:
        return None
    # In one dimension the search is several times as fast.
    (flat,) = xp.nonzero(xp.reshape(mask, (-1,)))
    flat = backend.to_wide(flat)
    query = flat // scores.shape[1]
    return query, flat - query * scores.shape[1]


def leave_out_self(backend: Backend, scores: Array, mine: IntArray, theirs: IntArray) -> None:
    """Set the score of each query with its own row to −inf, in place."""
    _, query, column = np.intersect1d(mine, theirs, True, return_indices=True)
    if len(query):
        scores[backend.put(query), backend.put(column)] = -np.inf


def compute_pairs(backend: Backend, count: int, d: int, work: Callable[[slice], Array]) -> Array:
    """Return ``work(slice)`` over `count` pairs of rows of d entries, some at a time, joined."""
    parts = [work(part) for part in backend.slices(count, d) or [slice(0, 0)]]
    return backend.xp.concat(parts)


def keep_best(
    backend: Backend,
    index: IntArray,
    best: tuple[Array, Array],
    query: Array,
    rows: Array,
    scores: Array,
) -> None:
    """Add further rows to the k best of each query, in place: score falling, then as drawn.

    `index`: shape (queries,); row numbers. `best`: shape (queries, k); rows and scores; of a query
    without new rows they are unchanged. `query`, `rows`, `scores`: shape (c,); `query` is rising.
    """
    xp, (best_rows, best_scores) = backend.xp, best
    k = best_scores.shape[1]
    touched, place = xp.unique_inverse(query)
    # Each query has a line: its best, the further rows, and nothing.
    column = backend.put(np.arange(k, k + len(query))) - xp.searchsorted(query, touched)[place]
    shape = len(touched), int(xp.max(column)) + 1
    all_rows = backend.put(np.full(shape, -1))
    all_scores = backend.put(np.full(shape, -np.inf))
    all_rows[:, :k], all_scores[:, :k] = best_rows[touched], best_scores[touched]
    all_rows[place, column], all_scores[place, column] = rows, scores
    order = xp.argsort(-all_scores, axis=1)
    falling = xp.take_along_axis(all_scores, order, axis=1)
    equal = (falling[:, 1:] == falling[:, :-1]) & (falling[:, 1:] > -xp.inf)
    (tied,) = xp.nonzero(xp.any(equal[:, :k], axis=1))
    if len(tied):
        drawn = draw_order(backend.put(index)[touched[tied]][:, None], all_rows[tied])
        by_chance = xp.argsort(drawn, axis=1)
        scores = xp.take_along_axis(all_scores[tied], by_chance, axis=1)
        falling = xp.argsort(-scores, axis=1, stable=True)
        order[tied] = xp.take_along_axis(by_chance, falling, axis=1)
    order = order[:, :k]
    best_rows[touched] = xp.take_along_axis(all_rows, order, axis=1)
    best_scores[touched] = xp.take_along_axis(all_scores, order, axis=1)


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
    a neighbor like any other. Cosines that agree to 1e-12 are ordered by chance of a fixed seed.

    Cosines are computed in the precision of the stored rows; those that may be among the k largest
    are computed again in float64.

    `neighbors`: shape (q, k); row numbers by falling cosine; −1 where fewer than k rows were seen.
    `cosines`: shape (q, k).
    """

    STATE = ("neighbors", "cosines")

    name: str
    #: Row numbers of the queries; shape (q,).
    index: IntArray
    #: Unit rows, on the host or where the blocks are; shape (q, d).
    queries: Array
    k: int
    #: Search these columns of the rows alone; the queries have their width.
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
        # Equal cosines of a later block take part, which the grid may have rounded up.
        least, slack = wide.put(self.cosines)[:, -1], bound_rounding(backend, stored) + 1.0 / GRID
        found = find_candidates(backend, scores, least, slack, self.k)
        del scores
        self._join(
            wide, *(self._search_all(block) if found is None else self._measure(block, *found))
        )

    def _measure(self, block: Block, query: Array, column: Array) -> tuple[Array, Array, Array]:
        """Compute the cosines of pairs of a query and a row of the block in float64."""
        wide, xp = block.wide, block.wide.xp
        queries = wide.constant(self.queries, xp.float64)
        cosines = compute_pairs(
            wide,
            len(query),
            queries.shape[1],
            lambda part: xp.vecdot(queries[query[part]], block.unit[column[part]]),
        )
        return query, wide.put(block.index)[column], round_to_grid(xp, cosines)

    def _search_all(self, block: Block) -> tuple[Array, Array, Array]:
        """Return the k best rows of the block in float64, if too many rows are equally near."""
        wide, xp = block.wide, block.wide.xp
        cosines = wide.constant(self.queries, xp.float64) @ block.unit.T
        cosines = round_to_grid(xp, cosines)
        leave_out_self(wide, cosines, self.index, block.index)
        rows = wide.put(block.index)
        drawn = xp.argsort(draw_order(wide.put(self.index)[:, None], rows[None, :]), axis=1)
        cosines = xp.take_along_axis(cosines, drawn, axis=1)
        best = xp.argsort(-cosines, axis=1, stable=True)[:, : self.k]
        near = xp.take_along_axis(cosines, best, axis=1)
        best = xp.take_along_axis(drawn, best, axis=1)
        query, place = xp.nonzero(near > -np.inf)
        return query, rows[best[query, place]], near[query, place]

    def merge(self, other: Self) -> None:
        query, column = np.nonzero(other.neighbors >= 0)
        self._join(HOST, query, other.neighbors[query, column], other.cosines[query, column])

    def _join(self, wide: Backend, query: Array, rows: Array, cosines: Array) -> None:
        if len(query):
            self.neighbors, self.cosines = wide.put(self.neighbors), wide.put(self.cosines)
            keep_best(wide, self.index, (self.neighbors, self.cosines), query, rows, cosines)


@dataclass(eq=False)
class CloserRows(Statistic):
    """How many rows are nearer to a query than a given row is: its rank is that plus one.

    Cosines that agree to 1e-12 count as equal, so that a duplicate of the other row is not nearer.
    """

    STATE = ("closer",)

    #: Row numbers of the queries, one for each (query, other) pair; shape (p,).
    index: IntArray
    #: Unit rows; shape (p, d).
    queries: FloatArray
    #: Shape (p,).
    others: IntArray
    #: Cosine of each pair; shape (p,).
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


#: Candidates beyond k whose distance is computed from the difference: products lose small ones.
MORE = 2
#: If the largest square lies between these, float32 neither loses digits of it nor overflows.
SINGLE_SQUARES = (1e-30, 1e30)


@dataclass(eq=False)
class NearestDistances(Statistic):
    """The k smallest Euclidean distances from each query to rows that take part.

    `neighbors`: shape (q, k); row numbers by rising distance; −1 where fewer than k rows were seen.
    `distances`: shape (q, k); rising; infinite where fewer than k rows were seen.
    """

    STATE = ("neighbors", "distances")

    #: Row numbers of the queries; a query is not its own neighbor; shape (q,).
    index: IntArray
    #: On the host or where the blocks are; shape (q, d).
    queries: Array
    #: Rows that may be neighbors; dimensions need each point of space once; shape (N,).
    takes_part: Mask
    k: int
    #: Subtracted from all rows before products are taken, where these would cancel: their mean, if
    #: it is long; shape (d,).
    shift: FloatArray | None = None

    def clear(self) -> None:
        shape = (len(self.index), self.k)
        self.neighbors: Array = np.full(shape, -1, dtype=np.int64)
        self.distances: Array = np.full(shape, np.inf)

    def update(self, block: Block) -> None:
        chosen = self.takes_part[block.index]
        if not chosen.any() or not len(self.index):
            return
        part = block if chosen.all() else block.take(chosen)
        query, column = self._find_near(part) or self._search_all(part)
        rows = part.wide.put(part.index)[column]
        self._join(part.wide, query, rows, self._measure(part, query, column))

    def _shift(self, block: Block) -> tuple[Block, Array]:
        """Return the rows, and the queries in float64, without `shift`."""
        wide = block.wide
        queries = wide.constant(self.queries, wide.xp.float64)
        if self.shift is None:
            return block, queries
        shift = wide.put(self.shift)
        return Block(block.index, block.rows - shift, backend=wide), queries - shift

    def _find_near(self, block: Block) -> tuple[Array, Array] | None:
        """Find the queries and columns that may be nearer than the current k-th distance."""
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
        """Return the best few by the product in float64, if too many rows are equally near."""
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
        """Measure the distances of some queries to some rows of the block, from the differences."""
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
        self._join(HOST, every, other.neighbors.ravel(), other.distances.ravel())

    def _join(self, wide: Backend, query: Array, rows: Array, distances: Array) -> None:
        if not len(query):
            return
        self.neighbors, nearness = wide.put(self.neighbors), -wide.put(self.distances)
        keep_best(wide, self.index, (self.neighbors, nearness), query, rows, -distances)
        self.distances = -nearness
