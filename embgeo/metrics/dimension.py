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

import math
from itertools import combinations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.numbers import Z_95
from embgeo.core.quantities import tokens as q
from embgeo.core.values import Influence, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import SharedStatistics, hashes, row_moments
from embgeo.numerics.hubness import TIE
from embgeo.numerics.sampling import sample_rows
from embgeo.numerics.scores import error_of, mean_influence
from embgeo.stats import NearestDistances
from embgeo.stats.statistic import Statistic

#: Number of queries of the intrinsic dimension: this many entries at most, within bounds.
QUERY_ENTRIES = 2**18
QUERIES = (300, 600)
#: The third says how the ratios change with a row.
NEAREST = 3
#: The error is called conservative if more of its square may be bound by the number of rows, but is
#: not certain to be.
UNSURE = 0.1


def second(m: Measurement) -> list[Statistic]:
    facts, shared = m.facts, m.shared
    rows = find_distinct_rows(facts, shared)
    if len(rows) < 3 or facts.options.neighbors_of == "all":
        return []
    queries = draw_queries(facts, rows)
    return [
        NearestDistances(
            queries, m.reader.take(queries), among(facts, rows), NEAREST, find_shift(shared)
        )
    ]


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
    return measure_two_nn(facts, nearest, distances, asked, len(rows))


def measure_two_nn(
    facts: Facts, nearest: IntArray, distances: FloatArray, asked: IntArray, rows: int
) -> list[Value]:
    """Measure TwoNN by maximum likelihood, with an error from the spread of the ratios."""
    # Distances of very short rows may vanish, or be lost next to long rows.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios, further = np.log(distances[:, 1:] / distances[:, :-1]).T
    finite = np.isfinite(ratios)
    ratios, further = ratios[finite], further[finite]
    # Rows with a density are never tied. Most rows of a grid are, and the estimate means nothing.
    tied = int((ratios <= TIE).sum())
    if len(ratios) < 3 or 2 * tied > len(ratios):
        every = "every query" if tied == len(ratios) else "most queries"
        reason = f"the two nearest rows of {every} are equally far"
        return [q.INTRINSIC_DIMENSION.undefined(reason)]
    n = len(ratios)
    value = (n - 1) / float(ratios.sum())
    duplicates = facts.m - rows
    exact = n == rows
    slope = -value / ratios.mean()
    parts = slope * mean_influence(ratios)
    drawn = error_of(parts) * float(np.sqrt(1.0 - n / rows))
    shared = np.column_stack([asked, nearest])[finite]
    change, sure = find_bound(2.0 * further - ratios, shared[:, :2])
    tangent = find_error(parts, shared, (slope * sure) ** 2 / rows)
    unsure = slope**2 * (change**2 - sure**2) / rows
    error = find_error_of_inverse(value, tangent)
    scalar = q.INTRINSIC_DIMENSION.measured(
        value,
        standard_error=error if exact else drawn,
        error_kind="population" if exact else "monte_carlo",
        population_error=error,
        sample=f"{'all' if exact else ''} {n:,} queries against {rows:,} rows".strip(),
        convention="Euclidean; every point once"
        + (f", {duplicates:,} duplicate rows left out" if duplicates else ""),
        caveats=("conservative_error",) if unsure > UNSURE * tangent**2 else (),
    )
    places = np.searchsorted(facts.kept, asked[finite])
    return [scalar, Influence.of(q.INTRINSIC_DIMENSION, parts, places)]


def find_error(parts: FloatArray, shared: IntArray, bound: float) -> float:
    """Return the error from the influences of queries of which some share a row.

    Parameters
    ----------
    parts : float64 array, shape (n,)
    shared : int array, shape (n, 3)
        The query and its two nearest rows.
    bound : float
        What the number of rows takes from the variance. It is taken from the sum over queries that
        share any of the three rows, as a ratio depends on all of them.
    """
    variance = sum_dependent(parts, shared[:, :2])
    if bound:
        wide = max(variance, sum_shared(parts, shared))
        variance = min(variance, max(float(parts @ parts), wide - bound))
    return float(np.sqrt(variance))


