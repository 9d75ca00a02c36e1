"""Special, unused, byte and never-seen tokens (definitions, section 8).

Examples
--------
>>> import embgeo
>>> names = ["<s>", "[unused1]", "<0x0A>", "word", "word2"]
>>> W = np.random.default_rng(0).standard_normal((5, 3))
>>> found = embgeo.analyze(W, tokens=names, sections=["tokens"], reference=False)
>>> [row[0] for row in found["tokens.groups"].rows]
['special tokens', 'unused tokens', 'byte tokens']
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import tokens as q
from embgeo.core.token_spelling import classify_token
from embgeo.core.values import Cell, Table, Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.shared import SharedStatistics
from embgeo.stats.block import Block
from embgeo.stats.reader import RowReader

FAMILY = "tokens"
FIRST = ("norms",)
#: Masked rows read at once.
STEP = 1024


def find_unused_rows(facts: Facts) -> tuple[IntArray, str]:
    """Kept rows of tokens known to be unused, and how they are known.

    By spelling, or else by a count of 0: the counted corpus need not be the model's training text.
    """
    if facts.tokens is not None:
        tokens = facts.tokens
        spelled = [row for row in facts.kept.tolist() if classify_token(tokens[row]) == "unused"]
        if spelled:
            return np.array(spelled, dtype=np.int64), "by their spelling"
    if facts.counts is not None and facts.frequency is not None:
        never = facts.kept[facts.counts[facts.kept] == 0]
        return never, f"count 0: {facts.frequency.source}"
    return NO_ROWS, ""


def rows_read(facts: Facts) -> IntArray:
    return np.concatenate([NO_ROWS, *facts.masked.values()])


def compute(facts: Facts, reader: RowReader, shared: SharedStatistics) -> list[Value]:
    norms = shared.norms
    rows: list[tuple[Cell, ...]] = []
    for name, positions in group_rows(facts).items():
        median = float(np.median(norms[positions]))
        rows.append((name, len(positions), median, facts.list_examples(facts.kept[positions])))
    rows += [
        (f"{reason}, left out", len(masked), measure_masked(reader, masked), None)
        for reason, masked in facts.masked.items()
        if len(masked)
    ]
    if not rows:
        return []
    note = f"median norm of all rows: {float(np.median(norms)):.4g}"
    return [Table(q.GROUPS, ("group", "rows", "median norm", "tokens"), tuple(rows), note=note)]


def measure_masked(reader: RowReader, rows: IntArray) -> float | None:
    """Median norm of masked rows; None if none of them is finite."""
    norms: list[FloatArray] = []
    for start in range(0, len(rows), STEP):
        block = reader.take(rows[start : start + STEP])
        used = np.isfinite(block).all(axis=1) & block.any(axis=1)
        norms.append(Block(rows[start : start + STEP][used], block[used]).norms)
        norms.append(np.zeros(int((~block.any(axis=1)).sum())))
    known = np.concatenate(norms)
    return float(np.median(known)) if len(known) and np.isfinite(known).all() else None


def group_rows(facts: Facts) -> dict[str, IntArray]:
    """Positions among the kept rows by group; a token may be in several."""
    members: dict[str, list[int]] = {}
    if facts.tokens is not None:
        for at, row in enumerate(facts.kept.tolist()):
            if kind := classify_token(facts.tokens[row]):
                members.setdefault(f"{kind} tokens", []).append(at)
    groups = {name: np.array(positions) for name, positions in members.items()}
    if facts.counts is not None:
        never = np.flatnonzero(facts.counts[facts.kept] == 0)
        if len(never):
            groups["never seen"] = never
    return groups
