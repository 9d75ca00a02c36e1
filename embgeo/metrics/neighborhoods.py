"""Intrinsic dimension of the rows (definitions, section 8).

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

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.quantities import tokens as q
from embgeo.core.values import Cell, Influence, Scalar, Table, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.popularity import explain_absence, rank_by_frequency
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.hubness import TIE
from embgeo.numerics.local_dimension import USED, compute_inverse_dimensions, fit_two_nn
from embgeo.numerics.sampling import sample_rows
from embgeo.numerics.scores import error_of, mean_influence
from embgeo.stats import NearestDistances
from embgeo.stats.reader import RowReader
from embgeo.stats.statistic import Statistic

FAMILY = "tokens"
FIRST = ("hashes", "moments")
#: Number of queries of the intrinsic dimension: this many entries at most, within bounds.
QUERY_ENTRIES = 2**18
QUERIES = (300, 600)
#: Neighbors of each query; TwoNN uses the first two.
NEAREST = 20
#: A tenth of fewer queries is none.
LEAST_TRIMMED = 10
#: Bootstrap samples of the queries for the error of the trimmed form.
RESAMPLES = 100
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
EVERY = (q.INTRINSIC_DIMENSION, q.INTRINSIC_DIMENSION_TRIMMED, q.LOCAL_DIMENSION)


def second(facts: Facts, reader: RowReader, shared: SharedStatistics) -> list[Statistic]:
    rows = find_distinct_rows(facts, shared)
    if len(rows) < 3 or facts.options.neighbors_of == "all":
        return []
    queries = draw_queries(facts, rows)
    return [
        NearestDistances(
            queries, reader.take(queries), among(facts, rows), NEAREST, find_shift(shared)
        )
    ]


def find_shift(shared: SharedStatistics) -> FloatArray | None:
    """The mean row, if it is so long that squared distances would cancel."""
    return shared.moments.mean if shared.mean_is_long else None


def among(facts: Facts, rows: IntArray) -> Mask:
    takes_part = np.zeros(facts.n, dtype=bool)
    takes_part[rows] = True
    return takes_part


def rows_read(facts: Facts, shared: SharedStatistics) -> IntArray:
    if facts.options.neighbors_of == "all":
        return facts.kept
    return draw_queries(facts, find_distinct_rows(facts, shared))


def draw_queries(facts: Facts, rows: IntArray) -> IntArray:
    size = int(np.clip(QUERY_ENTRIES // facts.d, *QUERIES))
    return sample_rows(rows, size, facts.generator("intrinsic dimension"))


def find_distinct_rows(facts: Facts, shared: SharedStatistics) -> IntArray:
    """The first of each group of equal rows, which are one point."""
    return np.asarray(facts.kept[np.sort(np.unique(shared.hashes, return_index=True)[1])])


def compute(facts: Facts, reader: RowReader, shared: SharedStatistics) -> list[Value]:
    rows = find_distinct_rows(facts, shared)
    if len(rows) < 3:
        reason = f"{len(rows)} distinct rows have no two neighbors each"
        return [quantity.undefined(reason) for quantity in EVERY]
    distances = find_nearest(facts, reader, shared, rows)
    asked = rows if facts.options.neighbors_of == "all" else draw_queries(facts, rows)
    return [
        *measure_two_nn(facts, distances, asked, len(rows)),
        *measure_local(facts, distances, asked, len(rows)),
    ]


def measure_two_nn(facts: Facts, distances: FloatArray, asked: IntArray, rows: int) -> list[Value]:
    """TwoNN by maximum likelihood, with an error from the spread of the ratios."""
    # Distances of very short rows may vanish, or be lost next to long rows.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(distances[:, 1] / distances[:, 0])
    finite = np.isfinite(ratios)
    ratios = ratios[finite]
    if len(ratios) < 3 or not ratios.sum() > TIE * len(ratios):
        reason = "the two nearest rows of every query are equally far"
        return [quantity.undefined(reason) for quantity in EVERY[:2]]
    n = len(ratios)
    value = (n - 1) / float(ratios.sum())
    duplicates = facts.m - rows
    exact = n == rows
    parts = -value / ratios.mean() * mean_influence(ratios)
    drawn = error_of(parts) * float(np.sqrt(1.0 - n / rows))
    # Two mutually nearest rows share their distance and are one draw.
    nearest = distances[finite, 0] / distances[finite, 0].max()
    _, pair = np.unique(nearest.astype(np.float32), return_inverse=True)
    error = error_of(np.asarray(np.bincount(pair, parts), dtype=np.float64))
    scalar = q.INTRINSIC_DIMENSION.measured(
        value,
        standard_error=error if exact else drawn,
        error_kind="population" if exact else "monte_carlo",
        population_error=error,
        sample=f"{'all' if exact else ''} {n:,} queries against {rows:,} rows".strip(),
        convention="Euclidean; every point once"
        + (f", {duplicates:,} duplicate rows left out" if duplicates else ""),
    )
    places = np.searchsorted(facts.kept, asked[finite])
    trimmed = measure_trimmed(facts, ratios, pair, rows)
    return [scalar, Influence.of(q.INTRINSIC_DIMENSION, parts, places), trimmed]


def measure_trimmed(facts: Facts, ratios: FloatArray, pair: IntArray, rows: int) -> Scalar:
    """TwoNN fitted without the largest ratios, with a bootstrap error.

    `pair` numbers the queries so that mutually nearest rows are drawn together.
    """
    n = len(ratios)
    if n < LEAST_TRIMMED:
        return q.INTRINSIC_DIMENSION_TRIMMED.undefined(f"fewer than {LEAST_TRIMMED} queries")
    if not np.quantile(ratios, 0.25) > TIE:
        reason = "the two nearest rows of a quarter of the queries are equally far"
        return q.INTRINSIC_DIMENSION_TRIMMED.undefined(reason)
    rng = facts.generator("trimmed dimension")
    pairs = int(pair.max()) + 1
    times = (np.bincount(rng.integers(0, pairs, pairs), minlength=pairs) for _ in range(RESAMPLES))
    again = np.array([fit_two_nn(np.repeat(ratios, each[pair])) for each in times])
    error, exact = float(np.std(again[np.isfinite(again)], ddof=1)), n == rows
    return q.INTRINSIC_DIMENSION_TRIMMED.measured(
        fit_two_nn(ratios),
        standard_error=error if exact else error * float(np.sqrt(1.0 - n / rows)),
        error_kind="population" if exact else "monte_carlo",
        population_error=error,
        sample=f"{'all' if exact else ''} {n:,} queries against {rows:,} rows".strip(),
        convention=f"Euclidean; the {USED:.0%} smallest ratios",
    )


def measure_local(facts: Facts, distances: FloatArray, asked: IntArray, rows: int) -> list[Value]:
    """The dimension around each query, over all of them and by class of frequency."""
    if rows <= NEAREST:
        return [q.LOCAL_DIMENSION.undefined(f"{rows} distinct rows have no {NEAREST} neighbors")]
    usable = (distances[:, 0] > 0) & np.isfinite(distances[:, -1])
    inverse, asked = compute_inverse_dimensions(distances[usable]), asked[usable]
    if len(inverse) < 3 or not inverse.min() > TIE:
        return [q.LOCAL_DIMENSION.undefined("the neighbors of a query are equally far")]
    n, mean = len(inverse), float(inverse.mean())
    error, exact = error_of(mean_influence(inverse)) / mean**2, n == rows
    scalar = q.LOCAL_DIMENSION.measured(
        1.0 / mean,
        # Queries share most of their neighbors: as an error over tokens it would be far too small.
        standard_error=None if exact else error * float(np.sqrt(1.0 - n / rows)),
        error_kind="monte_carlo",
        sample="" if exact else f"{n:,} queries against {rows:,} rows",
        convention=f"k = {NEAREST}, Euclidean; mean of the inverse dimensions",
    )
    groups = {"all": np.ones(n, dtype=bool)}
    if not explain_absence(facts):
        popular = rank_by_frequency(facts).popular[np.searchsorted(facts.kept, asked)]
        groups |= {"popular": popular, "rare": ~popular}
    body: tuple[tuple[Cell, ...], ...] = tuple(
        (name, int(chosen.sum()), *map(float, np.quantile(1.0 / inverse[chosen], SHARES)))
        for name, chosen in groups.items()
        if chosen.any()
    )
    columns = ("tokens", "queries", *(f"{share:.0%}" for share in SHARES))
    return [scalar, Table(q.LOCAL_DIMENSIONS, columns, body, note=scalar.convention)]


def find_nearest(
    facts: Facts, reader: RowReader, shared: SharedStatistics, rows: IntArray
) -> FloatArray:
    """Distances of the queries, or of all rows if requested."""
    if facts.options.neighbors_of == "sample":
        return np.asarray(shared.find(NearestDistances).distances)
    takes_part, shift = among(facts, rows), find_shift(shared)
    found = reader.sweep(
        lambda block: NearestDistances(block.index, block.rows, takes_part, NEAREST, shift),
        rows,
        "nearest rows",
    )
    return np.concatenate([part.distances for part in found])
