"""Damaged rows are found, left out of every statistic and noted, however the rows are read."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embgeo import analyze
from embgeo.core.errors import BadOption
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.measure.analyze import analyze as measure
from embgeo.stats.resources import Resources
from tests.support.matrices import gaussian
from tests.support.refusals import refusal

SECTIONS = ("spectrum", "cosine", "tokens")


def planted(n=200, d=8, rows=(3, 50, 51, 199), scale=1e-12, dtype=np.float64):
    W = gaussian(300, n, d)
    W[list(rows)] *= scale
    return W.astype(dtype)


def values(analysis):
    return {s.name: s.value for s in analysis.scalars}


@settings(max_examples=15)
@given(data=st.data())
@pytest.mark.slow
def test_planted_rows_are_found(data):
    """Shorter by a decade than all others, up to one row in twenty, in any stored type."""
    n, d = data.draw(st.integers(40, 300)), data.draw(st.integers(2, 24))
    dtype = data.draw(st.sampled_from([np.float32, np.float16, ml_dtypes.bfloat16]))
    W = gaussian(data.draw(st.integers(0, 999)), n, d)
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    count = data.draw(st.integers(max(1, n // 50), n // 20))
    rows = data.draw(st.permutations(range(n)))[:count]
    # A tenth, and some more than rounding may take back; float16 holds few smaller numbers.
    W[rows] *= data.draw(st.floats(1e-3, 0.09))
    found = measure(Matrix(W.astype(dtype)), sections=("spectrum",), reference=False)
    np.testing.assert_array_equal(found.rows, np.setdiff1d(np.arange(n), rows))


@pytest.mark.slow
def test_as_if_they_were_masked():
    """Every number is that of the matrix with those rows masked, but for the order of its sums."""
    W = planted()
    rows = np.array([3, 50, 51, 199])
    masked = measure(Matrix(W, masked={"by hand": rows}))
    found = measure(Matrix(W))
    theirs = values(masked)
    differ = {
        name
        for name, value in values(found).items()
        if theirs[name] != value and theirs[name] != pytest.approx(value, rel=1e-12)
    }
    of_all_rows = ("suspects.", "tokens.damaged", "tokens.norm")
    assert all(name.startswith(of_all_rows) for name in differ), differ
    assert "tokens.norm_rms" not in differ
    np.testing.assert_array_equal(found.rows, masked.rows)


def test_healthy_rows_are_read_once():
    heard = []

    class Heard:
        def start(self, what, _rows):
            heard.append(what)

        def advance(self, _rows):
            pass

    measure(Matrix(gaussian(301, 200, 8)), sections=("spectrum",), progress=Heard())
    assert not any("damaged" in what for what in heard)
    measure(Matrix(planted()), sections=("spectrum",), progress=Heard())
    assert sum("damaged" in what for what in heard) == 1


@pytest.mark.slow
def test_in_little_memory_and_on_a_device():
    pytest.importorskip("torch")
    W = planted(n=400, rows=range(20), dtype=np.float32)
    expected = measure(Matrix(W), sections=("spectrum", "cosine"))
    for resources in (Resources(memory=2**22, threads=2), Resources(device="torch-cpu")):
        found = measure(Matrix(W), sections=("spectrum", "cosine"), resources=resources)
        np.testing.assert_array_equal(found.rows, np.arange(20, 400))
        known = {name: value for name, value in values(expected).items() if value is not None}
        for name, value in known.items():
            assert values(found)[name] == pytest.approx(value, rel=1e-5, abs=1e-7), name


def test_a_limit_replaces_the_gap():
    W = gaussian(302, 100, 4)
    norms = np.linalg.norm(W, axis=1)
    limit = float(np.sort(norms)[30])
    found = analyze(W, min_norm=limit, sections=["spectrum"])
    np.testing.assert_array_equal(found.rows, np.flatnonzero(norms >= limit))
    assert len(analyze(planted(), min_norm=0, sections=["spectrum"]).rows) == 200


def test_a_limit_is_a_norm():
    for limit in (-1.0, float("nan"), float("inf"), "small"):
        with refusal(BadOption):
            Options(min_norm=limit)


def test_a_note_for_each_reason():
    W = planted()
    W[10], W[11:13, 0] = 0.0, np.nan
    notes = {note.code: note.text for note in analyze(W, sections=["spectrum"]).notes}
    assert notes["zero"] == "1 row is left out: exactly zero"
    assert notes["nonfinite"] == "2 rows are left out: non-finite"
    assert notes["damaged"].startswith("4 rows are left out: damaged, their norms are at most ")


def test_all_rows_below_the_limit():
    with refusal():
        analyze(planted(), min_norm=1e9)
