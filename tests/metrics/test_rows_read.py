"""Families say beforehand which rows they look at one by one, so that all are fetched at once.

A row that was not said would be a pass of its own where the matrix lies elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.measure.passes import Passes
from embgeo.metrics import suspects
from embgeo.stats.reader import RowReader
from tests.support.matrices import ASKED, NAMES, case, gaussian


class Watched:
    """Entries of a matrix that take down which rows were named one by one."""

    def __init__(self, data: np.ndarray[Any, Any]) -> None:
        self.data = data
        self.shape, self.dtype = data.shape, data.dtype
        self.rows: set[int] = set()

    def __getitem__(self, rows: Any) -> np.ndarray[Any, Any]:
        index = np.arange(len(self.data))[rows]
        self.rows |= set(index.tolist())
        return self.data[rows]


def check(matrix: Matrix, options: Options) -> int:
    """That every row that is read after the first pass was said; how many were."""
    watched = Watched(matrix.data)
    measurement = Passes(RowReader(replace(matrix, data=watched)), options)
    measurement.first_pass()
    said = [family.rows_read(measurement) for family in measurement.families]
    watched.rows.clear()
    statistics = measurement.request_second()
    read_by_second = set(watched.rows)
    measurement.reader.fold(statistics)
    measurement.shared.add(statistics)
    watched.rows.clear()
    for family in measurement.families:
        if family is not suspects.FAMILY:  # which rows may be alike is known after the second pass
            measurement.compute(family)
    every = set(np.concatenate(said).tolist())
    assert read_by_second | watched.rows <= every
    return len(every)


@pytest.mark.slow
def test_every_row_that_is_read_was_said() -> None:
    for name in NAMES:
        m = len(case(name).kept)
        options = Options(
            isotropy_rows=max(2, m // 3), isotropy_runs=2, show_neighbors=ASKED, pairs=50
        )
        assert check(replace(case(name).matrix, hidden=None), options)


@pytest.mark.parametrize("options", [Options(), Options(pairs=300)])
@pytest.mark.slow
def test_samples_of_larger_matrices_are_said(options: Options) -> None:
    """Few enough that not all rows are looked at anyway."""
    n = 9_000
    rows = check(Matrix(gaussian(200, n, 4)), options)
    assert rows < n or options.pairs == 100_000
