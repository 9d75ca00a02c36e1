"""Suspects as lines: one a reason, with the first tokens."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from embgeo.comparison.suspects import Row, SuspectChange
from embgeo.core.suspects import REASONS, Reason, Side, Suspects, describe
from embgeo.core.text import visible

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
            rows = [
                (one.side, row, None if one.tokens is None else one.tokens[at])
                for one in own
                for at, row in enumerate(one.rows.tolist())
            ]
            if rows:
                text = describe_group(reason, own)
                expected = meaning.serious and not serious
                text += ", of tokens that nothing uses, as usual" if expected else ""
                yield Line(reason, text, rows, serious)


def describe_group(reason: Reason, suspects: Sequence[Suspects]) -> str:
    """Return ``20 duplicates of 9 tokens``, or ``3 zero rows (2 of the output matrix)``."""
    count = sum(map(len, suspects))
    text = describe(reason, count)
    groups = sum(len(np.unique(one.group)) for one in suspects if one.group is not None)
    if groups:
        word = "token" if reason == "duplicate" else "group"
        text += f" {'of' if reason == 'duplicate' else 'in'} {groups:,} {word}"
        text += "" if groups == 1 else "s"
    if reason in ("long", "short"):
        values = np.concatenate([one.values for one in suspects if one.values is not None])
        times = float(np.median(values if reason == "long" else 1.0 / values))
        word = "longer" if reason == "long" else "shorter"
        verb = "row is" if count == 1 else "rows are"
        text = f"{count:,} {verb} about {times:.2g} times {word} than the others"
    of_output = sum(len(one) for one in suspects if one.side == "output")
    if of_output:
        text += " of the output matrix" if of_output == count else f" ({of_output:,} of the output)"
    return text


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
