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

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.quantities import frequency as q
from embgeo.core.values import Cell, Quantity, Scalar, Table, Value
from embgeo.metrics.by_half import ByHalf, add_errors
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.frequency import (
    Popularity,
    count_popular,
    explain_absence,
    explain_no_classes,
    rank_by_frequency,
)
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.halves import HALVES
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
WITH_ERRORS = (q.NEIGHBOR_RARITY_RARE, q.NEIGHBOR_RARITY_POPULAR)
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
    no_classes = explain_no_classes(facts)
    undefined: list[Value] = [x.undefined(no_classes) for x in WITH_ERRORS]
    if no_classes and not facts.options.show_neighbors:
        return undefined
    found = find_searched(shared)
    known = None if no_classes else rank_by_frequency(facts)
    shown = choose_shown_rows(facts, known)
    ranked = any(others for _, others in facts.options.show_neighbors)
    closer = shared.find(CloserRows) if ranked else None
    if known is None:
        values = [] if explain_absence(facts) else undefined
        values.append(make_neighbor_table(facts, found, shown, None, k))
        return [*values, make_rank_table(facts, closer, None)] if closer else values
    asked = (
        find_all_neighbors(facts, reader, shared) if facts.options.neighbors_of == "all" else found
    )
    is_rare = known.labels(facts) == 0
    popular, rare = draw_class_queries(facts, known)
    values = [
        measure_rarity(facts, q.NEIGHBOR_RARITY_RARE, asked, rare, is_rare, known),
        measure_rarity(facts, q.NEIGHBOR_RARITY_POPULAR, asked, popular, is_rare, known),
        make_neighbor_table(facts, found, shown, is_rare, k),
    ]
    values = add_errors(
        m, values, WITH_ERRORS, lambda: measure_halves(facts, asked, popular, rare, known)
    )
    return [*values, make_rank_table(facts, closer, is_rare)] if closer else values


def measure_rarity(
    facts: Facts,
    quantity: Quantity,
    found: TopNeighbors,
    queries: IntArray,
    is_rare: Mask,
    known: Popularity,
) -> Scalar:
    """Measure the mean share of rare neighbors."""
    k = facts.options.neighbors
    near = found.neighbors[np.searchsorted(found.index, queries), :k]
    share = is_rare[near].mean(axis=1)
    rare = int((~known.popular).sum())
    itself = 1 if quantity is q.NEIGHBOR_RARITY_RARE else 0
    whole = int(known.popular.sum()) if quantity is q.NEIGHBOR_RARITY_POPULAR else rare
    # Exact if all rows of the class are queries.
    exact = len(queries) == whole
    drawn = None
    if len(share) > 1:
        drawn = error_of(mean_influence(share)) * float(np.sqrt(1.0 - len(queries) / whole))
    return quantity.measured(
        float(share.mean()),
        standard_error=None if exact else drawn,
        error_kind="monte_carlo",
        sample="" if exact else f"{len(queries):,} of {whole:,} queries",
        convention=f"k = {k}, cosine, the token itself left out; {known.convention}",
        reference=(rare - itself) / (facts.m - 1),
        reference_kind="chance",
        reference_note="chance: the share of rare tokens among the others",
    )


def measure_halves(
    facts: Facts, found: TopNeighbors, popular: IntArray, rare: IntArray, known: Popularity
) -> ByHalf:
    """Measure the queries of each half, with classes and nearest rows of the half.

    `popular` and `rare` are the queries of each class. In a half, some of either are of the other
    class; each counts for as many tokens as it was drawn from.
    """
    k, groups, rows = facts.options.neighbors, facts.groups, np.concatenate([popular, rare])
    if groups is None:
        return {}
    near = found.neighbors[np.searchsorted(found.index, rows)]
    edge, order = int(known.popular.sum()), facts.kept[known.order]
    falling = known.counts[known.order]
    weight = np.repeat([edge, facts.m - edge], [len(popular), len(rare)])
    weight = weight / np.repeat([len(popular), len(rare)], [len(popular), len(rare)])
    shares: dict[Quantity, list[float]] = {one: [] for one in WITH_ERRORS}
    for half in HALVES:
        inside = half[groups]
        in_half = inside[order]
        is_popular = np.zeros(facts.n, dtype=bool)
        is_popular[order[in_half][: count_popular(facts, falling[in_half])]] = True
        mine = inside[near] & (near >= 0)
        mine &= np.cumsum(mine, axis=1) <= k
        share = (mine & ~is_popular[near]).sum(axis=1) / np.maximum(mine.sum(axis=1), 1)
        for quantity, of in zip(shares, (~is_popular, is_popular), strict=True):
            counted = weight * (inside & of)[rows]
            shares[quantity].append(counted @ share / counted.sum() if counted.any() else np.nan)
    return {quantity: np.array(found) for quantity, found in shares.items()}


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
    """Return the nearest rows of all queries.

    Empty without queries, and where all rows have been searched and there are no errors.
    """
    rows, searched = list_queries(m.facts), m.shared.get(TopNeighbors, ALL) is not None
    if not len(rows) or (searched and not needs_halves(m.facts)):
        return []
    return [TopNeighbors(NAME, rows, m.reader.take_unit(rows), count_near(m.facts))]


def needs_halves(facts: Facts) -> bool:
    return facts.kept_groups is not None and not explain_no_classes(facts)


def count_near(facts: Facts) -> int:
    """Return how many neighbors are searched: one more than requested, to detect ties of the last.

    For errors more, such that a half of the rows holds the requested number, but for a chance
    of 1 in 10,000.
    """
    k = facts.options.neighbors
    return min(facts.m - 1, int(2 * k + 9 * np.sqrt(k))) if needs_halves(facts) else k + 1


def find_searched(shared: SharedStatistics) -> TopNeighbors:
    """Find the nearest rows of all queries: those of all rows, if they have been searched."""
    return shared.get(TopNeighbors, NAME) or shared.find(TopNeighbors, ALL)


def list_queries(facts: Facts) -> IntArray:
    """List rows of all queries, ascending."""
    if facts.m <= facts.options.neighbors:
        return NO_ROWS
    rows = [draw_hub_queries(facts)]
    known = None if explain_no_classes(facts) else rank_by_frequency(facts)
    rows.append(choose_shown_rows(facts, known))
    if known and facts.options.neighbors_of != "all":  # all rows are asked by themselves
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
    """Find the nearest rows of every kept row by cosine, searched once for all families."""
    found = shared.get(TopNeighbors, ALL)
    if found is None:
        asked = facts.options.neighbors_of == "all"
        k = count_near(facts) if asked else facts.options.neighbors + 1
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
