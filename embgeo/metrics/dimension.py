"""Intrinsic dimension of the rows (definitions, section 8).

Examples
--------
>>> import embgeo
>>> plane = np.random.default_rng(0).standard_normal((500, 2))
>>> W = plane @ np.random.default_rng(1).standard_normal((2, 16))
>>> found = embgeo.analyze(W, sections=["tokens"], reference=False)
>>> dimension = found["tokens.intrinsic_dimension"]
>>> f"{dimension.value:.1f} ± {dimension.population_error:.1f}"
'2.0 ± 0.2'
"""

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.quantities import tokens as q
from embgeo.core.values import Scalar, Value
from embgeo.metrics.by_half import add_errors
from embgeo.metrics.facts import Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import SharedStatistics, hashes, row_moments
from embgeo.numerics.halves import HALVES
from embgeo.numerics.hubness import TIE
from embgeo.numerics.sampling import sample_rows
from embgeo.numerics.scores import error_of, mean_influence
from embgeo.stats import NearestDistances
from embgeo.stats.statistic import Statistic

#: Number of queries of the intrinsic dimension: this many entries at most, within bounds.
QUERY_ENTRIES = 2**18
QUERIES = (300, 600)
#: Nearest rows of a query: two, and more where a half of the rows has to hold two of them.
NEAREST, OF_HALVES = 2, 30


def second(m: Measurement) -> list[Statistic]:
    facts, shared = m.facts, m.shared
    rows = find_distinct_rows(facts, shared)
    if len(rows) < 3 or facts.options.neighbors_of == "all":
        return []
    queries = draw_queries(facts, rows)
    return [
        NearestDistances(
            queries, m.reader.take(queries), among(facts, rows), count_near(m), find_shift(shared)
        )
    ]


def count_near(m: Measurement) -> int:
    return NEAREST if m.facts.kept_groups is None else OF_HALVES


def find_shift(shared: SharedStatistics) -> FloatArray | None:
    """Find the mean row, if it is so long that squared distances would cancel."""
    return shared.moments.mean if shared.mean_is_long else None


def among(facts: Facts, rows: IntArray) -> Mask:
    takes_part = np.zeros(facts.n, dtype=bool)
    takes_part[rows] = True
    return takes_part


def rows_read(m: Measurement) -> IntArray:
    if m.facts.options.neighbors_of == "all":
        return m.facts.kept
    return draw_queries(m.facts, find_distinct_rows(m.facts, m.shared))


def draw_queries(facts: Facts, rows: IntArray) -> IntArray:
    size = int(np.clip(QUERY_ENTRIES // facts.d, *QUERIES))
    return sample_rows(rows, size, facts.generator("intrinsic dimension"))


def find_distinct_rows(facts: Facts, shared: SharedStatistics) -> IntArray:
    """Find the first of each group of equal rows, which are one point."""
    return np.asarray(facts.kept[np.sort(np.unique(shared.hashes, return_index=True)[1])])


def compute(m: Measurement) -> list[Value]:
    facts = m.facts
    rows = find_distinct_rows(facts, m.shared)
    if len(rows) < 3:
        reason = f"{len(rows)} distinct rows have no two neighbors each"
        return [q.INTRINSIC_DIMENSION.undefined(reason)]
    nearest, distances = find_nearest(m, rows)
    asked = rows if facts.options.neighbors_of == "all" else draw_queries(facts, rows)
    value, groups = measure_two_nn(facts, distances, len(rows)), facts.groups
    return add_errors(
        m,
        [value],
        [q.INTRINSIC_DIMENSION],
        lambda: (
            {}
            if groups is None
            else {q.INTRINSIC_DIMENSION: measure_halves(groups, asked, nearest, distances)}
        ),
    )


def measure_two_nn(facts: Facts, distances: FloatArray, rows: int) -> Scalar:
    """Measure TwoNN by maximum likelihood, with the error of the queries that were drawn."""
    # Distances of very short rows may vanish, or be lost next to long rows.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(distances[:, 1] / distances[:, 0])
    ratios = ratios[np.isfinite(ratios)]
    # Rows with a density are never tied. Most rows of a grid are, and the estimate means nothing.
    tied = int((ratios <= TIE).sum())
    if len(ratios) < 3 or 2 * tied > len(ratios):
        every = "every query" if tied == len(ratios) else "most queries"
        reason = f"the two nearest rows of {every} are equally far"
        return q.INTRINSIC_DIMENSION.undefined(reason)
    n = len(ratios)
    value = (n - 1) / float(ratios.sum())
    duplicates = facts.m - rows
    exact = n == rows
    drawn = value * error_of(mean_influence(ratios)) / ratios.mean() * np.sqrt(1.0 - n / rows)
    return q.INTRINSIC_DIMENSION.measured(
        value,
        standard_error=None if exact else drawn,
        error_kind="monte_carlo",
        known="exact" if exact else "sampled",
        sample=f"{'all' if exact else ''} {n:,} queries against {rows:,} rows".strip(),
        convention="Euclidean; every point once"
        + (f", {duplicates:,} duplicate rows left out" if duplicates else ""),
    )


def measure_halves(
    groups: IntArray, asked: IntArray, nearest: IntArray, distances: FloatArray
) -> FloatArray:
    """Measure the queries of each half, each with the nearest two rows of its half.

    `groups`: shape (N,). `asked`, `nearest`: row numbers; shapes (q,) and (q, k), −1 for none.
    """
    at, known = np.arange(len(asked)), nearest >= 0

    def measure(half: Mask) -> float:
        inside = half[groups[nearest]] & known
        first = inside.argmax(axis=1)
        inside[at, first] = False
        second = inside.argmax(axis=1)
        used = half[groups[asked]] & inside.any(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.log(distances[at, second] / distances[at, first])[used]
        ratios = ratios[np.isfinite(ratios)]
        return (len(ratios) - 1) / float(ratios.sum()) if ratios.any() else np.nan

    return np.array([measure(half) for half in HALVES])


def find_nearest(m: Measurement, rows: IntArray) -> tuple[IntArray, FloatArray]:
    """Find the nearest rows of the queries, or of all rows if requested, and the distances."""
    facts, shared = m.facts, m.shared
    if facts.options.neighbors_of != "all":
        one = shared.find(NearestDistances)
        return np.asarray(one.neighbors), np.asarray(one.distances)
    takes_part, shift, near = among(facts, rows), find_shift(shared), count_near(m)
    found = list(
        m.reader.sweep(
            lambda block: NearestDistances(block.index, block.rows, takes_part, near, shift),
            rows,
            "nearest rows",
        )
    )
    nearest = np.concatenate([part.neighbors for part in found])
    return nearest, np.concatenate([part.distances for part in found])


FAMILY = Family(
    "tokens",
    compute,
    first=(hashes, row_moments),
    second=second,
    rows_read=rows_read,
)
