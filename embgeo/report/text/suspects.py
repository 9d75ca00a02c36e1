"""Suspects as lines: one a reason, with the first tokens."""

import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from embgeo.comparison.suspects import Row, SuspectChange
from embgeo.core.suspects import (
    REASONS,
    Reason,
    Side,
    Suspects,
    describe,
    describe_group,
    list_rows,
)
from embgeo.core.text import visible
from embgeo.result.analysis import Analysis

#: Lines, tokens on a line, and characters of a token, at most.
LINES, TOKENS, LONGEST = 6, 5, 24


class Line(NamedTuple):
    """What is said of the suspects of one reason, and its rows: side, row, token."""

    reason: Reason
    text: str
    rows: list[tuple[Side, int, str | None]]
    serious: bool


def list_lines(suspects: Sequence[Suspects]) -> Iterator[Line]:
    """Yield a line for each reason, the serious ones first, then those that are expected."""
    for serious in (True, False):
        for reason, meaning in REASONS.items():
            own = [one.take(one.serious == serious) for one in suspects if one.reason == reason]
            if rows := list_rows(own):
                text = describe_group(reason, own)
                expected = meaning.serious and not serious
                text += ", of tokens that nothing uses, as usual" if expected else ""
                yield Line(reason, text, rows, serious)


def render(suspects: Sequence[Suspects]) -> Iterator[str]:
    """Yield at most `LINES` lines."""
    lines = list(list_lines(suspects))
    for line in lines[:LINES]:
        # A row of both sides once.
        tokens = {row: token for _, row, token in line.rows}
        named = [show_token(tokens[row], row) for row in [*tokens][:TOKENS]]
        more = " …" if len(tokens) > TOKENS else ""
        yield f"  {line.text}  {' '.join(named)}{more}"
    if len(lines) > LINES:
        rest = sum(len(line.rows) for line in lines[LINES:])
        yield f"  and {rest:,} rows that stand out for other reasons"


def write_repair(analysis: Analysis) -> str:
    """Write the command that repairs the model; empty where none is needed or possible."""
    reasons = dict.fromkeys(line.reason for line in list_lines(analysis.suspects) if line.serious)
    if not reasons or not analysis.provenance.get("repairable"):
        return ""
    file = shlex.quote(analysis.provenance["file"])
    return f"embgeo repair {file} -o REPAIRED --only {','.join(reasons)}"


def render_changes(changes: Sequence[SuspectChange]) -> Iterator[str]:
    """Yield a line for each reason with suspects that came or went, and one for the rest."""
    for change in changes:
        for verb, rows in (("came", change.came), ("went", change.went)):
            if rows:
                named = " ".join(show_token(token, row) for row, token in rows[:TOKENS])
                more = " …" if len(rows) > TOKENS else ""
                yield f"  {verb}: {describe_change(change, rows)}  {named}{more}"
    stayed = [describe_change(change, change.stayed) for change in changes if change.stayed]
    if stayed:
        yield f"  stayed: {', '.join(stayed)}"


def describe_change(change: SuspectChange, rows: Sequence[Row]) -> str:
    """Return ``5 zero rows of the output``."""
    side = " of the output" if change.side == "output" else ""
    return describe(change.reason, len(rows)) + side


def show_token(token: str | None, row: int) -> str:
    """Return a token with its hidden characters, or the number of its row."""
    if token is None:
        return f"row {row:,}"
    shown = visible(token)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"
