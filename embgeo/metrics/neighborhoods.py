"""Hubs and intrinsic dimension: the shape of neighborhoods (definitions, section 8)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import tokens as q
from embgeo.core.values import Scalar, Table, Value
from embgeo.metrics.all_neighbors import TIE, all_occurrences, places
from embgeo.metrics.base import Context, Seen, sampled
from embgeo.stats import RowHashes, TwoNearest
from embgeo.stats.statistic import Statistic

FAMILY = "tokens"
#: A sample of rows has these many at least and at most, and not more entries if it can be helped.
SAMPLE_ROWS = (1_000, 2_000)
SAMPLE_ENTRIES = 5_000_000
SAMPLES = 4
#: Queries of the intrinsic dimension, against every row: no more than so many entries, within
#: bounds.
QUERY_ENTRIES = 2**18
QUERIES = (300, 600)
SHOWN = 10


def absent(context: Context) -> str:
    return ""


def first(context: Context) -> list[Statistic]:
    return [RowHashes(context.d)]


def second(context: Context, seen: Seen) -> list[Statistic]:
    rows = distinct_rows(context, seen)
    if len(rows) < 3 or context.options.neighbors_of == "all":
        return []
    queries = drawn_queries(context, rows)
    return [TwoNearest(queries, context.take(queries), among(context, rows))]


def among(context: Context, rows: IntArray) -> npt.NDArray[np.bool_]:
    takes_part = np.zeros(context.n, dtype=bool)
    takes_part[rows] = True
    return takes_part


def rows_read(context: Context, seen: Seen) -> IntArray:
    if context.options.neighbors_of == "all":
        return context.kept
    queries = drawn_queries(context, distinct_rows(context, seen))
    return np.unique(np.concatenate([queries, *hub_samples(context)]))


def drawn_queries(context: Context, rows: IntArray) -> IntArray:
    low, high = QUERIES
    size = max(low, min(high, QUERY_ENTRIES // context.d))
    return sampled(rows, size, context.rng("intrinsic dimension"))


def distinct_rows(context: Context, seen: Seen) -> IntArray:
    """The first row of each value: equal rows are one point of space."""
    hashes = seen.find(RowHashes, "RowHashes").values()
    return np.asarray(context.kept[np.sort(np.unique(hashes, return_index=True)[1])])


def compute(context: Context, seen: Seen) -> list[Value]:
    return [*hub_values(context, seen), intrinsic_dimension(context, seen)]


def intrinsic_dimension(context: Context, seen: Seen) -> Scalar:
    rows = distinct_rows(context, seen)
    if len(rows) < 3:
        return q.INTRINSIC_DIMENSION.undefined(
            f"{len(rows)} distinct rows have no two neighbors each"
        )
    distances = two_nearest(context, seen, rows)
    # Distances of very short rows may vanish or be lost beside long ones.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(distances[:, 1] / distances[:, 0])
    ratios = ratios[np.isfinite(ratios)]
    if len(ratios) < 3 or not ratios.sum() > TIE * len(ratios):
        return q.INTRINSIC_DIMENSION.undefined(
            "the two nearest rows of every query are equally far"
        )
    n = len(ratios)
    value = (n - 1) / float(ratios.sum())
    duplicates = context.m - len(rows)
    exact = n == len(rows)
    return q.INTRINSIC_DIMENSION.measured(
        value,
        standard_error=value / float(np.sqrt(n)),
        sample=f"{'all' if exact else ''} {n:,} queries against {len(rows):,} rows".strip(),
        convention="Euclidean; every point once"
        + (f", {duplicates:,} duplicate rows left out" if duplicates else ""),
    )


def two_nearest(context: Context, seen: Seen, rows: IntArray) -> FloatArray:
    """Distances of the queries, or of all the rows where these are asked for."""
    if context.options.neighbors_of == "sample":
        return seen.find(TwoNearest, "two nearest").distances
    takes_part = among(context, rows)
    found = context.sweep(
        lambda block: TwoNearest(block.index, block.rows, takes_part), rows, "two nearest rows"
    )
    return np.concatenate([part.distances for part in found])


def hub_samples(context: Context) -> list[IntArray]:
    """The rows among which hubs are looked for: several samples, or once all rows if few."""
    k = context.options.neighbors
    if context.m <= k:
        return []
    low, high = SAMPLE_ROWS
    size = max(low, 2 * k, min(high, SAMPLE_ENTRIES // context.d))
    if context.m <= 2 * size:
        return [context.kept]
    rng = context.rng("hubness")
    return [sampled(context.kept, size, rng) for _ in range(SAMPLES)]


def hub_values(context: Context, seen: Seen) -> list[Value]:
    k = context.options.neighbors
    if context.m <= k:
        return [q.HUBNESS.undefined(f"{context.m} rows have no {k} neighbors each")]
    if context.options.neighbors_of == "all":
        occurrences = all_occurrences(context, seen)
    else:
        samples = hub_samples(context)
        if len(samples) > 1:
            return sampled_hubs(context, k, samples)
        occurrences = k_occurrences(context.unit_rows(context.kept), k)
    skew = skewness(occurrences)
    if skew is None:
        return [q.HUBNESS.undefined("every token is a neighbor equally often")]
    scalar = q.HUBNESS.measured(skew, convention=f"k = {k}, cosine")
    return [scalar, hub_table(context, context.kept, occurrences, "all rows")]


def sampled_hubs(context: Context, k: int, samples: list[IntArray]) -> list[Value]:
    """Mean over a few samples, neighbors searched within each; the spread gives the error."""

    def search(number: int) -> FloatArray:
        return k_occurrences(context.unit_rows(samples[number]), k)

    occurrences = list(context.spread(search, SAMPLES))
    found = [skew for skew in map(skewness, occurrences) if skew is not None]
    if len(found) < 2:
        return [q.HUBNESS.undefined("every sampled token is a neighbor equally often")]
    note = f"{SAMPLES} samples of {len(samples[0]):,} of {context.m:,} rows"
    return [
        q.HUBNESS.measured(
            float(np.mean(found)),
            standard_error=float(np.std(found, ddof=1) / np.sqrt(len(found))),
            sample=note,
            convention=f"k = {k}, cosine, neighbors within the sample (hubness grows with it)",
        ),
        hub_table(context, samples[-1], occurrences[-1], f"the last of {note}"),
    ]


def k_occurrences(unit: FloatArray, k: int) -> FloatArray:
    """How often each row is among the k nearest of another, shape (m,).

    Where several rows are equally near and not all of them fit, they share the places left.
    """
    m = len(unit)
    counts = np.zeros(m)
    step = max(1, 2**22 // m)
    for start in range(0, m, step):
        cosines = unit[start : start + step] @ unit.T
        own = np.arange(len(cosines))
        cosines[own, start + own] = -np.inf
        counts += places(cosines, k)
    return counts


def skewness(values: FloatArray) -> float | None:
    """Third standardized moment; None where all values are equal but for rounding."""
    centered = values - values.mean()
    spread = float(np.sqrt(np.mean(centered**2)))
    if spread <= 1e-9 * abs(float(values.mean())):
        return None
    return float(np.mean(centered**3)) / spread**3


def hub_table(context: Context, rows: IntArray, occurrences: FloatArray, note: str) -> Table:
    top = np.argsort(-occurrences, kind="stable")[:SHOWN]
    body = tuple(
        (int(rows[at]), context.token(int(rows[at])), round(float(occurrences[at]), 3))
        for at in top
    )
    return Table(q.HUBS, ("row", "token", "neighbor of"), body, note=note)
