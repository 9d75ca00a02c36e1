"""Do tokens keep their neighbors? Mean Jaccard index of the nearest, and tokens that moved most."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Literal, TypeAlias

import numpy as np

from embgeo.comparison.shared import Shared
from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import compare as q
from embgeo.core.values import Cell, Scalar, Table
from embgeo.metrics.neighbors import ALL_ROWS, HUB_QUERIES
from embgeo.numerics.sampling import generator, sample_rows
from embgeo.result.analysis import Analysis
from embgeo.stats import TopNeighbors
from embgeo.stats.block import Block
from embgeo.stats.resources import MOST_ROWS

RESAMPLES = 2_000
#: Independent draws are summed in this many groups first, and the groups are resampled.
GROUPS = 500
LEVEL = 0.95


def resampled_means(draws: FloatArray, seed: int) -> FloatArray:
    """Return the means of the columns over resamples, shape (RESAMPLES, c).

    `draws` has one independent draw per row, shape (n, c).
    """
    rng = np.random.default_rng([seed, zlib.crc32(b"bootstrap")])
    groups = np.array_split(draws, min(GROUPS, len(draws)))
    g = len(groups)
    sums = np.stack([part.sum(axis=0) for part in groups])
    sizes = np.array([float(len(part)) for part in groups])
    drawn = rng.integers(0, g, size=(RESAMPLES, g)) + g * np.arange(RESAMPLES)[:, None]
    times = np.bincount(drawn.ravel(), minlength=g * RESAMPLES).reshape(RESAMPLES, g)
    return np.asarray((times @ sums) / (times @ sizes)[:, None])


def interval(replicates: FloatArray) -> tuple[float, float]:
    """Return the 95% percentile interval of a quantity from its values on the resamples."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail])
    return float(low), float(high)


def mean_interval(values: FloatArray, seed: int) -> tuple[float, float]:
    """Return the 95% interval of the mean of independent draws."""
    return interval(resampled_means(values[:, None], seed)[:, 0])


#: k of the definition.
NEIGHBORS = 10
#: Up to this many shared tokens are all queries; of more, a sample.
ASK_ALL = 5_000
#: Requested queries; None for the default.
QueryCount: TypeAlias = int | Literal["all"] | None
#: Queries of one pass, at least and at most: their cosines with a block are in memory together.
LEAST_CHUNK, MOST_CHUNK = 256, 4_096
#: Tokens in the table of those that moved most.
SHOWN = 30


@dataclass(frozen=True, slots=True)
class Overlap:
    """The nearest neighbors of some shared tokens in both matrices."""

    #: Numbers of shared tokens, ascending.
    queries: IntArray
    #: Numbers of their nearest shared tokens in either matrix, the nearest first.
    before: IntArray
    after: IntArray
    #: The number of shared tokens.
    shared: int

    @property
    def k(self) -> int:
        return int(self.before.shape[1])

    @property
    def jaccard(self) -> FloatArray:
        """|A ∩ B| / |A ∪ B| for each query, shape (m,)."""
        common = (self.before[:, :, None] == self.after[:, None, :]).sum(axis=(1, 2))
        return np.asarray(common / (2.0 * self.k - common))

    @property
    def is_exact(self) -> bool:
        """Whether all shared tokens are queries."""
        return len(self.queries) == self.shared

    @property
    def sample(self) -> str:
        if self.is_exact:
            return f"all {self.shared:,} shared tokens"
        return f"{len(self.queries):,} of {self.shared:,} shared tokens"


def draw_queries(shared: int, queries: QueryCount, seed: int) -> IntArray:
    """Draw shared tokens uniformly: the requested number, or a default.

    The default are the places of the queries of hubs, whose neighbors both analyses may know.
    """
    if queries == "all" or (queries is None and shared <= ASK_ALL):
        queries = shared
    rng = generator(seed, "hubness" if queries is None else "compare queries")
    drawn = HUB_QUERIES if queries is None else queries
    return sample_rows(np.arange(shared, dtype=np.int64), drawn, rng)


def recall_neighbors(analysis: Analysis, places: IntArray, queries: IntArray) -> IntArray | None:
    """Return the neighbors of shared tokens that an analysis has found; None unless it has all.

    Its neighbors are those among the shared tokens if `places` are all of its rows, in order. Of at
    most `ALL_ROWS` it does not order equally near ones by their row numbers.
    """
    every, nearest = len(analysis.rows), analysis.nearest
    if nearest is None or nearest.recall < 1.0 or every <= ALL_ROWS:
        return None
    if not np.array_equal(places, np.arange(every)):
        return None
    rounded = analysis.provenance["options"].get("precision") != "float64"
    if rounded or nearest.neighbors.shape[1] < NEIGHBORS:
        return None
    at = np.searchsorted(nearest.rows, queries)
    if not np.array_equal(nearest.rows.take(at, mode="clip"), queries):
        return None
    return nearest.neighbors[at, :NEIGHBORS]


