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
from embgeo.core.values import Scalar
from embgeo.measure.analyze import analyze
from embgeo.measure.passes import Measurement
from embgeo.metrics import FAMILIES
from embgeo.metrics.family import QUESTIONS
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
    measurement = Measurement(RowReader(replace(matrix, data=watched)), options)
    measurement.first_pass()
    said = [measurement.ask(family, "rows_read") for family in measurement.families]
    watched.rows.clear()
    statistics = measurement.collect("second")
    read_by_second = set(watched.rows)
    measurement.reader.fold(statistics)
    measurement.shared.add(statistics)
    watched.rows.clear()
    for family in measurement.families:
        measurement.compute(family)
    every = set(np.concatenate(said).tolist())
    assert read_by_second | watched.rows <= every
    return len(every)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_every_row_that_is_read_was_said(name: str) -> None:
    m = len(case(name).kept)
    options = Options(
        isotropy_rows=max(2, m // 3), isotropy_runs=2, show_neighbors=ASKED, sphere=False, pairs=50
    )
    assert check(replace(case(name).matrix, hidden=None), options)


@pytest.mark.parametrize("options", [Options(sphere=False), Options(sphere=False, pairs=300)])
@pytest.mark.slow
def test_samples_of_larger_matrices_are_said(options: Options) -> None:
    """Few enough that not all rows are looked at anyway."""
    n = 9_000
    rows = check(Matrix(gaussian(200, n, 4)), options)
    assert rows < n or options.pairs == 100_000


def test_without_further_passes_the_sphere_is_not_searched() -> None:
    matrix = Matrix(gaussian(201, 40, 4))
    measurement = Measurement(RowReader(matrix), Options(sphere=True), ["isotropy"])
    measurement.reader.passes_absent = "in parts"
    measurement.first_pass()
    measurement.second_pass()
    values = measurement.compute(measurement.families[0])
    (value,) = (v for v in values if isinstance(v, Scalar) and v.name == "isotropy.i_sphere")
    assert value.value is None
    assert value.undefined == "in parts"
    assert analyze(matrix, sections=("isotropy",))["isotropy.i_sphere"].value is not None


PARAMETERS = {
    "facts": "Facts",
    "reader": "RowReader",
    "shared": "SharedStatistics",
    "hidden": "HiddenStates | None",
}
#: What is not known before the rows were read.
LATE = {"absent": {"reader", "shared"}}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__.rpartition(".")[2])
def test_families_declare_what_they_are_given(family: Any) -> None:
    for question in QUESTIONS:
        if function := getattr(family, question, None):
            named = dict(function.__annotations__)
            named.pop("return")
            assert named.items() <= PARAMETERS.items(), question
            assert not named.keys() & LATE.get(question, set()), question
