"""Suspects as lines: one a reason, with the first tokens."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from embgeo.core.suspects import REASONS, Reason, Side, Suspects, describe_group, list_rows
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


def show_token(token: str | None, row: int) -> str:
    """Return a token with its hidden characters, or the number of its row."""
    if token is None:
        return f"row {row:,}"
    shown = visible(token)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"
