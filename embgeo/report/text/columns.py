"""Cells in aligned columns, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from embgeo.core.text import printable


def align(rows: Sequence[Sequence[str]], left: frozenset[int] = frozenset({0})) -> list[str]:
    """A line for each row: columns of `left` flush left, the others flush right."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
