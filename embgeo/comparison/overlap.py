"""Do tokens keep their neighbors? Mean Jaccard index of the nearest ones, and who moved most."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from embgeo.comparison.bootstrap import mean_interval
from embgeo.comparison.shared import Shared
from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import compare as q
from embgeo.core.values import Cell, Column, Histogram, Scalar, Table
from embgeo.numerics.sampling import sample_rows
from embgeo.stats import TopNeighbors
from embgeo.stats.block import Block
from embgeo.stats.resources import MOST_ROWS

#: k of the definition.
NEIGHBORS = 10
#: Up to this many shared tokens all of them are asked; of more, a sample.
ASK_ALL = 5_000
QUERIES = 1_000
#: Tokens that one pass asks, at least and at most: their cosines with a block are held at a time.
LEAST_CHUNK, MOST_CHUNK = 256, 4_096
#: Tokens in the table of those that moved most.
SHOWN = 30


@dataclass(frozen=True, slots=True)
class Overlap:
    """What was found for the tokens that were asked.

    Attributes
    ----------
    queries : int array, shape (m,)
        Numbers of shared tokens, ascending.
    before, after : int arrays, shape (m, k)
        Numbers of their nearest shared tokens in either matrix, the nearest first.
    shared : int
    """

    queries: IntArray
    before: IntArray
    after: IntArray
    shared: int

    @property
    def jaccard(self) -> FloatArray:
        """|A ∩ B| / |A ∪ B| for each query, shape (m,)."""
        k = self.before.shape[1]
        common = (self.before[:, :, None] == self.after[:, None, :]).sum(axis=(1, 2))
        return np.asarray(common / (2.0 * k - common))

    @property
    def looked_at(self) -> str:
        if len(self.queries) == self.shared:
            return f"all {self.shared:,} shared tokens"
        return f"{len(self.queries):,} of {self.shared:,} shared tokens"


def draw_queries(shared: int, wanted: int | None, seed: int) -> IntArray:
    """Shared tokens to ask: the number wanted, drawn uniformly; None: what is sensible."""
    if wanted is None:
        wanted = shared if shared <= ASK_ALL else QUERIES
    rng = np.random.default_rng([seed, zlib.crc32(b"compare queries")])
    return sample_rows(np.arange(shared, dtype=np.int64), wanted, rng)


def in_chunks(queries: IntArray, memory: int) -> list[IntArray]:
    """As many queries in each as one pass can ask within about an eighth of the memory."""
    most = max(LEAST_CHUNK, min(MOST_CHUNK, memory // (64 * MOST_ROWS)))
    return np.array_split(queries, -(-len(queries) // most)) if len(queries) else []


def searches(shared: Shared, queries: IntArray) -> tuple[TopNeighbors, TopNeighbors]:
    """For the neighbors of some tokens in either matrix, over rows ``[x | y]``."""
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
    """Of all chunks of the queries."""
    queries, before, after = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("queries", "before", "after")
    )
    return Overlap(queries, before, after, parts[0].shared)


def overlap_values(found: Overlap, seed: int) -> tuple[Scalar, Scalar, Histogram]:
    jaccard = found.jaccard
    k = found.before.shape[1]
    exact = len(found.queries) == found.shared
    error, sample = None, ""
    if not exact and len(jaccard) > 1:
        error = float(jaccard.std(ddof=1) / np.sqrt(len(jaccard)))
        low, high = mean_interval(jaccard, seed)
        sample = f"{found.looked_at}; 95 % bootstrap interval {low:.4g} to {high:.4g}"
    scalar = q.NEIGHBOR_OVERLAP.measured(
        float(jaccard.mean()),
        standard_error=error,
        error_kind="monte_carlo",
        sample=sample if not exact else "",
        convention=f"k = {k}, cosine, among the shared tokens, the token itself left out",
        reference=expected_jaccard(found.shared - 1, k),
        reference_kind="chance",
        reference_note=f"chance: two random sets of {k} of {found.shared - 1:,} tokens",
    )
    counts, edges = np.histogram(jaccard, bins=20, range=(0.0, 1.0))
    histogram = Histogram(
        q.OVERLAP_HISTOGRAM,
        edges,
        counts.astype(np.float64),
        "Jaccard index",
        "tokens",
        note=found.looked_at,
    )
    return scalar, mutual_neighbors(found), histogram


def mutual_neighbors(found: Overlap) -> Scalar:
    """Mean share of the k nearest that both matrices have in common (Huh et al. 2024)."""
    k = found.before.shape[1]
    jaccard = found.jaccard
    shares = 2.0 * jaccard / (1.0 + jaccard)
    exact = len(shares) == found.shared
    error = float(shares.std(ddof=1) / np.sqrt(len(shares))) if len(shares) > 1 else None
    return q.MUTUAL_NEIGHBORS.measured(
        float(shares.mean()),
        standard_error=None if exact else error,
        error_kind="monte_carlo",
        sample="" if exact else found.looked_at,
        convention=f"k = {k}, cosine, among the shared tokens, the token itself left out",
        reference=k / (found.shared - 1.0),
        reference_kind="chance",
        reference_note=f"chance: two random sets of {k} of {found.shared - 1:,} tokens",
    )


def token_overlap(found: Overlap) -> Column | None:
    """The overlap of every shared token; None where only some were asked."""
    if len(found.queries) < found.shared:
        return None
    return Column(q.TOKEN_OVERLAP, found.jaccard, "neighbor overlap")


def expected_jaccard(n: int, k: int) -> float:
    """Mean Jaccard index of two independent random sets of k of n things."""
    ways = comb(n, k)
    return sum(
        comb(k, i) * comb(n - k, k - i) / ways * i / (2 * k - i)
        for i in range(max(0, 2 * k - n), k + 1)
    )


def build_moved_table(found: Overlap, labels: Sequence[str], counts: FloatArray | None) -> Table:
    """The tokens that were asked and keep least, of equals the most frequent first.

    Tokens that keep all their neighbors are not among them.

    Parameters
    ----------
    labels : sequence of str
        Of the shared tokens.
    counts : float64 array, shape (S,), or None
    """
    jaccard = found.jaccard
    frequent = np.zeros(len(jaccard)) if counts is None else counts[found.queries]
    order = np.lexsort((found.queries, -frequent, jaccard))[:SHOWN]
    order = order[jaccard[order] < 1.0]
    k = found.before.shape[1]
    rows: list[tuple[Cell, ...]] = []
    for at in order.tolist():
        near = [labels[i] for side in (found.before, found.after) for i in side[at].tolist()]
        rows.append((labels[int(found.queries[at])], float(jaccard[at]), *near))
    columns = (
        "token",
        "overlap",
        *(f"{side} {i}" for side in ("before", "after") for i in range(1, k + 1)),
    )
    first = "" if counts is None else "; of equals, the most frequent first"
    return Table(q.MOVED, columns, tuple(rows), note=f"{found.looked_at}{first}")
