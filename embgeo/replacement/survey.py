"""Norms and states of all rows of a matrix, in one pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.core.special import RowState
from embgeo.metrics import Facts
from embgeo.metrics.row_norms import root_mean_square
from embgeo.stats import Norms
from embgeo.stats.reader import RowReader

#: Root mean square or median of the norms of the healthy rows.
Length = Literal["rms", "median"]


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
        """None for a masked row."""
        return self.states.get(row, "healthy" if self.healthy[row] else None)

    @cached_property
    def lengths(self) -> dict[Length, float]:
        """Root mean square and median of the healthy norms."""
        norms = self.norms[self.healthy]
        return {"rms": root_mean_square(norms), "median": float(np.median(norms))}


def survey(matrix: Matrix, damaged_below: float | None, progress: Progress | None) -> RowSurvey:
    """Read all rows once.

    Rows with a norm smaller than `damaged_below` are damaged; None: the gap between norms decides.
    """
    reader = RowReader(replace(matrix, output=None), progress=progress)
    found = Norms()
    reader.sift([found])
    small, _ = found.find_small(damaged_below)
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
