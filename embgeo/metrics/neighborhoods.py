"""Hubs and intrinsic dimension: the shape of neighborhoods (definitions, section 8).

Examples
--------
>>> import embgeo
>>> plane = np.random.default_rng(0).standard_normal((500, 2))
>>> W = plane @ np.random.default_rng(1).standard_normal((2, 16))
>>> found = embgeo.analyze(W, sections=["tokens"], reference=False)
>>> dimension = found["tokens.intrinsic_dimension"]
>>> f"{dimension.value:.1f} ± {dimension.standard_error:.1f}"
'2.0 ± 0.1'
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.options import Options
from embgeo.core.quantities import tokens as q
from embgeo.core.values import Influence, Table, Value
from embgeo.metrics.all_neighbors import count_all_occurrences
from embgeo.metrics.facts import Facts
from embgeo.metrics.shared import SharedStatistics, row_moments
from embgeo.numerics.hubness import TIE, count_occurrences, skewness
from embgeo.numerics.sampling import generator, sample_rows
from embgeo.numerics.scores import error_of, mean_influence
from embgeo.stats import RowHashes, TwoNearest
from embgeo.stats.reader import RowReader
from embgeo.stats.statistic import Statistic

FAMILY = "tokens"
#: A sample of rows has these many at least and at most, and not more entries if it can be helped.
SAMPLE_ROWS = (1_000, 2_000)
SAMPLE_ENTRIES = 5_000_000
SAMPLES = 4
#: Queries of the intrinsic dimension, against every row: this many entries at most, within
#: bounds.
QUERY_ENTRIES = 2**18
QUERIES = (300, 600)
SHOWN = 10


def first(facts: Facts, options: Options) -> list[Statistic]:
    return [RowHashes(facts.d), row_moments(facts, options)]


def second(
    facts: Facts, options: Options, reader: RowReader, shared: SharedStatistics
) -> list[Statistic]:
    rows = find_distinct_rows(facts, shared)
    if len(rows) < 3 or options.neighbors_of == "all":
        return []
    queries = draw_queries(facts, options, rows)
    return [TwoNearest(queries, reader.take(queries), among(facts, rows), find_shift(shared))]


def find_shift(shared: SharedStatistics) -> FloatArray | None:
    """The mean row, where it is so long that squares of distances would cancel."""
    return shared.moments.mean if shared.mean_is_long else None


def among(facts: Facts, rows: IntArray) -> npt.NDArray[np.bool_]:
    takes_part = np.zeros(facts.n, dtype=bool)
    takes_part[rows] = True
    return takes_part


def rows_read(facts: Facts, options: Options, shared: SharedStatistics) -> IntArray:
    if options.neighbors_of == "all":
        return facts.kept
    queries = draw_queries(facts, options, find_distinct_rows(facts, shared))
    return np.unique(np.concatenate([queries, *draw_hub_samples(facts, options)]))


def draw_queries(facts: Facts, options: Options, rows: IntArray) -> IntArray:
    low, high = QUERIES
    size = max(low, min(high, QUERY_ENTRIES // facts.d))
    return sample_rows(rows, size, generator(options.seed, "intrinsic dimension"))


def find_distinct_rows(facts: Facts, shared: SharedStatistics) -> IntArray:
    """The first row of each value: equal rows are one point of space."""
    hashes = shared.find(RowHashes, "RowHashes").values()
    return np.asarray(facts.kept[np.sort(np.unique(hashes, return_index=True)[1])])


def compute(
    facts: Facts, options: Options, reader: RowReader, shared: SharedStatistics
) -> list[Value]:
    return [
        *measure_hubs(facts, options, reader, shared),
        *measure_intrinsic_dimension(facts, options, reader, shared),
    ]


def measure_intrinsic_dimension(
    facts: Facts, options: Options, reader: RowReader, shared: SharedStatistics
) -> list[Value]:
    """TwoNN by maximum likelihood; its error from the spread of the ratios, not from the model."""
    rows = find_distinct_rows(facts, shared)
    if len(rows) < 3:
        reason = f"{len(rows)} distinct rows have no two neighbors each"
        return [q.INTRINSIC_DIMENSION.undefined(reason)]
    distances = find_two_nearest(facts, options, reader, shared, rows)
    # Distances of very short rows may vanish or be lost next to long ones.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(distances[:, 1] / distances[:, 0])
    finite = np.isfinite(ratios)
    ratios = ratios[finite]
    if len(ratios) < 3 or not ratios.sum() > TIE * len(ratios):
        reason = "the two nearest rows of every query are equally far"
        return [q.INTRINSIC_DIMENSION.undefined(reason)]
    n = len(ratios)
    value = (n - 1) / float(ratios.sum())
    duplicates = facts.m - len(rows)
    exact = n == len(rows)
    parts = -value / ratios.mean() * mean_influence(ratios)
    error = error_of(parts)
    drawn = error * float(np.sqrt(1.0 - n / len(rows)))
    scalar = q.INTRINSIC_DIMENSION.measured(
        value,
        standard_error=error if exact else drawn,
        error_kind="population" if exact else "monte_carlo",
        population_error=error,
        sample=f"{'all' if exact else ''} {n:,} queries against {len(rows):,} rows".strip(),
        convention="Euclidean; every point once"
        + (f", {duplicates:,} duplicate rows left out" if duplicates else ""),
    )
    asked = rows if options.neighbors_of == "all" else draw_queries(facts, options, rows)
    places = np.searchsorted(facts.kept, asked[finite])
    return [scalar, Influence.of(q.INTRINSIC_DIMENSION, parts, places)]


def find_two_nearest(
    facts: Facts, options: Options, reader: RowReader, shared: SharedStatistics, rows: IntArray
) -> FloatArray:
    """Distances of the queries, or of all the rows where these are asked for."""
    if options.neighbors_of == "sample":
        return np.asarray(shared.find(TwoNearest, "two nearest").distances)
    takes_part, shift = among(facts, rows), find_shift(shared)
    found = reader.sweep(
        lambda block: TwoNearest(block.index, block.rows, takes_part, shift),
        rows,
        "two nearest rows",
    )
    return np.concatenate([part.distances for part in found])


def draw_hub_samples(facts: Facts, options: Options) -> list[IntArray]:
    """The rows among which hubs are looked for: several samples, or once all rows if few."""
    k = options.neighbors
    if facts.m <= k:
        return []
    low, high = SAMPLE_ROWS
    size = max(low, 2 * k, min(high, SAMPLE_ENTRIES // facts.d))
    if facts.m <= 2 * size:
        return [facts.kept]
    rng = generator(options.seed, "hubness")
    return [sample_rows(facts.kept, size, rng) for _ in range(SAMPLES)]


def measure_hubs(
    facts: Facts, options: Options, reader: RowReader, shared: SharedStatistics
) -> list[Value]:
    k = options.neighbors
    if facts.m <= k:
        return [q.HUBNESS.undefined(f"{facts.m} rows have no {k} neighbors each")]
    if options.neighbors_of == "all":
        occurrences = count_all_occurrences(facts, options, reader, shared)
    else:
        samples = draw_hub_samples(facts, options)
        if len(samples) > 1:
            return measure_sampled_hubs(facts, reader, k, samples)
        occurrences = count_occurrences(reader.take_unit(facts.kept), k)
    skew = skewness(occurrences)
    if skew is None:
        return [q.HUBNESS.undefined("every token is a neighbor equally often")]
    scalar = q.HUBNESS.measured(skew, convention=f"k = {k}, cosine")
    return [scalar, make_hub_table(facts, facts.kept, occurrences, "all rows")]


def measure_sampled_hubs(
    facts: Facts, reader: RowReader, k: int, samples: list[IntArray]
) -> list[Value]:
    """Mean over a few samples, neighbors searched within each; the spread gives the error."""

    def search(number: int) -> FloatArray:
        return count_occurrences(reader.take_unit(samples[number]), k)

    occurrences = list(reader.spread(search, SAMPLES))
    found = [skew for skew in map(skewness, occurrences) if skew is not None]
    if len(found) < 2:
        return [q.HUBNESS.undefined("every sampled token is a neighbor equally often")]
    note = f"{SAMPLES} samples of {len(samples[0]):,} of {facts.m:,} rows"
    return [
        q.HUBNESS.measured(
            float(np.mean(found)),
            standard_error=float(np.std(found, ddof=1) / np.sqrt(len(found))),
            error_kind="monte_carlo",
            sample=note,
            convention=f"k = {k}, cosine, neighbors within the sample (hubness grows with it)",
        ),
        make_hub_table(facts, samples[-1], occurrences[-1], f"the last of {note}"),
    ]


def make_hub_table(facts: Facts, rows: IntArray, occurrences: FloatArray, note: str) -> Table:
    top = np.argsort(-occurrences, kind="stable")[:SHOWN]
    body = tuple(
        (int(rows[at]), facts.token(int(rows[at])), round(float(occurrences[at]), 3)) for at in top
    )
    return Table(q.HUBS, ("row", "token", "neighbor of"), body, note=note)
