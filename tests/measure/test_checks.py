"""What cannot be measured is refused before the work begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import BadOption
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.measure import passes
from embgeo.measure.analyze import Clock, analyze
from embgeo.metrics import shared
from embgeo.stats.resources import SQUARE_BYTES, Resources
from tests.stats.test_moments import make_rows
from tests.support.refusals import refusal


def test_a_matrix_of_too_many_columns_is_refused_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passes, "MOST_COLUMNS", 20)
    with refusal():
        analyze(Matrix(np.ones((8, 21))))
    analyze(Matrix(np.eye(8, 20)), sections=["spectrum"], reference=False)


@pytest.mark.parametrize(("shape", "entries"), [((40, 20), 20 * 20), ((5, 20), 5 * 20)])
def test_a_matrix_that_memory_cannot_hold_is_refused_before_it_is_read(
    shape: tuple[int, int], entries: int
) -> None:
    """Few rows need matrices of rows × columns only."""
    matrix, need = Matrix(np.eye(*shape)), SQUARE_BYTES * entries
    with refusal():
        analyze(matrix, resources=Resources(memory=need - 1))
    for memory in (need, None):
        found = analyze(
            matrix, resources=Resources(memory=memory), sections=["spectrum"], reference=False
        )
        assert found["spectrum.numerical_rank"] == min(shape)


@pytest.mark.parametrize(("size", "refused"), [(1.1e-140, 0.9e-140), (0.9e140, 1.1e140)])
def test_squares_of_entries_are_numbers(size: float, refused: float) -> None:
    passes.check_squarable(size, "array", "rescale")
    with refusal():
        passes.check_squarable(refused, "array", "rescale")


def test_three_tokens_spelled_alike_are_proposed() -> None:
    tokens = tuple(f"word{letter}" for letter in "abcdef")
    options = Options(show_neighbors=(("words", ()),))
    with refusal(BadOption):
        analyze(Matrix(np.eye(6), tokens=tokens), sections=["frequency"], options=options)


def test_stages_are_counted_with_the_reference() -> None:
    heard: list[str] = []
    progress: Any = SimpleNamespace(start=lambda what, _: heard.append(what), advance=lambda _: 0)
    for reference, stages in ((True, 5), (False, 4)):
        heard.clear()
        W = np.random.default_rng(0).standard_normal((40, 4))
        sections = ["spectrum", "cosine"]
        analyze(Matrix(W), sections=sections, reference=reference, progress=progress)
        seen = list(dict.fromkeys(what.partition(" ")[0] for what in heard))
        assert seen == [f"{number + 1}/{stages}" for number in range(stages)]
        assert heard[0] == f"1/{stages} first pass"
        assert f"4/{stages} cosine" in heard


def test_seconds_of_a_stage_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 11.0, 13.0, 16.00006])
    monkeypatch.setattr("embgeo.measure.analyze.time", SimpleNamespace(perf_counter=times.__next__))
    clock = Clock()
    for stage in ("first", "second", "first"):
        clock.lap(stage)
    assert clock.seconds == {"first": 4.0001, "second": 2.0}


def test_without_a_limit_wide_matrices_get_what_they_need() -> None:
    assert not Resources().explain_refusal(10**5, 16_384)
    refused = Resources(memory=2**30).explain_refusal(10**5, 16_384)
    assert "10,737 MB at 100,000 × 16,384" in refused
    assert "1,074 MB that are allowed" in refused
    assert not Resources(memory=2**28).explain_refusal(8, 8192)


# --- Scatter matrices that are summed in float32, and again in float64 where that would show ------


SECTIONS = ["spectrum", "cosine", "isotropy", "frequency"]
#: A gap between neighboring eigenvalues has the absolute error of these.
GAP = "isotropy.eigengap"


def measure(
    kind: str, n: int, monkeypatch: pytest.MonkeyPatch, least: float
) -> dict[str, float | None]:
    monkeypatch.setattr(shared, "PROBED", least)
    counts = np.floor(1e6 / np.arange(1.0, n + 1.0))
    found = embgeo.analyze(make_rows(kind, n), counts=counts, sections=SECTIONS, reference=False)
    return {scalar.name: scalar.value for scalar in found.scalars}


@pytest.mark.slow
def test_numbers_of_even_spectra_are_those_of_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    single, wide = (measure("even", 5000, monkeypatch, least) for least in (0, np.inf))
    assert single.keys() == wide.keys()
    assert single["spectrum.condition_number"] != wide["spectrum.condition_number"]
    for name, value in wide.items():
        close = {"rel": 1e-6, "abs": 1e-6 if name == GAP else 1e-9}
        assert single[name] == (None if value is None else pytest.approx(value, **close)), name


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["steep", "heavy norms"])
def test_sums_are_repeated_in_float64_where_rounding_would_show(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    single, wide = (measure(kind, 1000, monkeypatch, least) for least in (0, np.inf))
    assert single == wide
