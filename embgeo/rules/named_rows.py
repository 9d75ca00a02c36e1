"""The rows that a count of rows is about, for the messages of failed rules."""

from embgeo.core.quantities import tokens
from embgeo.core.special import DAMAGED_STATES
from embgeo.core.text import visible
from embgeo.core.values import Cell, Table, format_number
from embgeo.result.analysis import Analysis

#: Rows that are named at most.
NAMED = 5

#: Name of a count → the table that lists its rows, and the states that count, by column.
_LISTED: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    tokens.DAMAGED_ROWS.name: (tokens.DAMAGED.name, {"state": DAMAGED_STATES}),
    tokens.ZERO_ROWS.name: (tokens.DAMAGED.name, {"state": ("zero",)}),
    tokens.NONFINITE_ROWS.name: (tokens.DAMAGED.name, {"state": ("non-finite",)}),
    tokens.CONSTANT_ROWS.name: (tokens.DAMAGED.name, {"state": ("constant",)}),
    tokens.MEAN_ROWS.name: (tokens.DAMAGED.name, {"state": ("mean-initialized",)}),
    tokens.OUTPUT_DAMAGED_ROWS.name: (tokens.DAMAGED.name, {"output": DAMAGED_STATES}),
    tokens.SPECIAL_DAMAGED_ROWS.name: (
        tokens.SPECIAL.name,
        {"state": DAMAGED_STATES, "output": DAMAGED_STATES},
    ),
}


def name_rows(analysis: Analysis) -> dict[str, str]:
    """Name some rows of each count above 0: ``row 2,950 <|im_start|>, …``."""
    tables = {table.name: table for table in analysis.tables}
    found = {}
    for name, (listing, states) in _LISTED.items():
        scalar = analysis.scalar(name)
        if scalar is None or not scalar.value or listing not in tables:
            continue
        rows = find_rows(tables[listing], states)
        left = int(scalar.value) - NAMED
        more = f" and {format_number(left)} more" if left > 0 else ""
        labeled = analysis.tokens is not None
        named = ", ".join(show_row(row, token if labeled else None) for row, token in rows[:NAMED])
        found[name] = f"{named}{more}"
    return {name: text for name, text in found.items() if text}


def find_rows(table: Table, states: dict[str, tuple[str, ...]]) -> list[tuple[Cell, Cell]]:
    """Find the row and the token of each row of a table with one of these states."""
    row_at, token_at = table.columns.index("row"), table.columns.index("token")
    checked = [(table.columns.index(c), own) for c, own in states.items() if c in table.columns]
    return [
        (cells[row_at], cells[token_at])
        for cells in table.rows
        if any(cells[at] in own for at, own in checked)
    ]


def show_row(row: Cell, token: Cell) -> str:
    number = f"row {row:,}" if isinstance(row, int) else "no row"
    return f"{number} {visible(token)}" if isinstance(token, str) else number
