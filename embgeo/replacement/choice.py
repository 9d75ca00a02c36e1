"""Which rows are replaced."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.arguments import refuse_type
from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, argument
from embgeo.io.bounded.guard import short
from embgeo.io.bounded.small_files import read_text, split_lines
from embgeo.replacement.survey import RowSurvey

#: Rows that are named by what is wrong with them.
DAMAGED, SPECIAL = "damaged", "special"


def choose_rows(survey: RowSurvey, rows: Any) -> IntArray:
    """Row numbers, ascending, each once.

    Parameters
    ----------
    survey : RowSurvey
    rows : str, Path or sequence of int
        ``"damaged"``; ``"special"`` for the damaged rows of special tokens; a file with a row
        number or a token on each line; or row numbers.
    """
    if rows == DAMAGED:
        return survey.damaged
    if rows == SPECIAL:
        special = [one.row for one in survey.matrix.special if one.row is not None]
        return np.intersect1d(survey.damaged, np.array(special, dtype=np.int64))
    if isinstance(rows, str | Path):
        return _check(survey, _read_rows(Path(rows), survey), str(rows))
    if not isinstance(rows, Sequence | np.ndarray):
        raise refuse_type(rows, "rows", "damaged, special, a file, or row numbers")
    return _check(survey, [int(row) for row in rows], argument("rows"))


def _read_rows(path: Path, survey: RowSurvey) -> list[int]:
    """Numbers where every line is one, else tokens."""
    lines = [line for line in split_lines(read_text(path)) if line.strip()]
    if all(line.strip().isascii() and line.strip().isdigit() for line in lines):
        return [int(line) for line in lines]
    tokens = survey.matrix.tokens
    if tokens is None:
        raise BadOption(
            "names tokens, and the rows have no labels",
            where=path,
            way_out="give row numbers, one a line",
        )
    known: dict[str, int] = {}
    for row, token in enumerate(tokens):
        known.setdefault(token, row)
    missing = [line for line in lines if line not in known]
    if missing:
        raise BadOption(
            f"there is no token {short(missing[0])!r}",
            where=path,
            way_out="write tokens as embgeo analyze shows them, one a line, or row numbers only",
        )
    return [known[line] for line in lines]


def _check(survey: RowSurvey, rows: Sequence[int], where: str) -> IntArray:
    n = survey.matrix.n
    beyond = [row for row in rows if not 0 <= row < n]
    if beyond:
        raise BadOption(
            f"there is no row {beyond[0]:,}", where=where, way_out=f"rows are 0 to {n - 1:,}"
        )
    return np.unique(np.array(rows, dtype=np.int64))
