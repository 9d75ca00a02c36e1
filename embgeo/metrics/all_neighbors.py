"""Nearest rows of every row, and how often each row is among them."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.metrics.facts import Facts
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.hubness import TIE, count_places
from embgeo.stats import TopNeighbors
from embgeo.stats.reader import RowReader

NAME = "all rows"
#: Cosines in memory at a time for ties.
HELD = 2**24


def find_all_neighbors(facts: Facts, reader: RowReader, shared: SharedStatistics) -> TopNeighbors:
    """The k + 1 nearest rows of every kept row by cosine, searched once for all families.

    One more than requested, to detect ties of the last neighbor.
    """
    found = shared.get(TopNeighbors, NAME)
    if found is None:
        k = facts.options.neighbors + 1
        parts = [
            (part.neighbors, part.cosines)
            for part in reader.sweep(
                lambda block: TopNeighbors(NAME, block.index, block.unit, k),
                facts.kept,
                "neighbors of all rows",
            )
        ]
        found = TopNeighbors(NAME, facts.kept, np.zeros((0, facts.d)), k)
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
