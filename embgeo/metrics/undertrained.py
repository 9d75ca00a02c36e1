"""Indicators of under-trained tokens after Land & Bartolo 2024 (definitions, section 8).

The removed direction represents a constant part of all rows. It is taken from the uncentered
matrix, because centering would already remove that part.

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((100, 8))
>>> W[:4] = W[0] + 0.01 * W[:4]
>>> names = [f"[unused{i}]" for i in range(3)] + [f"word{i}" for i in range(97)]
>>> found = embgeo.analyze(W, tokens=names, sections=["tokens"], reference=False)
>>> found["tokens.undertrained"].rows[0][1]  # the fourth of the rows that are nearly equal
'word0'
"""

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import tokens as q
from embgeo.core.values import Column, Table, Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import norms, row_moments
from embgeo.metrics.token_kinds import find_unused_rows
from embgeo.stats.per_row import AngleAfterRemoval
from embgeo.stats.reader import RowReader
from embgeo.stats.statistic import Statistic

SHOWN = 30
COLUMNS = ("row", "token", "count")
# The two indicators of Land & Bartolo (2024, §3), as labels of columns and axes.
INPUT_NORM = "norm of the input row"
DISTANCE = "cosine distance to unused tokens"


def second(m: Measurement) -> list[Statistic]:
    rows = rows_read(m)
    if not len(rows):
        return []
    removed = m.shared.eigen.vectors[:, 0]
    direction = find_unused_direction(m.facts, m.reader, rows, removed)
    return [] if direction is None else [AngleAfterRemoval("undertrained", direction, removed)]


def rows_read(m: Measurement) -> IntArray:
    if m.facts.output_width or m.facts.d < 2:
        return NO_ROWS
    return find_unused_rows(m.facts)[0]


def find_unused_direction(
    facts: Facts, reader: RowReader, rows: IntArray, removed: FloatArray
) -> FloatArray | None:
    """Find the mean of the unused rows without the removed direction, as a unit vector."""
    total = np.zeros(facts.d)
    for block in reader.blocks(rows):
        total += block.rows.sum(axis=0)
    rest = total - removed * (removed @ total)
    length = float(np.linalg.norm(rest))
    return rest / length if length > 1e-12 * float(np.linalg.norm(total)) else None


def compute(m: Measurement) -> list[Value]:
    facts, shared = m.facts, m.shared
    known, said = find_unused_rows(facts)
    if facts.output_width:
        note = "untied: norm of the input row, smallest first"
        if len(known):
            note += f"; {len(known):,} tokens known to be unused ({said}) are not listed"
        return tabulate(facts, shared.norms, INPUT_NORM, note, known)
    found = shared.get(AngleAfterRemoval, "undertrained")
    if found is None:
        reason = (
            "the unused rows have no common direction"
            if len(known)
            else "no token is known to be unused (by spelling such as [unused1], or by a count of "
            "0)"
        )
        return [Table(q.UNDERTRAINED, (*COLUMNS, DISTANCE), (), note=f"not defined: {reason}")]
    angles = found.values()
    note = (
        f"tied: cosine distance to the mean of {len(known):,} unused tokens ({said}), which are "
        "not listed; smallest first"
    )
    # 1 − cos without cancellation at small angles.
    return tabulate(facts, 2.0 * np.sin(angles / 2.0) ** 2, DISTANCE, note, known)


def tabulate(
    facts: Facts, indicator: FloatArray, label: str, note: str, known: IntArray
) -> list[Value]:
    """Return the table without tokens known to be unused, and the column of all rows."""
    order = np.argsort(indicator, kind="stable")
    at = order[~np.isin(facts.kept[order], known)][:SHOWN]
    rows = facts.list_rows(at, indicator[at].tolist())
    table = Table(q.UNDERTRAINED, (*COLUMNS, label), rows, note=note)
    return [table, Column(q.UNDERTRAINED_INDICATOR, facts.take_listed(indicator), label)]


FAMILY = Family("tokens", compute, first=(norms, row_moments), second=second, rows_read=rows_read)
