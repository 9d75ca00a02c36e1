"""Families say beforehand which rows they look at one by one: parts of a matrix are asked for them.

A row that is read and was not said would be missing where a matrix is measured in parts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.measure.analysis import analyze
from embgeo.measure.passes import Progress, Run
from embgeo.metrics import FAMILIES, Seen
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
    run = Run(replace(matrix, data=watched), options, Progress())
    seen = Seen()
    families = [family for family in FAMILIES if not family.absent(run.context)]
    run.first_pass(families, seen)
    families = [family for family in families if not family.absent(run.context)]
    said = [family.rows_read(run.context, seen) for family in families]
    watched.rows.clear()
    statistics = [s for family in families for s in family.second(run.context, seen)]
    read_by_second = set(watched.rows)
    run.fold(statistics)
    seen.statistics |= {s.key: s for s in statistics}
    watched.rows.clear()
    for family in families:
        family.compute(run.context, seen)
    every = set(np.concatenate(said).tolist())
    assert read_by_second | watched.rows <= every
    return len(every)


@pytest.mark.parametrize("name", NAMES)
def test_every_row_that_is_read_was_said(name: str) -> None:
    m = len(case(name).kept)
    options = Options(
        isotropy_rows=max(2, m // 3), isotropy_runs=2, asked=ASKED, sphere=False, pairs=50
    )
    assert check(replace(case(name).matrix, hidden=None), options)


@pytest.mark.parametrize("options", [Options(sphere=False), Options(sphere=False, pairs=300)])
def test_samples_of_larger_matrices_are_said(options: Options) -> None:
    """Few enough that not all rows are looked at anyway."""
    n = 9_000
    rows = check(Matrix(gaussian(200, n, 4)), options)
    assert rows < n or options.pairs == 100_000


def test_without_further_passes_the_sphere_is_not_searched() -> None:
    matrix = Matrix(gaussian(201, 40, 4))
    run = Run(matrix, Options(sphere=True), Progress())
    seen = Seen()
    families = [family for family in FAMILIES if family.FAMILY == "isotropy"]
    run.first_pass(families, seen)
    run.context = replace(run.context, passes_absent="in parts")
    run.second_pass(families, seen)
    (value,) = (v for v in families[0].compute(run.context, seen) if v.name == "isotropy.i_sphere")
    assert value.value is None
    assert value.undefined == "in parts"
    assert analyze(matrix, sections=("isotropy",))["isotropy.i_sphere"].value is not None