def sum_dependent(parts: FloatArray, shared: IntArray) -> float:
    """Return the variance from the influences of queries of which some share a row.

    Queries are dependent if one is nearest to the other, or if the same row is nearest to both: the
    variance is the sum of products of their influences (two-way clusters, Cameron, Gelbach & Miller
    2011), at least that over two queries that are nearest to each other.

    Examples
    --------
    >>> queries, nearest = np.arange(3), np.array([1, 0, 1])
    >>> sum_dependent(np.ones(3), np.stack([queries, nearest], 1))  # they join all three
    9.0
    """
    _, both = np.unique(np.sort(shared), axis=0, return_inverse=True)
    return max(square_sums(both.ravel(), parts), sum_shared(parts, shared))


def sum_shared(parts: FloatArray, shared: IntArray) -> float:
    """Return the sum of products over queries that share a row.

    Queries that share s rows are counted for each of them, less for each two, and so on:
    s − s(s − 1)/2 + … = 1.
    """
    shared, total = np.sort(shared), 0.0
    width = shared.shape[1]
    for size in range(1, width + 1):
        subsets = [shared[:, columns] for columns in combinations(range(width), size)]
        _, same = np.unique(np.concatenate(subsets), axis=0, return_inverse=True)
        total -= (-1) ** size * square_sums(same.ravel(), np.tile(parts, len(subsets)))
    return total


def find_bound(changes: FloatArray, shared: IntArray) -> tuple[float, float]:
    """Return how the sum of ratios changes with the number of rows, beyond what each row has.

    Without its nearest row the ratio of a query, ln r₂/r₁, is ln r₃/r₂, and without its second row
    ln r₃/r₁: together 2·ln r₃/r₂ − ln r₂/r₁ more, which is 0 on average where rows have a density.
    Where they gather around fixed places, sums over dependent queries count that the number of rows
    varies at each place, but the number of all is fixed: of N rows the variance of the mean is
    smaller by the squared change over N (Penrose & Yukich 2001). Returned is the size of the
    change, and the end of its 95% interval that is nearer to 0, or 0 if that holds 0.

    Parameters
    ----------
    changes : float64 array, shape (n,)
        2·ln r₃/r₂ − ln r₂/r₁ of each query.
    shared : int array, shape (n, 2)
        The query and its nearest row.
    """
    if not np.isfinite(changes).all():  # three rows have no third neighbor
        return 0.0, 0.0
    error = math.sqrt(sum_dependent(mean_influence(changes), shared))
    change = abs(float(changes.mean()))
    return change, max(0.0, change - Z_95 * error)


def square_sums(group: IntArray, parts: FloatArray) -> float:
    """Return the sum of the squared sums over groups."""
    return float(np.square(np.bincount(group, parts)).sum())


def find_error_of_inverse(value: float, error: float) -> float | None:
    """Return half of the interval of 1/x over 1.96, from the tangent's error of 1/x.

    The interval of x is symmetric: x is a mean. None if it holds 0.
    """
    reach = Z_95 * error / value
    return error / (1.0 - reach**2) if reach < 1.0 else None


def find_nearest(m: Measurement, rows: IntArray) -> tuple[IntArray, FloatArray]:
    """Find the nearest two rows of the queries, or of all rows if requested, and the distances."""
    facts, shared = m.facts, m.shared
    if facts.options.neighbors_of == "sample":
        one = shared.find(NearestDistances)
        return np.asarray(one.neighbors)[:, :2], np.asarray(one.distances)
    takes_part, shift = among(facts, rows), find_shift(shared)
    found = list(
        m.reader.sweep(
            lambda block: NearestDistances(block.index, block.rows, takes_part, NEAREST, shift),
            rows,
            "nearest rows",
        )
    )
    nearest = np.concatenate([part.neighbors[:, :2] for part in found])
    return nearest, np.concatenate([part.distances for part in found])


FAMILY = Family(
    "tokens",
    compute,
    first=(hashes, row_moments),
    second=second,
    rows_read=rows_read,
)
