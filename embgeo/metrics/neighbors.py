"""Nearest neighbors by cosine: do rare tokens huddle together? (definitions, section 5)"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.quantities import frequency as q
from embgeo.core.values import Cell, Quantity, Scalar, Table, Value
from embgeo.metrics.all_neighbors import all_neighbors
from embgeo.metrics.base import NO_ROWS, Context, Seen, sampled
from embgeo.metrics.popularity import Popularity, popularity, why_absent
from embgeo.stats import CloserRows, TopNeighbors
from embgeo.stats.statistic import Statistic

BoolArray = npt.NDArray[np.bool_]

FAMILY = "frequency"
#: Queries of each class in the rarity estimate: no more than so many entries, within bounds.
QUERY_ENTRIES = 2**17
QUERIES = (200, 500)
#: Tokens of each class in the shown table.
SHOWN = 4


def absent(context: Context) -> str:
    return why_absent(context)


def first(context: Context) -> list[Statistic]:
    return []


def second(context: Context, seen: Seen) -> list[Statistic]:
    if why_absent(context) or context.m <= context.options.neighbors:
        return []
    rows = query_rows(context)
    wanted: list[Statistic] = [
        TopNeighbors("queries", rows, context.unit_rows(rows), context.options.neighbors)
    ]
    index, others = asked_pairs(context)
    if len(index):
        queries, targets = context.unit_rows(index), context.unit_rows(others)
        cosines = np.einsum("ij,ij->i", queries, targets)
        wanted.append(CloserRows(index, queries, others, cosines))
    return wanted


def rows_read(context: Context, seen: Seen) -> IntArray:
    if context.m <= context.options.neighbors:
        return NO_ROWS
    if context.options.neighbors_of == "all":
        return context.kept
    return np.unique(np.concatenate([query_rows(context), *asked_pairs(context)]))


def query_rows(context: Context) -> IntArray:
    """Rows whose neighbors are searched, ascending."""
    known = popularity(context)
    shown = shown_rows(context, known)
    if context.options.neighbors_of == "all":  # the others are asked by themselves
        return np.unique(shown)
    return np.unique(np.concatenate([*drawn_queries(context, known), shown]))


def drawn_queries(context: Context, known: Popularity) -> tuple[IntArray, IntArray]:
    """Rows of popular and of rare queries, drawn uniformly within each class."""
    rng = context.rng("neighbor queries")
    popular, rare = context.kept[known.popular], context.kept[~known.popular]
    if context.options.neighbors_of == "all":
        return popular, rare
    low, high = QUERIES
    size = max(low, min(high, QUERY_ENTRIES // context.d))
    return sampled(popular, size, rng), sampled(rare, size, rng)


def shown_rows(context: Context, known: Popularity) -> IntArray:
    """Rows whose neighbors are listed: the asked tokens, else a few drawn from each class."""
    if context.options.asked:
        row = row_by_token(context)
        return np.asarray([row[token] for token, _ in context.options.asked], dtype=np.int64)
    rng = context.rng("shown neighbors")
    popular, rare = context.kept[known.popular], context.kept[~known.popular]
    return np.concatenate([sampled(popular, SHOWN, rng), sampled(rare, SHOWN, rng)])


def asked_pairs(context: Context) -> tuple[IntArray, IntArray]:
    row = row_by_token(context) if context.options.asked else {}
    pairs = [
        (row[token], row[other]) for token, others in context.options.asked for other in others
    ]
    flat = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    return flat[:, 0], flat[:, 1]


def row_by_token(context: Context) -> dict[str, int]:
    """First kept row of each token."""
    rows: dict[str, int] = {}
    for row in context.kept:
        rows.setdefault(context.token(int(row)), int(row))
    return rows


def compute(context: Context, seen: Seen) -> list[Value]:
    k = context.options.neighbors
    if context.m <= k:
        reason = f"{context.m} rows have no {k} neighbors each"
        return [
            q.NEIGHBOR_RARITY_RARE.undefined(reason),
            q.NEIGHBOR_RARITY_POPULAR.undefined(reason),
        ]
    known = popularity(context)
    found = seen.find(TopNeighbors, ("top neighbors", "queries"))
    asked = all_neighbors(context, seen) if context.options.neighbors_of == "all" else found
    is_rare = known.labels(context) == 0
    popular, rare = drawn_queries(context, known)
    values: list[Value] = [
        rarity(context, q.NEIGHBOR_RARITY_RARE, asked, rare, is_rare, known),
        rarity(context, q.NEIGHBOR_RARITY_POPULAR, asked, popular, is_rare, known),
        neighbor_table(context, found, shown_rows(context, known), is_rare),
    ]
    if any(others for _, others in context.options.asked):
        values.append(rank_table(context, seen.find(CloserRows, "closer rows"), is_rare))
    return values


def rarity(
    context: Context,
    quantity: Quantity,
    found: TopNeighbors,
    queries: IntArray,
    is_rare: BoolArray,
    known: Popularity,
) -> Scalar:
    """Mean share of rare neighbors; its error treats the queries as the sample."""
    k = context.options.neighbors
    neighbors = found.neighbors[np.searchsorted(found.index, queries), :k]
    share = is_rare[neighbors].mean(axis=1)
    rare = int((~known.popular).sum())
    itself = 1 if quantity is q.NEIGHBOR_RARITY_RARE else 0
    whole = int(known.popular.sum()) if quantity is q.NEIGHBOR_RARITY_POPULAR else rare
    # All queries of the class asked: nothing was sampled.
    exact = len(queries) == whole
    error = float(share.std(ddof=1) / np.sqrt(len(share))) if len(share) > 1 else None
    return quantity.measured(
        float(share.mean()),
        standard_error=None if exact else error,
        sample="" if exact else f"{len(queries):,} of {whole:,} queries",
        convention=f"k = {k}, cosine, the token itself left out; {known.convention}",
        reference=(rare - itself) / (context.m - 1),
        reference_note="chance: the share of rare tokens among the others",
    )


def starred(context: Context, row: int, is_rare: BoolArray) -> str:
    return context.token(row) + (" *" if is_rare[row] else "")


def neighbor_table(
    context: Context,
    found: TopNeighbors,
    rows: IntArray,
    is_rare: BoolArray,
) -> Table:
    body: list[tuple[Cell, ...]] = []
    for row in map(int, rows):
        neighbors = found.neighbors[int(np.searchsorted(found.index, row))]
        count = None if context.counts is None else int(context.counts[row])
        if context.frequency_kind == "rank" and count is not None:
            count = context.n + 1 - count
        kind = "rare" if is_rare[row] else "popular"
        near = (starred(context, int(other), is_rare) for other in neighbors)
        body.append((context.token(row), kind, count, *near))
    what = "rank" if context.frequency_kind == "rank" else "count"
    columns = ("token", "class", what, *(f"neighbor {i + 1}" for i in range(found.k)))
    return Table(q.NEIGHBORS, columns, tuple(body), note="nearest first; * rare")


def rank_table(context: Context, closer: CloserRows, is_rare: BoolArray) -> Table:
    body = tuple(
        (
            starred(context, int(row), is_rare),
            starred(context, int(other), is_rare),
            float(cosine),
            int(rank) + 1,
        )
        for row, other, cosine, rank in zip(
            closer.index, closer.others, closer.cosines, closer.closer, strict=True
        )
    )
    return Table(q.NEIGHBOR_RANKS, ("token", "neighbor", "cosine", "rank"), body, note="* rare")
