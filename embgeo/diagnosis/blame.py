"""Which tokens stand behind a finding: the deepest in a cone, or the rows of largest norm."""

from __future__ import annotations

from collections.abc import Iterable

from embgeo.core.quantities import clump, tokens
from embgeo.core.values import Cell
from embgeo.core.visible import visible
from embgeo.diagnosis.finding import Numbers

#: Tokens that the verdict names, at most.
NAMED = 5

#: Longest name of a token inside a sentence, in characters.
LONGEST = 24


def blame_tokens(
    analysis: Numbers, causes: Iterable[str]
) -> tuple[str, tuple[str, ...], tuple[int, ...]]:
    """What the named tokens have in common, the tokens, and their rows; empty if there are none.

    Parameters
    ----------
    analysis : Numbers
    causes : iterable of str
        "rows", "idle rows", "short rows", "clump", "scattered", "cone" or "large norms", the most
        telling first.
    """
    for cause in causes:
        lead, name = _TABLES[cause]
        table = next((t for t in analysis.tables if t.name == name), None)
        if table is not None and table.rows:
            row_at, token_at = table.columns.index("row"), table.columns.index("token")
            labeled = analysis.tokens is not None
            long = analysis.scalar(tokens.LONG_ROWS) if cause == "large norms" else None
            most = min(NAMED, int(long.value)) if long is not None and long.value else NAMED
            named = table.rows[:most]
            names = [show_token(row[token_at] if labeled else None, row[row_at]) for row in named]
            return lead, tuple(names), tuple(int(row[row_at] or 0) for row in named)
    return "", (), ()


_TABLES = {
    "rows": ("Damaged", tokens.DAMAGED.name),
    "idle rows": ("Never trained", tokens.DAMAGED.name),
    "short rows": ("Shortest", tokens.SMALLEST_NORMS.name),
    "clump": ("Lie together", clump.CLUMP.name),
    "scattered": ("Scattered", clump.SCATTERED.name),
    "cone": ("Deepest in the cone", tokens.NEAREST_TO_MEAN.name),
    "large norms": ("Largest norms", tokens.LARGEST_NORMS.name),
}


def show_token(token: Cell, row: Cell) -> str:
    """A token as a sentence names it; its row by number where the token is not known."""
    if not isinstance(token, str):
        return f"row {row:,}" if isinstance(row, int) else f"row {row}"
    shown = visible(token)
    if len(shown) > LONGEST:
        shown = shown[: LONGEST - 1] + "…"
    # A comma would read as the end of a token.
    return f"“{shown}”" if "," in shown else shown
