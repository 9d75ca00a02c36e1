"""Which rows of a matrix are healthy: all norms, in one pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.matrix import Matrix
from embgeo.core.progress import Progress
from embgeo.core.special import RowState
from embgeo.measure.damage import find_small_rows
from embgeo.metrics import Facts
from embgeo.metrics.row_norms import root_mean_square
from embgeo.stats import Norms
from embgeo.stats.reader import RowReader

#: Which norm of the healthy rows a new row gets.
Length = Literal["rms", "median"]


@dataclass(frozen=True)
class RowSurvey:
    """Norms and states of all rows of a matrix.

    Attributes
    ----------
    matrix : Matrix
    norms : float64 array, shape (N,)
        NaN for masked and non-finite rows.
    healthy : bool array, shape (N,)
        Rows that an analysis keeps.
    states : mapping of int to RowState
        Of the damaged rows, by row; a zero row of a padding token is as intended and not among
        them.
    """

    matrix: Matrix
    norms: FloatArray
    healthy: Mask
    states: dict[int, RowState]

    @property
    def damaged(self) -> IntArray:
        """Ascending."""
        return np.array(sorted(self.states), dtype=np.int64)

    def state(self, row: int) -> RowState | None:
        """None for a masked row."""
        return self.states.get(row, "healthy" if self.healthy[row] else None)

    @cached_property
    def lengths(self) -> dict[Length, float]:
        """Root mean square and median of the healthy norms."""
        norms = self.norms[self.healthy]
        return {"rms": root_mean_square(norms), "median": float(np.median(norms))}


def survey(matrix: Matrix, damaged_below: float | None, progress: Progress | None) -> RowSurvey:
    """Read all rows once and say which are healthy.

    Parameters
    ----------
    matrix : Matrix
    damaged_below : float or None
        Rows of a smaller norm are damaged; None: the gap between norms decides.
    progress : Progress or None
    """
    reader = RowReader(replace(matrix, output=None), progress=progress)
    found = Norms()
    reader.sift([found])
    small, _ = find_small_rows(found, damaged_below)
    norms = np.full(matrix.n, np.nan)
    norms[found.index()] = found.values()
    norms[reader.census.zero] = 0.0
    healthy = reader.takes_part.copy()
    healthy[small] = False
    facts = Facts.of(matrix)
    kinds: tuple[tuple[RowState, IntArray], ...] = (
        ("zero", reader.census.zero),
        ("non-finite", reader.census.nonfinite),
        ("damaged", small),
    )
    states = {row: state for state, rows in kinds for row in rows.tolist()}
    states = {r: s for r, s in states.items() if s != "zero" or not facts.is_padding(r)}
    return RowSurvey(matrix, norms, healthy, states)
