"""Norms and states of all rows of a matrix, in one pass, and the rows to replace."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.arguments import refuse_if, refuse_type
from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.errors import BadOption, argument
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.core.special import RowState
from embgeo.io.bounded.guard import short
from embgeo.io.bounded.small_files import read_text, split_lines
from embgeo.metrics import Facts
from embgeo.metrics.rows import root_mean_square
from embgeo.stats import Norms
from embgeo.stats.reader import RowReader

DAMAGED, SPECIAL = "damaged", "special"


@dataclass(frozen=True)
class RowSurvey:
    """Norms and states of all N rows of a matrix."""

    matrix: Matrix
    #: NaN for masked and non-finite rows.
    norms: FloatArray
    #: The rows that an analysis keeps.
    healthy: Mask
    #: Damaged rows → state; the zero row of a padding token is not damaged.
    states: dict[int, RowState]

    @property
    def damaged(self) -> IntArray:
        """Ascending row numbers."""
        return np.array(sorted(self.states), dtype=np.int64)

    def state(self, row: int) -> RowState | None:
        """Return the state of a row; None for a masked one."""
        return self.states.get(row, "healthy" if self.healthy[row] else None)

    @property
    def root_mean_square(self) -> float:
        """Root mean square of the norms of the healthy rows."""
        return root_mean_square(self.norms[self.healthy])


def survey(matrix: Matrix, min_norm: float | None, progress: Progress | None) -> RowSurvey:
    """Read all rows once.

    Rows with a norm smaller than `min_norm` are damaged; None: the gap between norms decides.
    """
    reader = RowReader(replace(matrix, output=None), progress=progress)
    found = Norms()
    reader.sift([found])
    small, _ = found.find_small(matrix.d, min_norm)
    norms = np.full(matrix.n, np.nan)
    norms[found.index()] = found.values()
    norms[reader.census.zero] = 0.0
    healthy = reader.takes_part.copy()
    healthy[small] = False
    facts = Facts.of(matrix, Options())
    kinds: tuple[tuple[RowState, IntArray], ...] = (
        ("zero", reader.census.zero),
        ("non-finite", reader.census.nonfinite),
        ("damaged", small),
    )
    states = {row: state for state, rows in kinds for row in rows.tolist()}
    states = {r: s for r, s in states.items() if s != "zero" or not facts.is_padding(r)}
    return RowSurvey(matrix, norms, healthy, states)


def choose_rows(survey: RowSurvey, rows: Any) -> IntArray:
    """Choose ascending row numbers for the argument `rows` of :func:`embgeo.repair`."""
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
    """Read the row numbers in a file, or the rows of the tokens unless all lines are numbers."""
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
