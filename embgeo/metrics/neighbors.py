"""Nearest neighbors by cosine: are neighbors of rare tokens rare? (definitions, section 5)

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((500, 8))
>>> W[100:] += 2.0  # all but the most frequent fifth
>>> counts = np.arange(500, 0, -1)
>>> found = embgeo.analyze(W, counts=counts, sections=["frequency"], reference=False)
>>> round(found["frequency.neighbor_rarity_rare"].value, 2)
1.0
>>> round(found["frequency.neighbor_rarity_popular"].value, 2)
0.24
"""

from dataclasses import replace

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.quantities import frequency as q
from embgeo.core.values import Cell, Influence, Quantity, Table, Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.frequency import Popularity, explain_absence, rank_by_frequency
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.hubness import TIE, count_places
from embgeo.numerics.sampling import sample_rows
from embgeo.numerics.scores import error_of, mean_influence
from embgeo.stats import CloserRows, TopNeighbors
from embgeo.stats.all_nearest import find_all_nearest
from embgeo.stats.reader import RowReader
from embgeo.stats.statistic import Statistic

#: Hubs: up to this many rows, all rows are queries; of more rows, a sample of fixed size.
ALL_ROWS = 4_000
HUB_QUERIES = 1_000
#: Least queries of each class of frequency: this many entries at most, within bounds.
CLASS_ENTRIES = 2**17
CLASS_QUERIES = (200, 500)
#: Tokens of each class in the shown table.
SHOWN = 4
NAME, ALL = "queries", "all rows"
#: Cosines in memory at a time for ties.
HELD = 2**24


def absent(m: Measurement) -> str:
    return "" if m.facts.options.show_neighbors else explain_absence(m.facts)


def second(m: Measurement) -> list[Statistic]:
    facts, reader = m.facts, m.reader
    if facts.m <= facts.options.neighbors:
        return []
    statistics: list[Statistic] = [*search_queries(m)]
    index, others = find_asked_pairs(facts)
    if len(index):
        queries, targets = reader.take_unit(index), reader.take_unit(others)
        cosines = np.einsum("ij,ij->i", queries, targets)
        statistics.append(CloserRows(index, queries, others, cosines))
    return statistics


def rows_read(m: Measurement) -> IntArray:
    facts = m.facts
    if facts.m <= facts.options.neighbors:
        return NO_ROWS
    if facts.options.neighbors_of == "all":
        return facts.kept
    return np.unique(np.concatenate([list_queries(facts), *find_asked_pairs(facts)]))


def find_asked_pairs(facts: Facts) -> tuple[IntArray, IntArray]:
    row = map_tokens_to_rows(facts) if facts.options.show_neighbors else {}
    pairs = [
        (row[token], row[other])
        for token, others in facts.options.show_neighbors
        for other in others
    ]
    flat = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    return flat[:, 0], flat[:, 1]


def compute(m: Measurement) -> list[Value]:
    facts, reader, shared = m.facts, m.reader, m.shared
    k = facts.options.neighbors
    if facts.m <= k:
        reason = f"{facts.m} rows have no {k} neighbors each"
        return [
            q.NEIGHBOR_RARITY_RARE.undefined(reason),
            q.NEIGHBOR_RARITY_POPULAR.undefined(reason),
        ]
    found = find_searched(shared)
    known = None if explain_absence(facts) else rank_by_frequency(facts)
    shown = choose_shown_rows(facts, known)
    ranked = any(others for _, others in facts.options.show_neighbors)
    closer = shared.find(CloserRows) if ranked else None
    if known is None:
        tables = [make_neighbor_table(facts, found, shown, None, k)]
        return [*tables, make_rank_table(facts, closer, None)] if closer else [*tables]
    asked = (
        find_all_neighbors(facts, reader, shared) if facts.options.neighbors_of == "all" else found
    )
    is_rare = known.labels(facts) == 0
    popular, rare = draw_class_queries(facts, known)
    values: list[Value] = [
        *measure_rarity(facts, q.NEIGHBOR_RARITY_RARE, asked, rare, is_rare, known),
        *measure_rarity(facts, q.NEIGHBOR_RARITY_POPULAR, asked, popular, is_rare, known),
        make_neighbor_table(facts, found, shown, is_rare, k),
    ]
    return [*values, make_rank_table(facts, closer, is_rare)] if closer else values


