"""Rows that are left out, duplicate or extreme (definitions, section 8).

Examples
--------
>>> import embgeo
>>> W = np.array([[3.0, 4.0], [0.0, 0.0], [3.0, 4.0], [np.nan, 1.0], [1.0, 0.0]])
>>> found = embgeo.analyze(W, sections=["tokens"], reference=False)
>>> [int(found[f"tokens.{name}_rows"].value) for name in ("zero", "nonfinite", "duplicate")]
[1, 1, 1]
>>> found["tokens.norm"].values.tolist()
[5.0, 5.0, 1.0]
"""

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import tokens as q
from embgeo.core.values import Column, Histogram, Quantity, Scalar, Table, Value
from embgeo.metrics.cosine import round_range
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import SharedStatistics, hashes, norms, unit_moments
from embgeo.numerics.spectra import average_cosine
from embgeo.stats import Moments
from embgeo.stats.reader import RowReader
from embgeo.stats.statistic import Statistic

SHOWN = 10


def second(m: Measurement) -> list[Statistic]:
    return m.shared.request_mean_angles()


def rows_read(m: Measurement) -> IntArray:
    return np.unique(np.concatenate([NO_ROWS, *group_equal_hashes(m.facts, m.shared)]))


def compute(m: Measurement) -> list[Value]:
    facts, reader, shared = m.facts, m.reader, m.shared
    lengths = shared.norms
    candidates = group_equal_hashes(facts, shared)
    groups = [group for rows in candidates for group in split_equal_rows(facts, reader, rows)]
    groups.sort(key=lambda group: (-len(group), int(group[0])))
    low, high = round_range(float(lengths.min()), float(lengths.max()), 0.0, np.inf)
    counts, edges = np.histogram(lengths, bins=60, range=(low, high))
    values: list[Value] = [
        q.ZERO_ROWS.measured(len(facts.zero)),
        q.NONFINITE_ROWS.measured(len(facts.nonfinite)),
        q.DUPLICATE_ROWS.measured(sum(len(group) - 1 for group in groups)),
        measure_distinct(facts, reader, shared.unit_moments, groups),
        Column(q.NORM, facts.take_listed(lengths), "‖w‖"),
        Histogram(q.NORMS, edges, counts.astype(np.float64), "‖w‖", "tokens"),
        tabulate_extremes(facts, q.SMALLEST_NORMS, lengths, "‖w‖"),
        tabulate_extremes(facts, q.LARGEST_NORMS, -lengths, "‖w‖"),
    ]
    if shared.mean_angles is not None:
        angles = np.degrees(shared.mean_angles)
        values.append(tabulate_extremes(facts, q.NEAREST_TO_MEAN, angles, "angle (°)"))
    if groups:
        values.append(make_duplicate_table(facts, groups))
    return values


def tabulate_extremes(facts: Facts, quantity: Quantity, keys: FloatArray, label: str) -> Table:
    """Return the rows of smallest key; negated keys give the largest first."""
    at = np.argsort(keys, kind="stable")[:SHOWN]
    rows = facts.list_rows(at, np.abs(keys[at]).tolist())
    return Table(quantity, ("row", "token", "count", label), rows)


def group_equal_hashes(facts: Facts, shared: SharedStatistics) -> list[IntArray]:
    """Return groups of two or more kept rows of equal hashes, ascending in each group."""
    order = np.argsort(shared.hashes, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(shared.hashes[order]) != 0])
    sizes = np.diff(np.r_[starts, len(order)])
    return [
        np.sort(facts.kept[order[start : start + size]])
        for start, size in zip(starts[sizes > 1], sizes[sizes > 1], strict=True)
    ]


def split_equal_rows(facts: Facts, reader: RowReader, rows: IntArray) -> list[IntArray]:
    """Return groups of two or more equal rows among rows of one hash."""
    step = max(1, 2**22 // facts.d)
    groups: list[IntArray] = []
    while len(rows) > 1:
        pattern = reader.take(rows[:1])
        same = np.concatenate(
            [
                (reader.take(rows[start : start + step]) == pattern).all(axis=1)
                for start in range(0, len(rows), step)
            ]
        )
        if same.sum() > 1:
            groups.append(rows[same])
        rows = rows[~same]
    return groups


def measure_distinct(
    facts: Facts, reader: RowReader, unit: Moments, groups: list[IntArray]
) -> Scalar:
    """Measure the mean cosine with one row of each group of equal rows."""
    if not groups:
        return q.MEAN_COSINE_DISTINCT.undefined("no two rows are equal")
    extra = np.array([len(group) - 1 for group in groups])
    m = facts.m - int(extra.sum())
    if m < 2:
        return q.MEAN_COSINE_DISTINCT.undefined("all rows are equal")
    total = unit.n * unit.mean
    step = max(1, 2**22 // facts.d)
    first = np.array([group[0] for group in groups])
    for start in range(0, len(first), step):
        some = slice(start, start + step)
        total = total - extra[some] @ reader.take_unit(first[some])
    return q.MEAN_COSINE_DISTINCT.measured(average_cosine(total, m))


def make_duplicate_table(facts: Facts, groups: list[IntArray]) -> Table:
    rows = tuple(
        (
            len(group),
            ", ".join(str(int(row)) for row in group[:SHOWN])
            + (" …" if len(group) > SHOWN else ""),
            facts.list_examples(group[:SHOWN], SHOWN),
        )
        for group in groups[:SHOWN]
    )
    note = f"{len(groups):,} groups, the {len(rows)} largest are shown"
    return Table(q.DUPLICATES, ("rows", "row numbers", "tokens"), rows, note=note)


FAMILY = Family(
    "tokens",
    compute,
    first=(norms, hashes, unit_moments),
    second=second,
    rows_read=rows_read,
)
