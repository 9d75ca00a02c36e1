"""Damaged, constant and mean-initialized rows, and norms of rows (definitions, section 10).

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((100, 8))
>>> W[3], W[4], W[5] = 0.0, 1e-17 * W[4], 0.5
>>> W[6] = np.delete(W, [3, 4, 6], axis=0).mean(axis=0)
>>> found = embgeo.analyze(W, sections=["tokens"], reference=False)
>>> [(row[0], row[3]) for row in found["tokens.damaged"].rows]
[(3, 'zero'), (4, 'damaged'), (5, 'constant'), (6, 'mean-initialized')]
>>> [found[f"tokens.norm_{name}"].text for name in ("min", "median", "max")][0]
'0'
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import get_args

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.quantities import tokens as q
from embgeo.core.special import DAMAGED_STATES, RowState
from embgeo.core.values import Cell, Scalar, Table, Value
from embgeo.metrics.by_half import ByHalf, add_errors
from embgeo.metrics.facts import NO_ROWS, Facts, note_shown
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import SharedStatistics, norms, row_moments, row_sums
from embgeo.numerics.halves import HALVES
from embgeo.numerics.row_norms import find_norm_gap, find_norm_limit, measure_log_norms
from embgeo.numerics.sampling import generator, sample_rows
from embgeo.stats import OutputNorms
from embgeo.stats.statistic import Statistic

SHOWN = 100
#: Largest standard deviation of a constant row's entries, as a share of its norm.
CONSTANT = 1e-8
#: Largest distance of a mean-initialized row to the mean row, as a share of the median distance
#: where it is within rounding, and else, together with the share of the mean row's length.
NEARER = 0.1
NEAR, OF_ITS_LENGTH = 1e-3, 1e-2
#: Rows of fewer dimensions come as near by chance.
LEAST_COLUMNS = 3
#: Rows read at once.
STEP = 1024
#: Rows of which pairs of entries tell how many rows are constant by chance.
COMPARED = 300
ORDER = {state: rank for rank, state in enumerate(get_args(RowState))}
WITH_ERRORS = (q.NORM_MEDIAN, q.NORM_RMS)
NORMS = (q.NORM_MEDIAN, q.NORM_RMS, q.NORM_VARIATION)
FEW_ROWS = "fewer than 20 rows: 5% of them is less than one row"


@dataclass(frozen=True, slots=True)
class Side:
    """The rows of the vocabulary in one matrix, ascending, with their norms."""

    rows: IntArray
    norms: FloatArray
    damaged: Mask

    @property
    def healthy_norms(self) -> FloatArray:
        return self.norms[~self.damaged]

    @property
    def known_norms(self) -> FloatArray:
        """Finite norms."""
        return self.norms[np.isfinite(self.norms)]

    @property
    def decades(self) -> float | None:
        """Decades between damaged and other norms, or the widest gap if no rows are damaged.

        Zero norms, infinitely many decades away, do not count. None without a gap.
        """
        small = self.norms[self.damaged & np.isfinite(self.norms) & (self.norms > 0)]
        if len(small) and len(self.healthy_norms):
            return float(np.log10(self.healthy_norms.min()) - np.log10(small.max()))
        gap = find_norm_gap(self.healthy_norms)
        return None if gap is None else gap.decades

    def state(self, at: int) -> RowState:
        """Return the state of the row at a position, by its norm."""
        if not self.damaged[at]:
            return "healthy"
        if not np.isfinite(self.norms[at]):
            return "non-finite"
        return "damaged" if self.norms[at] else "zero"

    def finite_norm(self, at: int) -> float | None:
        """Return the norm at a position; None if it is not finite."""
        norm = float(self.norms[at])
        return norm if np.isfinite(norm) else None

    def rank(self, at: int) -> float | None:
        """Get percentile of the norm at a position among finite norms; None if it is not finite."""
        norm = self.finite_norm(at)
        return None if norm is None else 100.0 * float((self.known_norms <= norm).mean())


def find_input_side(facts: Facts, shared: SharedStatistics) -> Side:
    """Find the rows of the embedding itself."""
    rows = facts.vocabulary
    norms, damaged = np.full(len(rows), np.nan), np.ones(len(rows), dtype=bool)
    kept = np.searchsorted(rows, facts.kept)
    norms[kept], damaged[kept] = shared.norms, False
    norms[np.searchsorted(rows, facts.zero)] = 0.0
    norms[np.searchsorted(rows, facts.small)] = facts.small_norms
    return Side(rows, norms, damaged)


def find_output_side(facts: Facts, shared: SharedStatistics) -> Side | None:
    """Find the rows of the output matrix; None if the model is tied or has none."""
    found = shared.get(OutputNorms)
    if found is None:
        return None
    rows = facts.vocabulary
    norms = np.asarray(found.values())[np.searchsorted(found.index(), rows)]
    usable = np.isfinite(norms) & (norms > 0)
    limit = find_norm_limit(norms, facts.output_width or facts.d, facts.options.min_norm)
    return Side(rows, norms, ~usable | (norms < limit))


def find_dead_output_rows(facts: Facts, shared: SharedStatistics) -> IntArray:
    """Find kept rows whose output row is missing, or damaged and neither zero nor non-finite."""
    output = find_output_side(facts, shared)
    if output is None:
        return NO_ROWS
    small = output.damaged & np.isfinite(output.norms) & (output.norms > 0)
    return np.intersect1d(np.union1d(output.rows[small], facts.without_output), facts.kept)


@dataclass(frozen=True, slots=True)
class RowStates:
    """The states of the rows of the vocabulary."""

    facts: Facts
    input: Side
    output: Side | None
    constant: frozenset[int]
    mean: frozenset[int]

    def state(self, row: int) -> RowState:
        """Return the state of an input row; duplicates are not searched."""
        found = self.find_side_state(self.input, row)
        if found != "healthy":
            return found
        if row in self.constant:
            return "constant"
        return "mean-initialized" if row in self.mean else "healthy"

    def output_state(self, row: int) -> RowState | None:
        return None if self.output is None else self.find_side_state(self.output, row)

    def find_side_state(self, side: Side, row: int) -> RowState:
        """Find the state by the norm on one side; a zero row of a padding token is intended."""
        found = side.state(self.find(row))
        return "padding" if found == "zero" and self.facts.is_padding(row) else found

    def is_damaged(self, row: int) -> bool:
        """Tell whether a row is damaged on either side."""
        return self.state(row) in DAMAGED_STATES or self.output_state(row) in DAMAGED_STATES

    def find(self, row: int) -> int:
        """Find the position of a row among those of the vocabulary."""
        return int(np.searchsorted(self.input.rows, row))

    @property
    def notable(self) -> IntArray:
        """Rows that are damaged on either side, constant or mean-initialized."""
        damaged = self.input.damaged
        if self.output is not None:
            damaged = damaged | self.output.damaged
        wrong = {row for row in self.input.rows[damaged].tolist() if self.is_damaged(row)}
        return np.array(sorted(wrong | self.constant | self.mean), dtype=np.int64)


def request_states(m: Measurement) -> list[Statistic]:
    """Return the statistics of the second pass that `find_states` reads."""
    output: list[Statistic] = [OutputNorms()] if m.facts.output_width else []
    return [*m.shared.request_mean_distances(), *output]


def rows_read(m: Measurement) -> IntArray:
    if m.facts.d == 1 or not len(m.facts.flat):
        return NO_ROWS
    return np.union1d(m.facts.flat, draw_compared(m))


def draw_compared(m: Measurement) -> IntArray:
    """Draw rows with a fixed seed, so that no state depends on that of the user."""
    return sample_rows(m.facts.kept, COMPARED, generator(0, "constant rows"))


def compute(m: Measurement) -> list[Value]:
    facts, found = m.facts, find_states(m)
    values: list[Value] = [
        q.DAMAGED_ROWS.measured(int(found.input.damaged.sum())),
        q.CONSTANT_ROWS.measured(len(found.constant)),
        q.MEAN_ROWS.measured(len(found.mean)),
    ]
    if found.output is not None:
        values.append(q.OUTPUT_DAMAGED_ROWS.measured(int(found.output.damaged.sum())))
    if len(found.notable):
        values.append(tabulate(facts, found))
    return [
        *values,
        *add_errors(m, describe_norms(found.input), WITH_ERRORS, lambda: measure_halves(m)),
        *measure_long_rows(m.shared.norms, facts.d),
    ]


def find_states(m: Measurement) -> RowStates:
    """Find the states of the rows of the vocabulary, after both passes."""
    return RowStates(
        m.facts,
        find_input_side(m.facts, m.shared),
        find_output_side(m.facts, m.shared),
        frozenset(find_constant_rows(m).tolist()),
        frozenset(find_mean_rows(m.facts, m.shared).tolist()),
    )


def find_constant_rows(m: Measurement) -> IntArray:
    """Find kept rows of equal entries, if they have more than one; none if chance explains them.

    Of entries of two values in ten columns, one row of 512 is constant.
    """
    if not len(rows_read(m)):
        return NO_ROWS
    rows = np.intersect1d(m.facts.flat, m.facts.kept)
    found = [NO_ROWS]
    for start in range(0, len(rows), STEP):
        index = rows[start : start + STEP]
        block = m.reader.take(index)
        spread = np.std(block, axis=1)
        found.append(index[spread < CONSTANT * np.linalg.norm(block, axis=1)])
    constant = np.concatenate(found)
    entries = m.reader.take(np.setdiff1d(draw_compared(m), constant))
    if not len(entries):
        return constant
    alike = float(np.mean([np.equal.outer(*both).mean() for both in pairwise(entries.T)]))
    by_chance = m.facts.m * alike ** (m.facts.d - 1)
    return constant if len(constant) > by_chance + 3.0 * by_chance**0.5 else NO_ROWS


def find_mean_rows(facts: Facts, shared: SharedStatistics) -> IntArray:
    """Find kept rows that equal the mean row up to the rounding of the stored type, or nearly.

    In a narrow cone all rows may be that near: only rows far nearer than the others count.
    ``resize_token_embeddings`` of transformers adds rows with 3e-5 of the others' spread around
    their mean.
    """
    distances = shared.mean_distances
    median = float(np.median(distances))
    rounding = facts.rounding * root_mean_square(shared.norms)
    near = (distances <= rounding) & (distances < NEARER * median)
    if facts.d >= LEAST_COLUMNS:
        length = float(np.linalg.norm(shared.moments.mean))
        near |= distances < min(NEAR * median, OF_ITS_LENGTH * length)
    return np.asarray(facts.kept[near])


def tabulate(facts: Facts, found: RowStates) -> Table:
    """Tabulate the rows that are not healthy: special tokens first, then the gravest state."""
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


def describe_norms(side: Side) -> list[Scalar]:
    """Describe the norms: median, root mean square, variation, and the gap."""
    decades = side.decades
    gap = q.DAMAGED_GAP
    widest = gap.undefined(FEW_ROWS) if decades is None else gap.measured(decades)
    known, healthy = side.known_norms, side.healthy_norms
    if not len(healthy):
        return [*(one.undefined("every row is damaged") for one in NORMS), widest]
    return [
        q.NORM_MEDIAN.measured(float(np.median(known))),
        q.NORM_RMS.measured(root_mean_square(healthy)),
        q.NORM_VARIATION.measured(measure_variation(healthy)),
        widest,
    ]


def measure_halves(m: Measurement) -> ByHalf:
    """Measure the norms of each half, of kept rows."""
    groups, norms = m.facts.kept_groups, m.shared.norms
    if groups is None:
        return {}
    parts = [norms[half[groups]] for half in HALVES]
    return {
        q.NORM_MEDIAN: np.array([*map(np.median, parts)]),
        q.NORM_RMS: np.array([*map(root_mean_square, parts)]),
    }


def measure_variation(norms: FloatArray) -> float:
    """Measure the standard deviation over the mean."""
    relative = norms / norms.max()
    return float(relative.std() / relative.mean())


def measure_long_rows(norms: FloatArray, d: int) -> list[Scalar]:
    """Count how many rows are longer than lognormal norms would be, and what they hold."""
    is_long = measure_log_norms(norms, d).is_long
    energy = np.square(norms / norms.max())
    return [
        q.LONG_ROWS.measured(int(is_long.sum())),
        q.LONG_ROWS_ENERGY.measured(float(energy[is_long].sum() / energy.sum())),
    ]


def root_mean_square(norms: FloatArray) -> float:
    """Return the root mean square, without squares that overflow."""
    largest = float(norms.max())
    return largest * float(np.sqrt(np.mean(np.square(norms / largest))))


FAMILY = Family(
    "tokens",
    compute,
    first=(norms, row_moments, row_sums),
    second=request_states,
    rows_read=rows_read,
)
