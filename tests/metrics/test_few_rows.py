"""Few rows of many columns: the numbers of the d×d path, in the memory of the rows."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.comparison import shared as joint
from embgeo.metrics import shared
from embgeo.stats import moments
from embgeo.stats.moments import are_few
from tests.support.matrices import rng
from tests.support.sampling import each_value

KINDS = ("plain", "long mean", "no mean", "equal", "rank")
CASES = [(40, 300, kind) for kind in KINDS] + [(100, 300, "plain"), (30, 60, "long mean")]
CASES += [(n, d, "plain") for n, d in ((8, 256), (2, 9), (1, 16))]


def make_rows(n: int, d: int, kind: str) -> np.ndarray[Any, Any]:
    g = rng(500 + n)
    rows = g.standard_normal((n, d)) * np.linspace(0.5, 2, n)[:, None]
    rows += 0.3 * g.standard_normal(d)
    if kind == "long mean":
        return 1e-3 * rows + 10.0 * g.standard_normal(d)
    if kind == "no mean":
        return rows - rows.mean(axis=0)
    if kind == "equal":
        return np.tile(rows[:1], (n, 1))
    if kind == "rank":
        rows[3], rows[5], rows[0] = rows[4], 2 * rows[6], 0.0
    return rows


def measure(rows: np.ndarray[Any, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if len(rows) > 9:
        options = {"counts": np.arange(len(rows), 0, -1) ** 2, "isotropy_rows": 10}
        options["isotropy_runs"] = 2
    found = embgeo.analyze(rows, reference=False, **options)
    numbers: dict[str, Any] = {}
    for one in found.scalars:
        numbers[one.name] = (one.value, one.standard_error, one.population_error)
    for one in found.series:
        numbers |= {f"{one.name}, {name}": y for name, y in one.y.items()}
    return numbers


@pytest.mark.parametrize(("n", "d", "kind"), CASES)
@pytest.mark.slow
def test_numbers_are_those_of_the_whole_matrix(
    n: int, d: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = make_rows(n, d, kind)
    found = measure(rows)
    for module in (shared, moments):
        monkeypatch.setattr(module, "are_few", lambda _n, _d: False)
    whole = measure(rows)
    assert found.keys() == whole.keys()
    for name, numbers in whole.items():
        given = [np.nan if one is None else one for one in numbers]
        mine = [np.nan if one is None else one for one in found[name]]
        # Of a mean of 10⁴ deviations the products keep fewer digits than the rows.
        lost = 1e-11 if kind == "long mean" else 1e-13
        np.testing.assert_allclose(mine, given, rtol=1e-9, atol=lost, err_msg=name)


@each_value
@pytest.mark.parametrize(("n", "d", "others"), [(12, 64, 64), (40, 60, 60), (12, 64, 40)])
@pytest.mark.parametrize("kind", ["apart", "equal rows", "long mean"])
def test_comparisons_are_those_of_the_whole_matrix(
    n: int, d: int, others: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    g = rng(502)
    first, second = g.standard_normal((n, d)), g.standard_normal((n, others))
    if kind == "equal rows":
        second = np.tile(second[:1], (n, 1))
    if kind == "long mean":
        first, second = first + 100.0, second + 50.0
    found = embgeo.diff(first, second).pairs[0]
    monkeypatch.setattr(joint, "are_few", lambda _n, _d: False)
    whole = embgeo.diff(first, second).pairs[0]
    for mine, given in zip(found.scalars, whole.scalars, strict=True):
        assert (mine.name, mine.undefined) == (given.name, given.undefined)
        for one, other in zip(
            (mine.value, mine.reference), (given.value, given.reference), strict=True
        ):
            assert one == (other if other is None else pytest.approx(other, rel=1e-9, abs=1e-12))
    for mine, given in zip(found.series, whole.series, strict=True):
        for name, y in given.y.items():
            np.testing.assert_allclose(mine.y[name], y, rtol=1e-9, atol=1e-9, err_msg=name)


def test_both_sides_of_few() -> None:
    assert are_few(4, 8)
    assert not are_few(5, 8)


@pytest.mark.slow
def test_a_matrix_of_few_rows_stays_within_its_memory() -> None:
    """8 × 8192 took 3.8 GB, and a fourth of the columns a sixteenth of it."""
    rows, states = (rng(501).standard_normal((n, 2048)).astype(np.float32) for n in (8, 50))
    options = {"counts": np.arange(8, 0, -1), "hidden": states}
    resources = embgeo.Resources(memory=64_000_000)
    tracemalloc.start()
    try:
        embgeo.analyze(rows, resources=resources, **options)
        embgeo.diff(rows, rows + 0.1 * rows[::-1], resources=resources)
        assert tracemalloc.get_traced_memory()[1] < 64_000_000
    finally:
        tracemalloc.stop()