def measure_rarity(
    facts: Facts,
    quantity: Quantity,
    found: TopNeighbors,
    queries: IntArray,
    is_rare: Mask,
    known: Popularity,
) -> list[Value]:
    """Measure the mean share of rare neighbors, with the influence of tokens."""
    k = facts.options.neighbors
    near = found.neighbors[np.searchsorted(found.index, queries)]
    share = is_rare[near[:, :k]].mean(axis=1)
    rare = int((~known.popular).sum())
    itself = 1 if quantity is q.NEIGHBOR_RARITY_RARE else 0
    whole = int(known.popular.sum()) if quantity is q.NEIGHBOR_RARITY_POPULAR else rare
    # Exact if all rows of the class are queries.
    exact = len(queries) == whole
    drawn = error = None
    if len(share) > 1:
        drawn = error_of(mean_influence(share)) * float(np.sqrt(1.0 - len(queries) / whole))
        slope = find_edge_slope(facts, queries, near[:, :k], known)
        parts, noise, error = influence_of_tokens(facts, queries, near, is_rare, slope)
    scalar = quantity.measured(
        float(share.mean()),
        standard_error=None if exact else drawn,
        error_kind="monte_carlo",
        population_error=error,
        sample="" if exact else f"{len(queries):,} of {whole:,} queries",
        convention=f"k = {k}, cosine, the token itself left out; {known.convention}",
        reference=(rare - itself) / (facts.m - 1),
        reference_kind="chance",
        reference_note="chance: the share of rare tokens among the others",
    )
    if error is None:
        return [scalar]
    return [scalar, replace(Influence.of(quantity, parts), noise=noise.astype(np.float32))]


def find_edge_slope(facts: Facts, queries: IntArray, near: IntArray, known: Popularity) -> float:
    """Find the slope of the mean share of rare neighbors over the share of rare tokens.

    By a difference: a fourth of the smaller class, nearest to the edge, moves from the class of the
    queries to the other, among queries and neighbors alike. 1 if no query is left.
    """
    rank = np.full(facts.n, -1, dtype=np.int64)
    rank[facts.kept] = known.rank
    edge = int(known.popular.sum())
    step = max(1, known.edge_step)
    popular = bool(rank[queries[0]] < edge)
    moved = edge - step if popular else edge + step
    left = (rank[queries] < moved) if popular else (rank[queries] >= moved)
    if not left.any():
        return 1.0
    change = (rank[near[left]] >= moved).mean() - (rank[near] >= edge).mean()
    return float(change * facts.m / (edge - moved))


