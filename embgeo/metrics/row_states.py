"""Damaged, constant and mean-initialized rows (definitions, section 10).

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((100, 8))
>>> W[3], W[4], W[5] = 0.0, 1e-17 * W[4], 0.5
>>> W[6] = np.delete(W, [3, 4, 6], axis=0).mean(axis=0)
>>> found = embgeo.analyze(W, sections=["tokens"], reference=False)
>>> [(row[0], row[3]) for row in found["tokens.damaged"].rows]
[(3, 'zero'), (4, 'damaged'), (5, 'constant'), (6, 'mean-initialized')]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.quantities import tokens as q
from embgeo.core.special import DAMAGED_STATES, RowState
from embgeo.core.values import Cell, Table, Value
from embgeo.metrics.facts import NO_ROWS, Facts, note_shown
from embgeo.metrics.row_norms import root_mean_square
from embgeo.metrics.row_sides import Side, find_input_side, find_output_side
from embgeo.metrics.shared import SharedStatistics
from embgeo.stats import OutputNorms
from embgeo.stats.reader import RowReader
from embgeo.stats.statistic import Statistic

FAMILY = "tokens"
FIRST = ("norms", "moments")
SHOWN = 100
#: Largest standard deviation of a constant row's entries, as a share of its norm.
CONSTANT = 1e-8
#: Largest distance of a mean-initialized row to the mean row, as a share of the median distance.
NEARER = 0.1
#: Rows read at once.
STEP = 1024
ORDER = {state: rank for rank, state in enumerate(get_args(RowState))}


@dataclass(frozen=True, slots=True)
class RowStates:
    """The states of the rows of the vocabulary."""

    facts: Facts
    input: Side
    output: Side | None
    constant: frozenset[int]
    mean: frozenset[int]

    def state(self, row: int) -> RowState:
        """The state of an input row; duplicates are not searched."""
        found = self.find_side_state(self.input, row)
        if found != "healthy":
            return found
        if row in self.constant:
            return "constant"
        return "mean-initialized" if row in self.mean else "healthy"

    def output_state(self, row: int) -> RowState | None:
        return None if self.output is None else self.find_side_state(self.output, row)

    def find_side_state(self, side: Side, row: int) -> RowState:
        """The state by the norm on one side; a zero row of a padding token is intended."""
        found = side.state(self.find(row))
        return "padding" if found == "zero" and self.facts.is_padding(row) else found

    def is_damaged(self, row: int) -> bool:
        """Whether a row is damaged on either side."""
        return self.state(row) in DAMAGED_STATES or self.output_state(row) in DAMAGED_STATES

    def find(self, row: int) -> int:
        """Position of a row among those of the vocabulary."""
        return int(np.searchsorted(self.input.rows, row))

    @property
    def one_sided(self) -> IntArray:
        if self.output is None:
            return NO_ROWS
        differs = self.input.damaged != self.output.damaged
        return np.asarray(self.input.rows[differs])

    @property
    def notable(self) -> IntArray:
        """Rows that are damaged on either side, constant or mean-initialized."""
        damaged = self.input.damaged
        if self.output is not None:
            damaged = damaged | self.output.damaged
        wrong = {row for row in self.input.rows[damaged].tolist() if self.is_damaged(row)}
        return np.array(sorted(wrong | self.constant | self.mean), dtype=np.int64)


def request_states(facts: Facts, shared: SharedStatistics) -> list[Statistic]:
    """The statistics of the second pass that `find_states` reads."""
    output = [OutputNorms()] if facts.output_width else []
    return [*shared.request_mean_distances(), *output]


second = request_states


def rows_read(facts: Facts) -> IntArray:
    return facts.flat if facts.d > 1 else NO_ROWS


def compute(facts: Facts, reader: RowReader, shared: SharedStatistics) -> list[Value]:
    found = find_states(facts, reader, shared)
    values: list[Value] = [
        q.DAMAGED_ROWS.measured(int(found.input.damaged.sum())),
        q.CONSTANT_ROWS.measured(len(found.constant)),
        q.MEAN_ROWS.measured(len(found.mean)),
    ]
    if found.output is not None:
        values.append(q.OUTPUT_DAMAGED_ROWS.measured(int(found.output.damaged.sum())))
        values.append(q.ONE_SIDED_ROWS.measured(len(found.one_sided)))
    return [*values, tabulate(facts, found)] if len(found.notable) else values


def find_states(facts: Facts, reader: RowReader, shared: SharedStatistics) -> RowStates:
    """The states of the rows of the vocabulary, after both passes."""
    return RowStates(
        facts,
        find_input_side(facts, shared),
        find_output_side(facts, shared),
        frozenset(find_constant_rows(facts, reader).tolist()),
        frozenset(find_mean_rows(facts, shared).tolist()),
    )


def find_constant_rows(facts: Facts, reader: RowReader) -> IntArray:
    """Kept rows of equal entries, if they have more than one."""
    rows = np.intersect1d(rows_read(facts), facts.kept)
    found = [NO_ROWS]
    for start in range(0, len(rows), STEP):
        index = rows[start : start + STEP]
        block = reader.take(index)
        spread = np.std(block, axis=1)
        found.append(index[spread < CONSTANT * np.linalg.norm(block, axis=1)])
    return np.concatenate(found)


def find_mean_rows(facts: Facts, shared: SharedStatistics) -> IntArray:
    """Kept rows that equal the mean row up to the rounding of the stored type.

    In a narrow cone all rows may be that near: only rows far nearer than the others count.
    """
    distances = shared.mean_distances
    rounding = facts.rounding * root_mean_square(shared.norms)
    near = (distances <= rounding) & (distances < NEARER * np.median(distances))
    return np.asarray(facts.kept[near])


def tabulate(facts: Facts, found: RowStates) -> Table:
    """Rows that are not healthy: special tokens first, then the gravest state."""
    special = {one.row for one in facts.special}
    rows = sorted(
        found.notable.tolist(), key=lambda row: (row not in special, ORDER[found.state(row)], row)
    )
    columns: tuple[str, ...] = ("row", "token", "count", "state", "‖w‖")
    if found.output is not None:
        columns = (*columns, "output", "‖u‖")
    note = note_shown(len(rows), "rows", SHOWN)
    cells = tuple(list_cells(facts, found, row) for row in rows[:SHOWN])
    return Table(q.DAMAGED, columns, cells, note=note)


def list_cells(facts: Facts, found: RowStates, row: int) -> tuple[Cell, ...]:
    at = found.find(row)
    cells = (*facts.identify(row), found.state(row), found.input.finite_norm(at))
    if found.output is None:
        return cells
    return (*cells, found.output_state(row), found.output.finite_norm(at))
