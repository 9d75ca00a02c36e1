"""Tokens that no text is encoded to, by a round trip through the tokenizer.

Examples
--------
>>> import embgeo
>>> from embgeo.core.matrix import Matrix
>>> W = np.random.default_rng(0).standard_normal((20, 4))
>>> found = embgeo.analyze(Matrix(W, unreachable=(3, 5)), sections=["tokens"], reference=False)
>>> found["tokens.unreachable_rows"].text
'2'
"""

from __future__ import annotations

import numpy as np

from embgeo.core.quantities import clump as q
from embgeo.core.values import Table, Value
from embgeo.metrics.facts import Facts, note_shown
from embgeo.metrics.shared import SharedStatistics
from embgeo.metrics.token_kinds import find_kinds

FAMILY = "tokens"
FIRST = ("norms",)
SHOWN = 30


def compute(facts: Facts, shared: SharedStatistics) -> list[Value]:
    if facts.unreachable is None:
        return []
    if isinstance(facts.unreachable, str):
        return [q.UNREACHABLE_ROWS.undefined(facts.unreachable)]
    rows = np.array(facts.unreachable, dtype=np.int64)
    counted = q.UNREACHABLE_ROWS.measured(int(np.isin(rows, facts.vocabulary).sum()))
    at = np.flatnonzero(np.isin(facts.kept, rows))
    at = at[np.argsort(-shared.norms[at], kind="stable")][:SHOWN]
    if not len(at):
        return [counted]
    kinds, norms = find_kinds(facts, facts.kept[at]), shared.norms[at].tolist()
    lines = facts.list_rows(at, kinds, norms)
    columns = ("row", "token", "count", "kind", "‖w‖")
    note = note_shown(len(rows), "tokens", SHOWN)
    return [counted, Table(q.UNREACHABLE, columns, lines, note=note)]
