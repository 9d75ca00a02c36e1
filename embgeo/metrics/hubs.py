"""Hubs: rows that are nearest neighbors of many others (definitions, section 8).

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((500, 50)) + 1.0
>>> hub = np.vstack([W, W.mean(axis=0)])
>>> for rows in (W, hub):
...     found = embgeo.analyze(rows, sections=["tokens"], reference=False)
...     print(f"{found['tokens.hubness'].value:.0f}")
3
15
"""

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import tokens as q
from embgeo.core.rows import NearestRows
from embgeo.core.values import Table, Value
from embgeo.metrics import neighbors
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import SharedStatistics, hashes
from embgeo.numerics.hubness import (
    count_occurrences,
    jackknife_error,
    share_among_equals,
    skewness,
)
from embgeo.stats.statistic import Statistic

#: Parts of the queries for the jackknife error.
PARTS = 20
SHOWN = 10
EQUALLY_OFTEN = "every token is a neighbor equally often"


def second(m: Measurement) -> list[Statistic]:
    return [*neighbors.search_queries(m)] if is_sampled(m.facts) else []


def rows_read(m: Measurement) -> IntArray:
    facts = m.facts
    if facts.m <= facts.options.neighbors:
        return NO_ROWS
    return neighbors.list_queries(facts) if is_sampled(facts) else facts.kept


def is_sampled(facts: Facts) -> bool:
    return len(neighbors.draw_hub_queries(facts)) > 0


def compute(m: Measurement) -> list[Value]:
    facts, reader, shared = m.facts, m.reader, m.shared
    k = facts.options.neighbors
    if facts.m <= k:
        reason = f"{facts.m} rows have no {k} neighbors each"
        return [q.HUBNESS.undefined(reason)]
    if is_sampled(facts):
        return measure_sample(facts, shared)
    if facts.options.neighbors_of == "all":
        occurrences = neighbors.count_all_occurrences(facts, reader, shared)
    else:
        occurrences, near, cosines = count_occurrences(reader.take_unit(facts.kept), k)
        shared.nearest = NearestRows(np.arange(facts.m), near, cosines.astype(np.float32))
    skew = skewness(occurrences)
    hubness = (
        q.HUBNESS.undefined(EQUALLY_OFTEN)
        if skew is None
        else q.HUBNESS.measured(skew, convention=f"k = {k}, cosine", size=facts.m)
    )
    return [hubness, make_hub_table(facts, occurrences, "all rows")]


def measure_sample(facts: Facts, shared: SharedStatistics) -> list[Value]:
    """Measure the values from the neighbors of a sample of rows; equal rows share their places."""
    k, queries = facts.options.neighbors, neighbors.draw_hub_queries(facts)
    found = neighbors.find_searched(shared)
    near = found.neighbors[np.searchsorted(found.index, queries), :k]
    shared.nearest = NearestRows(
        np.searchsorted(facts.kept, found.index),
        np.searchsorted(facts.kept, found.neighbors[:, :k]),
        np.asarray(found.cosines[:, :k], dtype=np.float32),
    )
    places = share_among_equals(
        np.asarray(np.searchsorted(facts.kept, near)),
        np.asarray(np.searchsorted(facts.kept, queries)),
        np.unique(shared.hashes, return_inverse=True)[1].astype(np.int64),
    )
    every = np.ones(len(queries), dtype=bool)
    skew = places.skewness(every, k)
    note = f"{len(queries):,} queries against all {facts.m:,} rows"
    if skew is None:
        return [q.HUBNESS.undefined(EQUALLY_OFTEN)]
    occurrences = places.sums(every)[0] * (facts.m / len(queries))
    return [
        q.HUBNESS.measured(
            skew,
            standard_error=jackknife_error(places, k, PARTS),
            error_kind="monte_carlo",
            freedom=PARTS - 1,
            size=facts.m,
            sample=note,
            convention=f"k = {k}, cosine",
        ),
        make_hub_table(facts, occurrences, f"estimated from {note}"),
    ]


def make_hub_table(facts: Facts, occurrences: FloatArray, note: str) -> Table:
    top = np.argsort(-occurrences, kind="stable")[:SHOWN]
    body = tuple(
        (int(facts.kept[at]), facts.token(int(facts.kept[at])), round(float(occurrences[at]), 3))
        for at in top
    )
    return Table(q.HUBS, ("row", "token", "neighbor of"), body, note=note)


FAMILY = Family("tokens", compute, first=(hashes,), second=second, rows_read=rows_read)
