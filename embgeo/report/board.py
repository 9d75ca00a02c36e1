"""The board of suspects on the first screen: reasons and first tokens."""

from collections.abc import Sequence
from typing import Any

from embgeo.core.suspects import REASONS
from embgeo.report.text.suspects import list_lines, show_token
from embgeo.result.analysis import Analysis

#: Tokens of a reason on the board, at most.
CHIPS = 6


def describe_line(
    text: str, serious: bool, rows: Sequence[tuple[int, str | None]], **more: Any
) -> dict[str, Any]:
    """Describe a line of a board: its first rows with their tokens, and how many more it has."""
    chips = [(row, show_token(token, row)) for row, token in rows[:CHIPS]]
    left = max(0, len(rows) - CHIPS)
    return {"text": text, "serious": serious, "chips": chips, "more": left, **more}


def list_board(analysis: Analysis) -> list[dict[str, Any]]:
    """Return a line for each reason, the serious ones first.

    `help` is what helps, where a repair alone does not.
    """
    board = []
    for line in list_lines(analysis.suspects):
        rows = list({row: token for _, row, token in line.rows}.items())  # of both sides once
        meaning = REASONS[line.reason]
        help_ = "" if meaning.serious else meaning.help
        board.append(describe_line(line.text, line.serious, rows, reason=line.reason, help=help_))
    return board