def influence_of_tokens(
    facts: Facts, queries: IntArray, near: IntArray, is_rare: Mask, slope: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return the influence of each kept row on the mean share, its noise, and the standard error.

    A token has influence as a query and as a neighbor: without it, the next nearest row takes its
    place. The spread between queries contains the contribution of their own neighbors, so that the
    squares of these are left out of the sum. `near` holds k + 1 neighbors of each query, the last
    next in line; `slope` is from `find_edge_slope`.
    """
    k = near.shape[1] - 1
    rare_near = is_rare[near]
    share = rare_near[:, :k].mean(axis=1)
    n = len(queries)
    parts = np.zeros(facts.m)
    parts[np.searchsorted(facts.kept, queries)] = mean_influence(share)
    # A place without a next row does not change.
    moved = (rare_near[:, :k].astype(np.float64) - rare_near[:, k:]) * (near[:, k:] >= 0) / (k * n)
    signs = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)[:, None]
    places = np.searchsorted(facts.kept, near[:, :k]).ravel()
    received, noise = (
        np.asarray(np.bincount(places, part.ravel(), minlength=facts.m), dtype=np.float64)
        for part in (moved, signs * moved)
    )
    parts += received
    # The share of rare tokens is fixed: if a token leaves, another changes class.
    label = is_rare[facts.kept].astype(np.float64)
    parts -= slope * (label - label.mean()) / facts.m
    variance = float(parts @ parts) - float(np.square(moved).sum())
    return parts, noise, float(np.sqrt(max(variance, 0.0)))


def make_neighbor_table(
    facts: Facts, found: TopNeighbors, rows: IntArray, is_rare: Mask | None, k: int
) -> Table:
    """Make the table of neighbors; without classes it has no class, count or marks."""
    body: list[tuple[Cell, ...]] = []
    rare: list[tuple[int, int]] = []
    what = "rank" if facts.is_ranked else "count"
    before = ("token",) if is_rare is None else ("token", "class", what)
    for place, row in enumerate(map(int, rows)):
        neighbors = found.neighbors[int(np.searchsorted(found.index, row)), :k]
        cells: list[Cell] = [facts.token(row)]
        if is_rare is not None:
            count = facts.count(row)
            if facts.is_ranked and facts.frequency is not None:
                count = facts.n + 1 - int(facts.frequency.counts[row])
            cells += ["rare" if is_rare[row] else "frequent", count]
            rare += [(place, len(before) + int(i)) for i in np.flatnonzero(is_rare[neighbors])]
        body.append((*cells, *(facts.token(int(i)) for i in neighbors)))
    columns = (*before, *(f"neighbor {i + 1}" for i in range(k)))
    note = "nearest first" if is_rare is None else "nearest first; * rare"
    return Table(q.NEIGHBORS, columns, tuple(body), note=note, rare=tuple(rare))


def make_rank_table(facts: Facts, closer: CloserRows, is_rare: Mask | None) -> Table:
    body = tuple(
        (
            facts.token(int(row)),
            facts.token(int(other)),
            float(cosine),
            int(rank) + 1,
        )
        for row, other, cosine, rank in zip(
            closer.index, closer.others, closer.cosines, closer.closer, strict=True
        )
    )
    columns = ("token", "neighbor", "cosine", "rank")
    if is_rare is None:
        return Table(q.NEIGHBOR_RANKS, columns, body)
    named = np.stack([closer.index, closer.others], axis=1)
    rare = tuple((int(row), int(column)) for row, column in np.argwhere(is_rare[named]))
    return Table(q.NEIGHBOR_RANKS, columns, body, note="* rare", rare=rare)


# --- queries --------------------------------------------------------------------------------------


def search_queries(m: Measurement) -> list[TopNeighbors]:
    """Return the nearest rows of all queries, one more than requested.

    Empty without queries, and where all rows have been searched.
    """
    rows = list_queries(m.facts)
    if not len(rows) or m.shared.get(TopNeighbors, ALL) is not None:
        return []
    return [TopNeighbors(NAME, rows, m.reader.take_unit(rows), m.facts.options.neighbors + 1)]


def find_searched(shared: SharedStatistics) -> TopNeighbors:
    """Find the nearest rows of all queries: those of all rows, if they have been searched."""
    return shared.get(TopNeighbors, NAME) or shared.find(TopNeighbors, ALL)


def list_queries(facts: Facts) -> IntArray:
    """List rows of all queries, ascending."""
    if facts.m <= facts.options.neighbors:
        return NO_ROWS
    rows = [draw_hub_queries(facts)]
    known = None if explain_absence(facts) else rank_by_frequency(facts)
    rows.append(choose_shown_rows(facts, known))
    if known and facts.options.neighbors_of == "sample":  # all rows are asked by themselves
        rows += draw_class_queries(facts, known)
    return np.unique(np.concatenate(rows))


def draw_hub_queries(facts: Facts) -> IntArray:
    """Draw a uniform sample of the rows; empty if every row is a query."""
    if facts.options.neighbors_of == "all" or facts.m <= max(ALL_ROWS, facts.options.neighbors):
        return NO_ROWS
    return sample_rows(facts.kept, HUB_QUERIES, facts.generator("hubness"))


def draw_class_queries(facts: Facts, known: Popularity) -> tuple[IntArray, IntArray]:
    """Draw rows of frequent and rare queries, ascending, uniform within each class.

    They include the queries of hubs, and further rows if these are too few.
    """
    popular, rare = facts.kept[known.popular], facts.kept[~known.popular]
    if facts.options.neighbors_of == "all":
        return popular, rare
    rng, hubs = facts.generator("neighbor queries"), draw_hub_queries(facts)
    size = int(np.clip(CLASS_ENTRIES // facts.d, *CLASS_QUERIES))

    def draw(group: IntArray) -> IntArray:
        ready = np.intersect1d(group, hubs, assume_unique=True)
        further = np.setdiff1d(group, ready, assume_unique=True)
        return np.union1d(ready, sample_rows(further, max(0, size - len(ready)), rng))

    return draw(popular), draw(rare)


def choose_shown_rows(facts: Facts, known: Popularity | None) -> IntArray:
    """Choose rows whose neighbors are listed: requested tokens, or a few of each class."""
    if facts.options.show_neighbors:
        row = map_tokens_to_rows(facts)
        return np.asarray([row[token] for token, _ in facts.options.show_neighbors], dtype=np.int64)
    if known is None:
        return NO_ROWS
    rng = facts.generator("shown neighbors")
    popular, rare = facts.kept[known.popular], facts.kept[~known.popular]
    return np.concatenate([sample_rows(popular, SHOWN, rng), sample_rows(rare, SHOWN, rng)])


def map_tokens_to_rows(facts: Facts) -> dict[str, int]:
    """Return the first kept row of each token."""
    rows: dict[str, int] = {}
    for row in facts.kept:
        rows.setdefault(facts.token(int(row)), int(row))
    return rows


def find_all_neighbors(facts: Facts, reader: RowReader, shared: SharedStatistics) -> TopNeighbors:
    """Find the k + 1 nearest rows of every kept row by cosine, searched once for all families.

    One more than requested, to detect ties of the last neighbor.
    """
    found = shared.get(TopNeighbors, ALL)
    if found is None:
        k = facts.options.neighbors + 1
        found = TopNeighbors(ALL, facts.kept, np.zeros((0, facts.d)), k)
        found.neighbors, found.cosines = find_all_nearest(
            reader, facts.kept, k, "neighbors of all rows"
        )
        shared.add([found])
    return found


def count_all_occurrences(facts: Facts, reader: RowReader, shared: SharedStatistics) -> FloatArray:
    """Count how often each kept row is among the k nearest of another, shape (M,).

    Equally near rows that do not all fit share the remaining places.
    """
    k = facts.options.neighbors
    found = find_all_neighbors(facts, reader, shared)
    tied = found.cosines[:, k] >= found.cosines[:, k - 1] - TIE
    position = np.searchsorted(facts.kept, found.neighbors[~tied, :k])
    counts = np.bincount(position.ravel(), minlength=facts.m).astype(np.float64)
    rows = facts.kept[tied]
    step = max(1, HELD // facts.m)

    def share_places(number: int) -> FloatArray:
        part = rows[number * step : (number + 1) * step]
        return count_places(compute_cosines(facts, reader, part), k)

    for found_places in reader.spread(share_places, -(-len(rows) // step), "rows equally near"):
        counts += found_places
    return counts


def compute_cosines(facts: Facts, reader: RowReader, rows: IntArray) -> FloatArray:
    """Compute cosines of some rows with all kept rows, shape (len(rows), M); −∞ with themselves."""
    unit = reader.take_unit(rows)
    cosines = np.hstack([unit @ block.unit.T for block in reader.blocks(None)])
    cosines[np.arange(len(rows)), np.searchsorted(facts.kept, rows)] = -np.inf
    return cosines


FAMILY = Family("frequency", compute, second=second, absent=absent, rows_read=rows_read)
