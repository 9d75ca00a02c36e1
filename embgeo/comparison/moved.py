"""Tokens whose neighborhood changed most, with their neighbors before and after."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.comparison.comparison import Comparison
from embgeo.comparison.pair import Pair
from embgeo.core.quantities import compare
from embgeo.core.values import Cell, Table, format_number
from embgeo.core.visible import visible

NAME = compare.MOVED.name


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A neighbor as the page shows it: whether it is rare, and whether it was there before."""

    text: str
    rare: bool
    kept: bool


@dataclass(frozen=True, slots=True)
class MovedToken:
    """One line: the token, the share of neighbors it kept, and who they were and are."""

    token: str
    rare: bool
    overlap: str
    before: tuple[Neighbor, ...]
    after: tuple[Neighbor, ...]


def find_moved_table(pair: Pair) -> Table | None:
    """The table of tokens that moved most without those that did not move; None if missing."""
    table = next((t for t in pair.tables if t.name == NAME), None)
    if table is None:
        return None
    overlap = table.columns.index("overlap")
    return replace(table, rows=tuple(row for row in table.rows if row[overlap] != 1))


def list_moved_tokens(comparison: Comparison, pair: Pair) -> tuple[MovedToken, ...]:
    """Every line of the pair's table, ready to print."""
    table = find_moved_table(pair)
    if table is None:
        return ()
    rare = rare_tokens(comparison)
    return tuple(_line(_split(table, row), rare) for row in table.rows)


def _line(cells: tuple[Cell, Cell, list[Cell], list[Cell]], rare: frozenset[Cell]) -> MovedToken:
    token, overlap, before, after = cells
    shown = [
        tuple(Neighbor(_text(c), c in rare, c in before and c in after) for c in side)
        for side in (before, after)
    ]
    share = format_number(float(overlap), 3) if isinstance(overlap, int | float) else "–"
    return MovedToken(_text(token), token in rare, share, *shown)


def rare_tokens(comparison: Comparison) -> frozenset[Cell]:
    """The rare tokens of the first member that knows which are; empty if nobody does."""
    for member in comparison.members:
        analysis = member.analysis
        if analysis.popular is not None and analysis.tokens is not None:
            return frozenset(
                token
                for token, popular in zip(analysis.tokens, analysis.popular, strict=True)
                if not popular
            )
    return frozenset()


def map_moved_rows(comparison: Comparison, rows: npt.NDArray[np.int64]) -> dict[str, Any]:
    """For the page's script: by member and line, where token and neighbors stand in its data.

    `rows`: positions among the baseline's kept rows of the tokens that the page holds.
    """
    analysis = comparison.baseline.analysis
    if analysis.tokens is None:
        # Rows that nobody has named stand in the table by their number.
        names = [f"row {number}" for number in analysis.rows[rows].tolist()]
    else:
        names = [analysis.tokens[row] for row in rows.tolist()]
    at = {name: i for i, name in enumerate(names)}
    out = {}
    for place in range(1, len(comparison.members)):
        pair = comparison.pair(0, place)
        table = find_moved_table(pair) if pair else None
        if table is not None:
            lines = [_split(table, row) for row in table.rows]
            out[str(place)] = [
                [at[c] for c in dict.fromkeys([token, *before, *after]) if c in at]
                for token, _, before, after in lines
            ]
    return out


def _split(table: Table, row: tuple[Cell, ...]) -> tuple[Cell, Cell, list[Cell], list[Cell]]:
    """Token, overlap, neighbors before, neighbors after."""
    named = dict(zip(table.columns, row, strict=True))
    sides: list[list[Cell]] = [
        [c for name, c in named.items() if name.startswith(side) and c is not None]
        for side in ("before ", "after ")
    ]
    return named["token"], named["overlap"], sides[0], sides[1]


def _text(cell: Cell) -> str:
    return visible(cell) if isinstance(cell, str) else f"row {cell:,}" if cell is not None else "–"