def in_chunks(queries: IntArray, memory: int) -> list[IntArray]:
    """Split the queries into passes that need about an eighth of the memory each."""
    most = max(LEAST_CHUNK, min(MOST_CHUNK, memory // (64 * MOST_ROWS)))
    return np.array_split(queries, -(-len(queries) // most)) if len(queries) else []


def searches(shared: Shared, queries: IntArray) -> tuple[TopNeighbors, TopNeighbors]:
    """Return searches for the neighbors of some tokens in either matrix, over rows ``[x | y]``."""
    x, y = shared.rows(queries)
    before, after = (
        TopNeighbors(name, queries, Block(queries, rows).unit, NEIGHBORS, columns)
        for name, rows, columns in (
            ("before", x, slice(None, shared.p)),
            ("after", y, slice(shared.p, None)),
        )
    )
    return before, after


def join_overlaps(parts: Sequence[Overlap]) -> Overlap:
    """Return the overlap of all chunks of the queries."""
    queries, before, after = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("queries", "before", "after")
    )
    return Overlap(queries, before, after, parts[0].shared)


def measure_overlap(found: Overlap, seed: int) -> Scalar:
    """Measure the mean Jaccard index of the neighbors of each query."""
    jaccard = found.jaccard
    sample, error = "", None
    if not found.is_exact and len(jaccard) > 1:
        low, high = mean_interval(jaccard, seed)
        sample = f"{found.sample}; 95% bootstrap interval {low:.4g} to {high:.4g}"
        error = float(jaccard.std(ddof=1) / np.sqrt(len(jaccard)))
    return q.NEIGHBOR_OVERLAP.measured(
        float(jaccard.mean()),
        standard_error=error,
        error_kind="monte_carlo",
        sample=sample,
        convention=f"k = {found.k}, cosine, among the shared tokens, the token itself left out",
        reference=expected_jaccard(found.shared - 1, found.k),
        reference_kind="chance",
        reference_note=f"chance: two random sets of {found.k} of {found.shared - 1:,} tokens",
    )


def expected_jaccard(n: int, k: int) -> float:
    """Return the mean Jaccard index of two independent random sets of k of n tokens."""
    ways = comb(n, k)
    return sum(
        comb(k, i) * comb(n - k, k - i) / ways * i / (2 * k - i)
        for i in range(max(0, 2 * k - n), k + 1)
    )


def measure_drops(shared: Shared, found: Overlap) -> FloatArray:
    """Measure how much the mean cosine of each query with its earlier neighbors has dropped.

    Shape (m,).
    """
    drops = np.empty(len(found.queries))
    for at in range(0, len(found.queries), LEAST_CHUNK):
        part = slice(at, at + LEAST_CHUNK)
        own = shared.rows(found.queries[part])
        near = shared.rows(found.before[part].ravel())
        before, after = (mean_cosine(x, rows, found.k) for x, rows in zip(own, near, strict=True))
        drops[part] = before - after
    return drops


def mean_cosine(rows: FloatArray, near: FloatArray, k: int) -> FloatArray:
    """Return the mean cosine of each row with its k of `near`, which lie one after the other."""
    index = np.arange(len(near), dtype=np.int64)
    unit = np.asarray(Block(index[: len(rows)], rows).unit)
    others = np.asarray(Block(index, near).unit).reshape(len(rows), k, -1)
    return np.asarray(np.einsum("ij,ikj->i", unit, others) / k)


def build_moved_table(
    found: Overlap, drops: FloatArray, labels: Sequence[str], counts: FloatArray | None
) -> Table:
    """List the queries that lost most cosine with their neighbors before, and did not keep all.

    Ties by descending count; `labels` and `counts` are those of the shared tokens.
    """
    jaccard = found.jaccard
    frequent = np.zeros(len(jaccard)) if counts is None else counts[found.queries]
    order = np.lexsort((found.queries, -frequent, -drops))
    order = order[jaccard[order] < 1.0][:SHOWN]
    rows: list[tuple[Cell, ...]] = []
    for at in order.tolist():
        near = [labels[i] for side in (found.before, found.after) for i in side[at].tolist()]
        own = (labels[int(found.queries[at])], float(drops[at]), float(jaccard[at]))
        rows.append((*own, *near))
    columns = (
        "token",
        "cosine lost",
        "overlap",
        *(f"{side} {i}" for side in ("before", "after") for i in range(1, found.k + 1)),
    )
    return Table(q.MOVED, columns, tuple(rows), note=found.sample)
