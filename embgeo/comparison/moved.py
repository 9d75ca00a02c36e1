"""Tokens whose neighborhoods changed most, with their neighbors before and after."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.comparison.comparison import Comparison
from embgeo.comparison.pair import Pair
from embgeo.core.quantities import compare
from embgeo.core.text import visible
from embgeo.core.values import Cell, Table

NAME = compare.MOVED.name


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A neighbor ready to print: whether it is rare, and whether both sides have it."""

    text: str
    rare: bool
    kept: bool


@dataclass(frozen=True, slots=True)
class MovedToken:
    """A token, the cosine that it lost with its neighbors before, and its neighbors.

    `overlap` is the share of neighbors that it keeps.
    """

    token: str
    rare: bool
    lost: str
    overlap: str
    before: tuple[Neighbor, ...]
    after: tuple[Neighbor, ...]


def find_moved_table(pair: Pair) -> Table | None:
    """Find the table of tokens that moved most, without tokens that did not move.

    None if missing.
    """
    table = next((t for t in pair.tables if t.name == NAME), None)
    if table is None:
        return None
    overlap = table.find_column("overlap")
    return replace(table, rows=tuple(row for row in table.rows if row[overlap] != 1))


def list_moved_tokens(comparison: Comparison, pair: Pair) -> tuple[MovedToken, ...]:
    """List every line of the table of a pair, ready to print."""
    table = find_moved_table(pair)
    if table is None:
        return ()
    rare = rare_tokens(comparison)
    return tuple(_line(_split(table, row), rare) for row in table.rows)


def _line(
    cells: tuple[Cell, Cell, Cell, list[Cell], list[Cell]], rare: frozenset[Cell]
) -> MovedToken:
    token, lost, overlap, before, after = cells
    shown = [
        tuple(Neighbor(_text(c), c in rare, c in before and c in after) for c in side)
        for side in (before, after)
    ]
    drop, share = (
        f"{float(cell):.3f}".replace("-", "−") if isinstance(cell, int | float) else "–"
        for cell in (lost, overlap)
    )
    return MovedToken(_text(token), token in rare, drop, share, *shown)


def rare_tokens(comparison: Comparison) -> frozenset[Cell]:
    """Return the rare tokens of the first member with frequencies; may be empty."""
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
    """Get for the script of a page: by member and line, the places of the token and its neighbors.

    `rows` are positions among the kept rows of the baseline of the tokens on the page.
    """
    analysis = comparison.baseline.analysis
    if analysis.tokens is None:
        # The table names unlabeled rows by their number.
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
                for token, _, _, before, after in lines
            ]
    return out


def _split(table: Table, row: tuple[Cell, ...]) -> tuple[Cell, Cell, Cell, list[Cell], list[Cell]]:
    """Return token, lost cosine, overlap, neighbors before, neighbors after."""
    named = dict(zip(table.columns, row, strict=True))
    sides: list[list[Cell]] = [
        [c for name, c in named.items() if name.startswith(side) and c is not None]
        for side in ("before ", "after ")
    ]
    return named["token"], named.get("cosine lost"), named["overlap"], sides[0], sides[1]


def _text(cell: Cell) -> str:
    return visible(cell) if isinstance(cell, str) else f"row {cell:,}" if cell is not None else "–"
