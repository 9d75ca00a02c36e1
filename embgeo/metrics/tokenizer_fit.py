"""Does the matrix fit its tokenizer: special tokens, missing rows, tying, unreachable tokens.

Examples
--------
>>> import embgeo
>>> from embgeo.core.matrix import Matrix
>>> from embgeo.core.special import SpecialToken
>>> W = np.random.default_rng(0).standard_normal((40, 8))
>>> W[39] *= 1e-17
>>> special = (SpecialToken("<s>", 0, ("bos",)), SpecialToken("<|im_end|>", 39, ("template",)))
>>> found = embgeo.analyze(Matrix(W, special=special), sections=["tokens"], reference=False)
>>> [(row[0], row[1], row[4]) for row in found["tokens.special"].rows]
[('<|im_end|>', 39, 'damaged'), ('<s>', 0, 'healthy')]
"""

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.quantities import clump
from embgeo.core.quantities import tokens as q
from embgeo.core.special import RowState, SpecialToken
from embgeo.core.values import Cell, Table, Value
from embgeo.metrics.facts import NO_ROWS, Facts, note_shown
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.rows import ORDER, RowStates, find_states, request_states
from embgeo.metrics.shared import SharedStatistics, hashes, norms, row_moments, row_sums
from embgeo.metrics.token_kinds import find_kinds
from embgeo.metrics.tokens import group_equal_hashes, split_equal_rows
from embgeo.stats.reader import RowReader
from embgeo.stats.statistic import Statistic

SHOWN = 200
SHOWN_UNREACHABLE = 30
COLUMNS = ("token", "row", "named as", "count", "state", "‖w‖", "percentile")


def second(m: Measurement) -> list[Statistic]:
    return request_states(m) if m.facts.special else []


def rows_read(m: Measurement) -> IntArray:
    if not m.facts.special:
        return NO_ROWS
    return np.concatenate([NO_ROWS, *list_candidates(m.facts, m.shared)])


def compute(m: Measurement) -> list[Value]:
    facts = m.facts
    values: list[Value] = []
    if facts.vocabulary_size is not None:
        values.append(q.MISSING_ROWS.measured(max(0, facts.vocabulary_size - facts.n)))
    if facts.tied_as_configured is not None:
        values.append(q.TIED_AS_CONFIGURED.measured(float(facts.tied_as_configured)))
    values += list_unreachable(facts, m.shared)
    known = set(facts.vocabulary.tolist())
    special = [one for one in facts.special if one.row is None or one.row in known]
    if not special:
        return values
    found = find_states(m)
    identical = find_identical(facts, m.reader, m.shared)
    damaged = sum(found.is_damaged(one.row) for one in special if one.row is not None)
    values.append(q.SPECIAL_DAMAGED_ROWS.measured(damaged))
    return [*values, tabulate(facts, found, special, identical)]


def list_unreachable(facts: Facts, shared: SharedStatistics) -> list[Value]:
    """List tokens that no text is encoded to, by a round trip through the tokenizer."""
    if facts.unreachable is None:
        return []
    if isinstance(facts.unreachable, str):
        return [clump.UNREACHABLE_ROWS.undefined(facts.unreachable)]
    rows = np.array(facts.unreachable, dtype=np.int64)
    counted = clump.UNREACHABLE_ROWS.measured(int(np.isin(rows, facts.vocabulary).sum()))
    at = np.flatnonzero(np.isin(facts.kept, rows))
    at = at[np.argsort(-shared.norms[at], kind="stable")][:SHOWN_UNREACHABLE]
    if not len(at):
        return [counted]
    kinds, lengths = find_kinds(facts, facts.kept[at]), shared.norms[at].tolist()
    lines = facts.list_rows(at, kinds, lengths)
    columns = ("row", "token", "count", "kind", "‖w‖")
    note = note_shown(len(rows), "tokens", SHOWN_UNREACHABLE)
    return [counted, Table(clump.UNREACHABLE, columns, lines, note=note)]


def list_candidates(facts: Facts, shared: SharedStatistics) -> list[IntArray]:
    """List groups of rows with equal hashes that include a special token."""
    special = [one.row for one in facts.special if one.row is not None]
    groups = group_equal_hashes(facts, shared)
    return [rows for rows in groups if np.isin(special, rows).any()]


def find_identical(facts: Facts, reader: RowReader, shared: SharedStatistics) -> IntArray:
    """Find rows of special tokens that equal another row, and the rows that they equal."""
    groups = [split_equal_rows(facts, reader, rows) for rows in list_candidates(facts, shared)]
    return np.concatenate([NO_ROWS, *(rows for split in groups for rows in split)])


def tabulate(
    facts: Facts, found: RowStates, special: list[SpecialToken], identical: IntArray
) -> Table:
    """Tabulate every special token, the gravest state first."""

    def state(one: SpecialToken) -> RowState | None:
        if one.row is None:
            return None
        own = found.state(one.row)
        return "identical" if own == "healthy" and one.row in identical else own

    def rank(one: SpecialToken) -> tuple[int, int]:
        own = state(one)
        return (-1, 0) if own is None or one.row is None else (ORDER[own], one.row)

    cells: list[tuple[Cell, ...]] = []
    for one in sorted(special, key=rank)[:SHOWN]:
        named = ", ".join(one.roles)
        if one.row is None:
            cells.append((one.token, None, named, None, "no row", None, None))
        else:
            at = found.find(one.row)
            norm = found.input.finite_norm(at), found.input.rank(at)
            cells.append((one.token, one.row, named, facts.count(one.row), state(one), *norm))
        if found.output is not None:
            cells[-1] += list_output_cells(found, one.row)
    columns = COLUMNS if found.output is None else (*COLUMNS, "output", "‖u‖", "output percentile")
    note = note_shown(len(special), "tokens", SHOWN)
    return Table(q.SPECIAL, columns, tuple(cells), note=note)


def list_output_cells(found: RowStates, row: int | None) -> tuple[Cell, ...]:
    """State, norm and percentile of the output row."""
    if row is None or found.output is None:
        return (None, None, None)
    at = found.find(row)
    return found.output_state(row), found.output.finite_norm(at), found.output.rank(at)


FAMILY = Family(
    "tokens",
    compute,
    first=(norms, row_moments, row_sums, hashes),
    second=second,
    rows_read=rows_read,
)
