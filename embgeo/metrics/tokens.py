"""Which rows were left out, which are duplicates, which stand at the ends (section 8)."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import tokens as q
from embgeo.core.values import Cell, Column, Histogram, Quantity, Table, Value
from embgeo.metrics.base import NO_ROWS, Context, Seen
from embgeo.metrics.cosine import mean_direction, nice_range
from embgeo.stats import AngleTo, Moments, Norms, RowHashes
from embgeo.stats.statistic import Statistic

FAMILY = "tokens"
SHOWN = 10


def absent(context: Context) -> str:
    return ""


def first(context: Context) -> list[Statistic]:
    return [Norms(), RowHashes(context.d), Moments(context.d, of="unit")]


def second(context: Context, seen: Seen) -> list[Statistic]:
    direction = mean_direction(seen)
    return [] if direction is None else [AngleTo("mean", direction)]


def rows_read(context: Context, seen: Seen) -> IntArray:
    candidates = equal_hashes(context, seen.find(RowHashes, "RowHashes").values())
    return np.unique(np.concatenate([NO_ROWS, *candidates]))


def compute(context: Context, seen: Seen) -> list[Value]:
    norms = seen.find(Norms, "Norms").values()
    groups = duplicate_groups(context, seen.find(RowHashes, "RowHashes").values())
    low, high = nice_range(float(norms.min()), float(norms.max()), 0.0, np.inf)
    counts, edges = np.histogram(norms, bins=60, range=(low, high))
    values: list[Value] = [
        q.MASKED_ROWS.measured(context.masked),
        q.ZERO_ROWS.measured(context.zero),
        q.NONFINITE_ROWS.measured(context.nonfinite),
        q.DUPLICATE_ROWS.measured(sum(len(group) - 1 for group in groups)),
        Column(q.NORM, norms, "‖w‖"),
        Histogram(q.NORMS, edges, counts.astype(np.float64), "‖w‖", "tokens"),
        extremes(context, q.SMALLEST_NORMS, norms, "‖w‖"),
        extremes(context, q.LARGEST_NORMS, -norms, "‖w‖"),
    ]
    if ("angle to", "mean") in seen.statistics:
        angles = np.degrees(seen.find(AngleTo, ("angle to", "mean")).values())
        values.append(extremes(context, q.NEAREST_TO_MEAN, angles, "angle (°)"))
        values.append(extremes(context, q.FARTHEST_FROM_MEAN, -angles, "angle (°)"))
    if groups:
        values.append(duplicate_table(context, groups))
    return values


def extremes(context: Context, quantity: Quantity, keys: FloatArray, label: str) -> Table:
    """The rows of smallest key; keys of largest-first tables come negated."""
    rows: list[tuple[Cell, ...]] = []
    for at in np.argsort(keys, kind="stable")[:SHOWN]:
        row = int(context.kept[at])
        count = None if context.frequency_kind != "counts" else int(_count(context, row))
        rows.append((row, context.token(row), count, float(abs(keys[at]))))
    return Table(quantity, ("row", "token", "count", label), tuple(rows))


def _count(context: Context, row: int) -> float:
    return 0.0 if context.counts is None else float(context.counts[row])


def duplicate_groups(
    context: Context, hashes: np.ndarray[tuple[int], np.dtype[np.uint64]]
) -> list[IntArray]:
    """Groups of equal rows, largest first: candidates by hash, then compared entry by entry."""
    groups: list[IntArray] = []
    for rows in equal_hashes(context, hashes):
        groups += equal_rows(context, rows)
    return sorted(groups, key=lambda group: (-len(group), int(group[0])))


def equal_hashes(
    context: Context, hashes: np.ndarray[tuple[int], np.dtype[np.uint64]]
) -> list[IntArray]:
    """Kept rows of equal hashes, ascending in each group; no group of one."""
    order = np.argsort(hashes, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(hashes[order]) != 0])
    sizes = np.diff(np.r_[starts, len(order)])
    return [
        np.sort(context.kept[order[start : start + size]])
        for start, size in zip(starts[sizes > 1], sizes[sizes > 1], strict=True)
    ]


def equal_rows(context: Context, rows: IntArray) -> list[IntArray]:
    """Rows of one hash, split by their values; a group of one is dropped."""
    step = max(1, 2**22 // context.d)
    groups: list[IntArray] = []
    while len(rows) > 1:
        pattern = context.take(rows[:1])
        same = np.concatenate(
            [
                (context.take(rows[start : start + step]) == pattern).all(axis=1)
                for start in range(0, len(rows), step)
            ]
        )
        if same.sum() > 1:
            groups.append(rows[same])
        rows = rows[~same]
    return groups


def duplicate_table(context: Context, groups: list[IntArray]) -> Table:
    rows = tuple(
        (
            len(group),
            ", ".join(str(int(row)) for row in group[:SHOWN])
            + (" …" if len(group) > SHOWN else ""),
            " · ".join(context.token(int(row)) for row in group[:SHOWN]),
        )
        for group in groups[:SHOWN]
    )
    note = f"{len(groups):,} groups, the {len(rows)} largest are shown"
    return Table(q.DUPLICATES, ("rows", "row numbers", "tokens"), rows, note=note)
