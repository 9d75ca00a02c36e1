"""Nearest rows of the tokens that tables name, which a report shows on their cards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from embgeo.core.nearest_rows import NearestRows
from embgeo.core.values import Table, Value
from embgeo.measure.passes import Measurement
from embgeo.stats import TopNeighbors

NAME = "named rows"


def add_named_rows(measurement: Measurement, values: Iterable[Value]) -> NearestRows | None:
    """Add the nearest rows of the rows that tables name to those that a family has searched.

    The tables are known only after the second pass, so this takes a short further one.
    """
    known, facts, k = measurement.shared.nearest, measurement.facts, measurement.options.neighbors
    reader = measurement.reader
    if facts.m <= k or facts.listed is not None or reader.passes_absent:
        return known
    named = [number for value in values if isinstance(value, Table) for number in list_rows(value)]
    rows = np.intersect1d(np.array(named, dtype=np.int64), facts.kept)
    if known is not None:
        rows = np.setdiff1d(rows, facts.kept[known.rows], assume_unique=True)
    if not len(rows):
        return known
    found = TopNeighbors(NAME, rows, reader.take_unit(rows), k)
    reader.announce("neighbors of named rows", facts.m)
    reader.fold([found])
    further = NearestRows(
        np.searchsorted(facts.kept, rows),
        np.asarray(np.searchsorted(facts.kept, found.neighbors)),
        np.asarray(found.cosines, dtype=np.float32),
    )
    return further if known is None else known.union(further)


def list_rows(table: Table) -> Iterator[int]:
    """Yield the numbers of the rows that a table lists; none if it lists other things."""
    if "row" in table.columns:
        at = table.columns.index("row")
        yield from (number for cells in table.rows if isinstance(number := cells[at], int))
