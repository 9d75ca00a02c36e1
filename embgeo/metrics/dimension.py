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

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
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
NEAREST = 2


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
    distances = find_nearest(m, rows)
    asked = rows if facts.options.neighbors_of == "all" else draw_queries(facts, rows)
    return measure_two_nn(facts, distances, asked, len(rows))


def measure_two_nn(facts: Facts, distances: FloatArray, asked: IntArray, rows: int) -> list[Value]:
    """Measure TwoNN by maximum likelihood, with an error from the spread of the ratios."""
    # Distances of very short rows may vanish, or be lost next to long rows.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(distances[:, 1] / distances[:, 0])
    finite = np.isfinite(ratios)
    ratios = ratios[finite]
    if len(ratios) < 3 or not ratios.sum() > TIE * len(ratios):
        reason = "the two nearest rows of every query are equally far"
        return [q.INTRINSIC_DIMENSION.undefined(reason)]
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
    return [scalar, Influence.of(q.INTRINSIC_DIMENSION, parts, places)]


def find_nearest(m: Measurement, rows: IntArray) -> FloatArray:
    """Find the nearest distances of the queries, or of all rows if requested."""
    facts, shared = m.facts, m.shared
    if facts.options.neighbors_of == "sample":
        return np.asarray(shared.find(NearestDistances).distances)
    takes_part, shift = among(facts, rows), find_shift(shared)
    found = m.reader.sweep(
        lambda block: NearestDistances(block.index, block.rows, takes_part, NEAREST, shift),
        rows,
        "nearest rows",
    )
    return np.concatenate([part.distances for part in found])


FAMILY = Family(
    "tokens",
    compute,
    first=(hashes, row_moments),
    second=second,
    rows_read=rows_read,
)
