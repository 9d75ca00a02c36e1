"""Rows whose neighbors are searched, some or all, for hubs and the neighbors of classes."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.popularity import Popularity, explain_absence, rank_by_frequency
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.hubness import TIE, count_places
from embgeo.numerics.sampling import sample_rows
from embgeo.stats import TopNeighbors
from embgeo.stats.reader import RowReader

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


def search_queries(facts: Facts, reader: RowReader) -> list[TopNeighbors]:
    """The nearest rows of all queries, one more than requested; empty without queries."""
    rows = list_queries(facts)
    if not len(rows):
        return []
    return [TopNeighbors(NAME, rows, reader.take_unit(rows), facts.options.neighbors + 1)]


def find_searched(shared: SharedStatistics) -> TopNeighbors:
    """The statistic of `search_queries`."""
    return shared.find(TopNeighbors, NAME)


def list_queries(facts: Facts) -> IntArray:
    """Rows of all queries, ascending."""
    if facts.m <= facts.options.neighbors:
        return NO_ROWS
    rows = [draw_hub_queries(facts)]
    known = None if explain_absence(facts) else rank_by_frequency(facts)
    rows.append(choose_shown_rows(facts, known))
    if known and facts.options.neighbors_of == "sample":  # all rows are asked by themselves
        rows += draw_class_queries(facts, known)
    return np.unique(np.concatenate(rows))


def draw_hub_queries(facts: Facts) -> IntArray:
    """A uniform sample of the rows; empty if every row is a query."""
    if facts.options.neighbors_of == "all" or facts.m <= max(ALL_ROWS, facts.options.neighbors):
        return NO_ROWS
    return sample_rows(facts.kept, HUB_QUERIES, facts.generator("hubness"))


def draw_class_queries(facts: Facts, known: Popularity) -> tuple[IntArray, IntArray]:
    """Rows of popular and rare queries, ascending, uniform within each class.

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
    """Rows whose neighbors are listed: requested tokens, or a few of each class."""
    if facts.options.show_neighbors:
        row = map_tokens_to_rows(facts)
        return np.asarray([row[token] for token, _ in facts.options.show_neighbors], dtype=np.int64)
    if known is None:
        return NO_ROWS
    rng = facts.generator("shown neighbors")
    popular, rare = facts.kept[known.popular], facts.kept[~known.popular]
    return np.concatenate([sample_rows(popular, SHOWN, rng), sample_rows(rare, SHOWN, rng)])


def map_tokens_to_rows(facts: Facts) -> dict[str, int]:
    """First kept row of each token."""
    rows: dict[str, int] = {}
    for row in facts.kept:
        rows.setdefault(facts.token(int(row)), int(row))
    return rows


def find_all_neighbors(facts: Facts, reader: RowReader, shared: SharedStatistics) -> TopNeighbors:
    """The k + 1 nearest rows of every kept row by cosine, searched once for all families.

    One more than requested, to detect ties of the last neighbor.
    """
    found = shared.get(TopNeighbors, ALL)
    if found is None:
        k = facts.options.neighbors + 1
        parts = [
            (part.neighbors, part.cosines)
            for part in reader.sweep(
                lambda block: TopNeighbors(ALL, block.index, block.unit, k),
                facts.kept,
                "neighbors of all rows",
            )
        ]
        found = TopNeighbors(ALL, facts.kept, np.zeros((0, facts.d)), k)
        found.neighbors, found.cosines = (np.concatenate(part) for part in zip(*parts, strict=True))
        shared.add([found])
    return found


def count_all_occurrences(facts: Facts, reader: RowReader, shared: SharedStatistics) -> FloatArray:
    """How often each kept row is among the k nearest of another, shape (M,).

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
    """Cosines of some rows with all kept rows, shape (len(rows), M); −∞ with themselves."""
    unit = reader.take_unit(rows)
    cosines = np.hstack([unit @ block.unit.T for block in reader.blocks(None)])
    cosines[np.arange(len(rows)), np.searchsorted(facts.kept, rows)] = -np.inf
    return cosines
