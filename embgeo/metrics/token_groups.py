"""Special, unused, byte and never-seen tokens: groups that behave unlike words (section 8)."""

from __future__ import annotations

import re

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import tokens as q
from embgeo.core.values import Cell, Table, Value
from embgeo.metrics.base import NO_ROWS, Context, Seen
from embgeo.stats import Norms
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic

FAMILY = "tokens"
EXAMPLES = 5
#: Masked rows looked at in one go.
STEP = 1024


#: Spellings of tokens that a vocabulary reserves and training never uses.
UNUSED = re.compile(
    r"[<\[]\|?(tokens?_)?(unused|reserved|extra_\d|dummy|placeholder|filler|control_\d)"
    r"[ _a-z]*\d*\|?[>\]]"
    r"|madeupword\d+|</?s>NOTUSED|<padding row \d+>|<row \d+>",
    re.IGNORECASE,
)
BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
#: ``<s>``, ``</s>``, ``<extra_id_0>``, ``<|endoftext|>``, ``<｜end▁of▁sentence｜>``, ``[CLS]``,
#: ``[/INST]``. HTML tags are spelled alike and cannot be told apart; nor are they words.
SPECIAL = re.compile(
    r"<\|[^|<>]+\|>|<｜[^｜<>]+｜>|</?[A-Za-z_][\w .-]*>|\[/?[A-Z][A-Z0-9_]+\]",
)


#: How spellings of these groups begin: most tokens need no closer look.
BEGINNINGS = ("<", "[", "m", "M")


def kind_of(token: str) -> str:
    """``"unused"``, ``"byte"``, ``"special"`` or empty for an ordinary token."""
    if not token.startswith(BEGINNINGS):
        return ""
    if UNUSED.fullmatch(token):
        return "unused"
    if BYTE.fullmatch(token):
        return "byte"
    return "special" if SPECIAL.fullmatch(token) else ""


def unused_rows(context: Context) -> tuple[IntArray, str]:
    """Kept rows of tokens known to be unused, and how they are known.

    By spelling; only where no spelling tells, by a count of 0: a corpus that the user counted
    need not be the one that the model saw.
    """
    if context.tokens is not None:
        tokens = context.tokens
        spelled = [row for row in context.kept.tolist() if kind_of(tokens[row]) == "unused"]
        if spelled:
            return np.array(spelled, dtype=np.int64), "by their spelling"
    if context.counts is not None and context.frequency_kind == "counts":
        never = context.kept[context.counts[context.kept] == 0]
        return never, f"count 0: {context.frequency_source}"
    return np.zeros(0, dtype=np.int64), ""


def absent(context: Context) -> str:
    return ""


def first(context: Context) -> list[Statistic]:
    return [Norms()]


def second(context: Context, seen: Seen) -> list[Statistic]:
    return []


def rows_read(context: Context, seen: Seen) -> IntArray:
    return np.concatenate([NO_ROWS, *context.masked_rows.values()])


def compute(context: Context, seen: Seen) -> list[Value]:
    norms = seen.find(Norms, "Norms").values()
    rows: list[tuple[Cell, ...]] = []
    for name, positions in group_positions(context).items():
        median = float(np.median(norms[positions]))
        rows.append((name, len(positions), median, examples(context, context.kept[positions])))
    for reason, masked in context.masked_rows.items():
        if len(masked):
            median_norm = median_of_masked(context, masked)
            rows.append((f"{reason}, left out", len(masked), median_norm, None))
    if not rows:
        return []
    note = f"median norm of all rows: {float(np.median(norms)):.4g}"
    return [Table(q.GROUPS, ("group", "rows", "median norm", "tokens"), tuple(rows), note=note)]


def examples(context: Context, rows: IntArray) -> str:
    shown = " · ".join(context.token(row) for row in rows[:EXAMPLES].tolist())
    return shown + (" …" if len(rows) > EXAMPLES else "")


def median_of_masked(context: Context, rows: IntArray) -> float | None:
    """Median norm of rows that no statistic sees; None if none is finite."""
    norms: list[FloatArray] = []
    for start in range(0, len(rows), STEP):
        block = context.take(rows[start : start + STEP])
        used = np.isfinite(block).all(axis=1) & block.any(axis=1)
        norms.append(Block(rows[start : start + STEP][used], block[used]).norms)
        norms.append(np.zeros(int((~block.any(axis=1)).sum())))
    known = np.concatenate(norms)
    return float(np.median(known)) if len(known) and np.isfinite(known).all() else None


def group_positions(context: Context) -> dict[str, IntArray]:
    """Positions among the kept rows by group; a token may be in several."""
    members: dict[str, list[int]] = {}
    if context.tokens is not None:
        for at, row in enumerate(context.kept.tolist()):
            if kind := kind_of(context.tokens[row]):
                members.setdefault(f"{kind} tokens", []).append(at)
    groups = {name: np.array(positions) for name, positions in members.items()}
    if context.counts is not None and context.frequency_kind == "counts":
        never = np.flatnonzero(context.counts[context.kept] == 0)
        if len(never):
            groups["never seen"] = never
    return groups
