"""Choosing the rows to replace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.arguments import refuse_if, refuse_type
from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, argument
from embgeo.io.bounded.guard import short
from embgeo.io.bounded.small_files import read_text, split_lines
from embgeo.replacement.survey import RowSurvey

DAMAGED, SPECIAL = "damaged", "special"


def choose_rows(survey: RowSurvey, rows: Any) -> IntArray:
    """Ascending row numbers for the argument `rows` of :func:`embgeo.repair`."""
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
    """The row numbers in a file, or the rows of the tokens unless all lines are numbers."""
    lines = [line for line in split_lines(read_text(path)) if line.strip()]
    if all(line.strip().isascii() and line.strip().isdigit() for line in lines):
        return [int(line) for line in lines]
    tokens = survey.matrix.tokens
    if tokens is None:
        way_out = "give row numbers, one a line"
        raise BadOption("names tokens, and the rows have no labels", where=path, way_out=way_out)
    known = {token: row for row, token in reversed(list(enumerate(tokens)))}  # the first of equals
    for line in lines:
        way_out = "write tokens as embgeo analyze shows them, one a line, or row numbers only"
        refuse_if(line not in known, str(path), f"there is no token {short(line)!r}", way_out)
    return [known[line] for line in lines]


def _check(survey: RowSurvey, rows: Sequence[int], where: str) -> IntArray:
    n = survey.matrix.n
    for row in rows:
        way_out = f"rows are 0 to {n - 1:,}"
        refuse_if(not 0 <= row < n, where, f"there is no row {row:,}", way_out)
    return np.unique(np.array(rows, dtype=np.int64))
