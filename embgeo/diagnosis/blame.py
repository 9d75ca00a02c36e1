"""The tokens that contribute most to a finding: closest to the mean direction, longest, …"""

from collections.abc import Iterable

from embgeo.core.quantities import clump, tokens
from embgeo.core.text import visible
from embgeo.core.values import Cell
from embgeo.diagnosis.finding import Numbers, find_scalar, find_table

#: Tokens that the verdict names, at most.
NAMED = 5

#: Longest name of a token inside a sentence, in characters.
LONGEST = 24

_TABLES = {
    "rows": ("Damaged", tokens.DAMAGED),
    "idle rows": ("Never trained", tokens.DAMAGED),
    "collapsed rows": ("Constant, or equal to the mean row", tokens.DAMAGED),
    "short rows": ("Shortest", tokens.SMALLEST_NORMS),
    "clump": ("In the clump", clump.CLUMP),
    "scattered": ("Scattered", clump.SCATTERED),
    "cone": ("Most affected tokens, closest to the mean direction", tokens.NEAREST_TO_MEAN),
    "large norms": ("Largest norms", tokens.LARGEST_NORMS),
}


def blame_tokens(
    analysis: Numbers, causes: Iterable[str]
) -> tuple[str, tuple[str | None, ...], tuple[int, ...]]:
    """Return what the named tokens have in common, the tokens, and their rows; may be empty.

    A token that is not known is None.

    Parameters
    ----------
    analysis : Numbers
    causes : iterable of str
        Keys of `_TABLES`, the most telling first: the first with a table counts.
    """
    for cause in causes:
        lead, quantity = _TABLES[cause]
        table = find_table(analysis, quantity)
        if table is not None and table.rows:
            row_at, token_at = table.columns.index("row"), table.columns.index("token")
            long = find_scalar(analysis, tokens.LONG_ROWS) if cause == "large norms" else None
            named = table.rows[: min(NAMED, int(long)) if long else NAMED]
            found = (None if analysis.tokens is None else row[token_at] for row in named)
            texts = tuple(token if isinstance(token, str) else None for token in found)
            return lead, texts, tuple(int(row[row_at] or 0) for row in named)
    return "", (), ()


def show_token(token: Cell, row: Cell) -> str:
    """Return a token inside a sentence with its row number, or that alone where it is not known."""
    number = f"row {row:,}" if isinstance(row, int) else f"row {row}"
    if not isinstance(token, str):
        return number
    shown = visible(token)
    if len(shown) > LONGEST:
        shown = shown[: LONGEST - 1] + "…"
    # A comma would read as the end of a token.
    shown = f"“{shown}”" if "," in shown else shown
    return shown if row is None else f"{shown} ({number})"
