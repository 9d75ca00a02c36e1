"""The nearest rows of every row: each pair of rows is multiplied once, for both of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, SingleArray, WorkingArray
from embgeo.numerics.hubness import draw_order
from embgeo.stats.backend.backend import HOST
from embgeo.stats.nearest import (
    GRID,
    MOST,
    TopNeighbors,
    bound_rounding,
    leave_out_self,
    round_to_grid,
)
from embgeo.stats.reader import RowReader

#: Positions of queries, positions of rows that may be among their nearest, and rough cosines.
Candidates: TypeAlias = tuple[IntArray, IntArray, SingleArray]

#: Columns up to which a tree finds neighbors sooner than products do.
FEW = 6
#: Neighbors that a tree finds beyond those sought, so that ties rarely go on behind the last.
FURTHER = 4
#: Columns up to which rows are ordered such that those of a tile lie near each other.
ORDERED_COLUMNS = 32
#: Rows of a tile in either direction. Columns of 1,024 would share few places of the cache.
TILE = 640
#: Columns of a tile of which the largest score bounds the scores of its queries.
GROUPED = 16
#: Bits of a score, from 1 downwards in steps below its rounding, next to the number of a query.
BITS = 33
#: Entries of pairs whose cosines are computed in float64 at a time.
HELD = 2**18


def find_all_nearest(
    reader: RowReader, rows: IntArray, k: int, what: str
) -> tuple[IntArray, FloatArray]:
    """Find the numbers and cosines of the k nearest rows of each row, shape (m, k).

    `rows` are all kept rows. Where they do not fit into memory, or are on a device, they are read
    block by block. Of fewer than k other rows the last numbers are −1, with a cosine of −inf.
    """
    shape, room = (len(rows), reader.matrix.d), reader.resources.room
    # Unit rows in float32; what tiles take is less than a fifth of them.
    if reader.is_local and reader.executor is None and 5 * math.prod(shape) <= room:
        some = min(k, len(rows) - 1)
        # The rows, too, where there is room: they may have to be decoded.
        held = reader.take_stored(rows) if 12 * math.prod(shape) <= room else None
        at, cosines = AllNearest(
            lambda at: reader.take_stored(rows[at]) if held is None else held[at], shape, some, rows
        ).search(reader, what)
        missing = ((0, 0), (0, k - some))
        near = np.pad(rows[at], missing, constant_values=-1)
        return near, np.pad(cosines, missing, constant_values=-np.inf)
    parts = [
        (part.neighbors, part.cosines)
        for part in reader.sweep(
            lambda block: TopNeighbors(what, block.index, block.unit, k), rows, what
        )
    ]
    near, cosines = (np.concatenate(part) for part in zip(*parts, strict=True))
    return np.asarray(near), np.asarray(cosines)


class AllNearest:
    """The k rows of largest cosine for each of m rows, the row itself left out.

    As :class:`~embgeo.stats.nearest.TopNeighbors` finds them, with half of the products: rows are
    multiplied in float32, and those that may be among the k largest again in float64. Cosines that
    agree to 1e-12 are ordered by chance of a fixed seed. Rows of few columns are ordered by a tree
    first: then most neighbors of a row are in its own tile, and few tiles hold any others.

    `take`: takes positions and returns these rows, float32 or float64; none is zero or non-finite.
    `shape`: m and d. `k`: less than m. `rows`: shape (m,); row numbers.
    """

    def __init__(
        self,
        take: Callable[[slice | IntArray], WorkingArray],
        shape: tuple[int, int],
        k: int,
        rows: IntArray,
    ) -> None:
        self.k, (self.m, self.d) = k, shape
        self.unit = np.empty(shape, dtype=np.float32)
        self.lengths = np.empty(self.m)
        for part in tiles(self.m):
            some = take(part)
            # Scaled first, so that squares of neither huge nor tiny entries are lost.
            scale = np.abs(some).max(axis=1).astype(np.float64)
            scaled = some / scale[:, None]
            self.lengths[part] = np.sqrt(np.vecdot(scaled, scaled)) * scale
            self.unit[part] = scaled / np.sqrt(np.vecdot(scaled, scaled))[:, None]
        #: Positions of the rows, as they are searched.
        self.order = np.arange(self.m)
        self.parts = tiles(self.m)
        if self.d <= ORDERED_COLUMNS:
            from scipy.spatial import cKDTree

            self.order = cKDTree(self.unit, TILE).indices
            self.unit, self.lengths = self.unit[self.order], self.lengths[self.order]
        self._take, self.rows = take, rows[self.order]
        self.slack = np.float32(bound_rounding(HOST, self.unit))
        #: Scores below these are not among the k largest of their query; −inf, of itself, never is.
        self.bound = np.full(self.m, -2.0, dtype=np.float32)
        self.found: list[Candidates] = []
        #: How many of them the bounds have left, and how many came later.
        self.settled = self.added = 0

    def search(
        self, reader: RowReader, what: str, exact: bool = True
    ) -> tuple[IntArray, FloatArray]:
        """Return positions and cosines of the nearest rows, shape (m, k), on all threads.

        Unless `exact`, cosines that decide no order are those of float32.
        """
        if self.d <= FEW and self.search_in_tree(reader, what):
            return self.finish(exact)

        def compare(pairs: list[tuple[slice, slice]]) -> None:
            for found in reader.spread(lambda at: self.compare(*pairs[at]), len(pairs), what):
                self.found += found
                self.added += sum(len(query) for query, *_ in found)
                if self.added > max(self.m * self.k, self.settled):
                    self.settle()

        # Tiles with themselves first: they give every row a bound.
        compare([(part, part) for part in self.parts])
        compare(self.list_pairs())
        return self.finish(exact)

    def search_in_tree(self, reader: RowReader, what: str) -> bool:
        """Find the candidates by their distances on the unit sphere, ‖a − b‖² = 2 − 2·cos.

        False, without any, where ties of the k-th may go on behind the last row that was found.
        """
        from scipy.spatial import cKDTree

        unit, parts = self.normalize(slice(None)), self.parts
        tree, wanted = cKDTree(unit), min(self.k + 1 + FURTHER, self.m)

        def search_part(number: int) -> Candidates | None:
            distances, near = map(np.asarray, tree.query(unit[parts[number]], wanted))
            apart = distances[:, -1] ** 2 - distances[:, self.k] ** 2 > 8.0 / GRID
            if wanted < self.m and not apart.all():
                return None
            query = np.arange(self.m)[parts[number], None]
            at, column = np.nonzero(near != query)
            rough = (1.0 - distances[at, column] ** 2 / 2.0).astype(np.float32)
            return query[at, 0], near[at, column], rough

        found = [*reader.spread(search_part, len(parts), what)]
        self.found = [part for part in found if part is not None]
        if len(self.found) < len(found):
            self.found = []
        return bool(self.found)

    def list_pairs(self) -> list[tuple[slice, slice]]:
        """List the pairs of tiles that may hold nearest rows; of few columns, the nearest first."""
        first, second = np.triu_indices(len(self.parts), 1)
        if self.d <= ORDERED_COLUMNS:
            centers = np.stack([self.unit[part].mean(axis=0) for part in self.parts])
            radii = np.array(
                [
                    np.linalg.norm(self.unit[part] - center, axis=1).max()
                    for part, center in zip(self.parts, centers, strict=True)
                ]
            )
            least = np.array([self.bound[part].min() for part in self.parts])
            apart = np.linalg.norm(centers[first] - centers[second], axis=1)
            # ‖a − b‖² = 2 − 2·cos on the unit sphere.
            most = 1.0 - np.square(np.maximum(apart - radii[first] - radii[second], 0.0)) / 2.0
            may = most >= np.minimum(least[first], least[second]) - self.slack
            order = np.argsort(apart[may])
            first, second = first[may][order], second[may][order]
        return [
            (self.parts[a], self.parts[b])
            for a, b in zip(first.tolist(), second.tolist(), strict=True)
        ]

    def compare(self, first: slice, second: slice) -> list[Candidates]:
        """Return the pairs of these rows that may be nearest, from either side."""
        scores = self.unit[first] @ self.unit[second].T
        if first != second:
            return [self.choose(scores, first, second, 0), self.choose(scores, second, first, 1)]
        np.fill_diagonal(scores, -np.inf)
        if len(scores) > self.k:
            self.bound[first] = find_kth_peak(scores, self.k) - self.slack
        return [self.choose(scores, first, second, 0)]

    def choose(self, scores: SingleArray, mine: slice, theirs: slice, axis: int) -> Candidates:
        """Choose entries that may be among the k best of their queries, which lie along `axis`."""
        bound, own = self.bound[mine], np.arange(mine.start, mine.stop)
        flat = np.flatnonzero(scores >= (bound[:, None] if axis == 0 else bound))
        if len(flat) > MOST * self.k * len(bound):
            return self.choose_equals(own, theirs)
        at = np.divmod(flat, scores.shape[1])
        return own[at[axis]], at[1 - axis] + theirs.start, scores[at]

    def choose_equals(self, mine: IntArray, theirs: slice) -> Candidates:
        """Choose the k best of each row in float64, where too many rows are equally near."""
        cosines = round_to_grid(np, self.normalize(mine) @ self.normalize(theirs).T)
        leave_out_self(HOST, cosines, mine, np.arange(self.m)[theirs])
        k = min(self.k, cosines.shape[1])
        least = np.partition(cosines, -k, axis=1)[:, -k, None]
        drawn = draw_order(self.rows[mine][:, None], self.rows[theirs])
        limits = np.iinfo(drawn.dtype)
        drawn[cosines > least], drawn[cosines < least] = limits.min, limits.max
        best = np.argpartition(drawn, k - 1, axis=1)[:, :k]
        near = np.take_along_axis(cosines, best, axis=1)
        query, place = np.nonzero(near > -np.inf)
        rough = near[query, place].astype(np.float32)
        return mine[query], best[query, place] + theirs.start, rough

    def take(self, at: slice | IntArray) -> WorkingArray:
        """Return rows as they are stored, by their positions in the search."""
        return self._take(self.order[at])

    def normalize(self, at: slice | IntArray) -> FloatArray:
        """Return unit rows in float64."""
        return np.asarray(self.take(at) / self.lengths[at][:, None], dtype=np.float64)

    def settle(self) -> Candidates:
        """Raise the bounds to what was found, and return the candidates that are left.

        They are ordered by query, and by falling score.
        """
        query, near, score = (np.concatenate(part) for part in zip(*self.found, strict=True))
        steps = ((1.0 - score.astype(np.float64)) * 2.0 ** (BITS - 2)).astype(np.int64)
        order = np.argsort((query << BITS) + steps)
        query, near, score = query[order], near[order], score[order]
        count = np.bincount(query, minlength=self.m)
        full = count >= self.k
        kth = (np.cumsum(count) - count)[full] + self.k - 1
        self.bound[full] = np.maximum(self.bound[full], score[kth] - self.slack)
        kept = score >= self.bound[query]
        found = query[kept], near[kept], score[kept]
        self.found, self.settled, self.added = [found], len(found[0]), 0
        return found

    def finish(self, exact: bool) -> tuple[IntArray, FloatArray]:
        """Order the candidates by their cosines in float64, where those in float32 may be wrong."""
        query, near, score = self.settle()
        close = (np.diff(query) == 0) & (score[:-1] - score[1:] <= self.slack)
        unsure = np.flatnonzero(np.append(close, False) | np.append(False, close))
        wanted, cosines = np.arange(len(query)) if exact else unsure, score.astype(np.float64)
        for part in tiles(len(wanted), max(1, HELD // self.d)):
            at = wanted[part]
            # Queries are in order, so that each is divided by its norm once.
            own, places = np.unique(query[at], return_inverse=True)
            a = self.normalize(own)[places]
            b = self.take(near[at]).astype(np.float64, copy=False)
            cosines[at] = round_to_grid(np, np.vecdot(a, b) / self.lengths[near[at]])
        drawn = draw_order(self.rows[query[unsure]], self.rows[near[unsure]])
        order = unsure[np.lexsort((drawn, -cosines[unsure], query[unsure]))]
        near[unsure], cosines[unsure] = near[order], cosines[order]
        first = np.searchsorted(query, np.argsort(self.order))
        best = first[:, None] + np.arange(self.k)
        return self.order[near[best]], cosines[best]


def find_kth_peak(scores: SingleArray, k: int) -> SingleArray:
    """Find a score for each row that at least k of its columns reach, of more than k."""
    width = scores.shape[1]
    groups = max(width // GROUPED, min(4 * k, width))
    peaks = scores[:, :groups].copy()
    for at in range(groups, width, groups):
        part = scores[:, at : at + groups]
        some = peaks[:, : part.shape[1]]
        np.maximum(some, part, out=some)
    return np.partition(peaks, groups - k, axis=1)[:, groups - k]


def tiles(count: int, step: int = 0) -> Sequence[slice]:
    """Return consecutive ranges of `count` positions; by default, those of tiles."""
    step = step or TILE
    return [slice(at, min(at + step, count)) for at in range(0, count, step)]
