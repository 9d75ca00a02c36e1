"""The board of suspects on the first screen: reasons, first tokens, and the repair of a model."""

import shlex
from dataclasses import dataclass

from embgeo.core.suspects import REASONS, Reason
from embgeo.report.text.suspects import list_lines, show_token
from embgeo.result.analysis import Analysis

#: Tokens of a reason on the board, at most.
CHIPS = 6


@dataclass(frozen=True, slots=True)
class BoardLine:
    """A reason, and its rows."""

    reason: Reason
    serious: bool
    text: str
    #: What helps, where a repair alone does not.
    help: str
    #: Row, and token or number of the row.
    chips: tuple[tuple[int, str], ...]
    more: int


def list_board(analysis: Analysis) -> list[BoardLine]:
    """Return a line for each reason, the serious ones first."""
    board = []
    for line in list_lines(analysis.suspects):
        rows = list({row: token for _, row, token in line.rows}.items())  # of both sides once
        chips = tuple((row, show_token(token, row)) for row, token in rows[:CHIPS])
        meaning = REASONS[line.reason]
        help_ = "" if meaning.serious else meaning.help
        more = max(0, len(rows) - CHIPS)
        board.append(BoardLine(line.reason, line.serious, line.text, help_, chips, more))
    return board


def write_repair(analysis: Analysis, board: list[BoardLine]) -> str:
    """Write the command that repairs the model; empty where none is needed or possible."""
    reasons = [line.reason for line in board if line.serious]
    if not reasons or not analysis.provenance.get("repairable"):
        return ""
    file = shlex.quote(analysis.provenance["file"])
    return f"embgeo repair {file} -o REPAIRED --only {','.join(reasons)}"
