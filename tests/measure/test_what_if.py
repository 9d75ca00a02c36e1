"""The numbers after a treatment are those of an analysis of the treated matrix."""

from dataclasses import replace

import numpy as np
import pytest

import embgeo
from embgeo.core import treated as core_treated
from embgeo.core.arrays import FloatArray
from embgeo.core.treated import TREATMENTS, UNIT
from embgeo.measure import what_if
from embgeo.measure.passes import open_rows
from embgeo.metrics import Facts
from embgeo.stats.resources import Resources

SECTIONS = ("spectrum", "cosine", "isotropy", "projection")
N, D = 400, 8


def make_rows(seed: int = 2) -> FloatArray:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.standard_normal((N, D)) * np.linspace(3.0, 0.4, D) + 1.5)


def treat(rows: FloatArray, name: str) -> FloatArray:
    """The treatment as the papers write it, by another way than the code."""
    base = name.removesuffix(UNIT)
    if base != "none":
        rows = rows - rows.mean(axis=0)
        u, s, vt = np.linalg.svd(rows, full_matrices=False)
        if base.startswith("top-"):
            s = np.where(np.arange(D) < int(base[-1]), 0.0, s)
        elif base == "whiten":
            s, vt = np.full(D, np.sqrt(N)), np.eye(D)
        rows = u * s @ vt
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) if name.endswith(UNIT) else rows


@pytest.fixture(scope="module")
def measured() -> dict[str, what_if.Treated]:
    treated = embgeo.analyze(make_rows(), sections=SECTIONS, reference=False).treated
    return {one.name: one for one in treated}


def test_every_treatment_is_measured(measured: dict[str, what_if.Treated]) -> None:
    assert list(measured) == [name + unit for name in TREATMENTS for unit in ("", UNIT)]


@pytest.mark.slow
def test_numbers_are_those_of_the_treated_matrix(measured: dict[str, what_if.Treated]) -> None:
    for name in [name + unit for name in TREATMENTS for unit in ("", UNIT)]:
        rows, one = treat(make_rows(), name), measured[name]
        found = embgeo.analyze(rows, sections=SECTIONS, reference=False)
        assert one.mean_cosine == pytest.approx(found["cosine.mean"].value, abs=1e-10)
        assert one.effective_rank == pytest.approx(found["spectrum.effective_rank"].value, rel=1e-7)
        assert one.top_share == pytest.approx(found["spectrum.top_share"].value, rel=1e-10)
        assert (one.i1 is None) == (name == "whiten")
        if one.i1 is not None:
            assert one.i1 == pytest.approx(found["isotropy.i1_unit_rows"].value, rel=1e-7)
            xy = found["projection.svd2"].xy
            signs = np.sign((xy * one.xy).sum(axis=0))
            assert np.allclose(one.xy * signs, xy, atol=1e-5)
        if one.neighbors.size:
            assert found.nearest is not None
            assert np.array_equal(one.neighbors, found.nearest.neighbors)
        assert bool(one.neighbors.size) == (name != "none" and not name.endswith(UNIT))


def test_the_lines_of_numpy_apply_it(measured: dict[str, what_if.Treated]) -> None:
    for name, one in measured.items():
        held = {"W": make_rows(), "np": np}
        exec(core_treated.CODE[name.removesuffix(UNIT)], held)
        if name.endswith(UNIT):
            exec(core_treated.UNIT_CODE, held)
        rows = np.asarray(held["W"])
        total = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).sum(axis=0)
        assert one.mean_cosine == pytest.approx((total @ total - N) / (N * (N - 1)), abs=1e-10)
        energy = np.linalg.svd(rows, compute_uv=False) ** 2
        assert one.top_share == pytest.approx(energy[0] / energy.sum(), rel=1e-10)


def test_cosines_of_sampled_pairs_have_their_mean(measured: dict[str, what_if.Treated]) -> None:
    for one in measured.values():
        middles = np.linspace(-1.0, 1.0, what_if.BINS, endpoint=False) + 1.0 / what_if.BINS
        mean = float((one.cosines @ middles) / one.cosines.sum())
        assert mean == pytest.approx(one.mean_cosine, abs=0.02)


def test_large_matrices_have_no_neighbors_and_larger_ones_no_treatments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def count(products: int, pairs: int) -> tuple[int, int]:
        monkeypatch.setattr(core_treated, "MOST_PRODUCTS", products)
        monkeypatch.setattr(what_if, "MOST_NEIGHBOR_PRODUCTS", pairs)
        found = embgeo.analyze(make_rows(), sections=SECTIONS, reference=False).treated
        return len(found), sum(one.neighbors.size > 0 for one in found)

    numbers, pairs = 12 * N * D * D, 5 * N * N * D // 2
    assert count(numbers, pairs) == (12, 5)
    assert count(numbers, pairs - 1) == (12, 0)
    assert count(numbers - 1, pairs) == (0, 0)


def test_where_neighbors_of_all_rows_were_asked_for_a_large_matrix_has_treatments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def count(asked: int, memory: int | None = None) -> tuple[int, int]:
        monkeypatch.setattr(what_if, "MOST_ASKED_PRODUCTS", asked)
        found = embgeo.analyze(
            make_rows(),
            sections=(*SECTIONS, "tokens"),
            reference=False,
            neighbors_of="all",
            resources=Resources(memory=memory),
        ).treated
        return len(found), sum(one.neighbors.size > 0 for one in found)

    monkeypatch.setattr(core_treated, "MOST_PRODUCTS", 0)
    monkeypatch.setattr(what_if, "MOST_NEIGHBOR_PRODUCTS", 0)
    monkeypatch.setattr(what_if, "COPIES", 2**30)
    pairs = 5 * N * N * D // 2
    assert count(pairs) == (12, 5)
    assert count(pairs - 1) == (12, 0)
    assert count(pairs, memory=2**33) == (0, 0)


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_a_row_that_is_the_mean_has_no_direction_after_it_is_subtracted(size: float) -> None:
    rows = size * make_rows()
    rows[0] = rows[1:].mean(axis=0)
    found = embgeo.analyze(rows, sections=SECTIONS, reference=False).treated
    assert {one.name for one in found} == {"none", "none" + UNIT}


def test_axes_point_to_the_side_of_the_mean(measured: dict[str, what_if.Treated]) -> None:
    for one in measured.values():
        centered = one.name in (*TREATMENTS, *(name + UNIT for name in TREATMENTS))
        assert centered or (one.xy.mean(axis=0) > 0).all()


@pytest.mark.parametrize(
    ("shape", "copies", "size", "treated"),
    [
        ((400, 8), 2**33 // (400 * 8 * 8), 1.0, True),  # as much as memory holds
        ((400, 8), 2**33 // (400 * 8 * 8) + 1, 1.0, False),
        ((11, 2), 5, 1.0, True),
        ((10, 2), 5, 1.0, False),  # no more rows than neighbors
        ((41, 40), 5, 1.0, True),
        ((40, 40), 5, 1.0, False),  # nor than columns
        ((400, 1), 5, 1.0, False),
        ((40, 2), 5, 0.7e-30, True),
        ((40, 2), 5, 0.4e-30, False),
    ],
)
def test_what_can_be_treated(
    shape: tuple[int, int], copies: int, size: float, treated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(what_if, "COPIES", copies)
    rows = size * (np.random.default_rng(3).random(shape) * 2 + 0.1)
    matrix = embgeo.Matrix(rows)
    reader = open_rows(matrix, embgeo.Options(), Resources(memory=2**33), None)
    facts = replace(Facts.of(matrix, embgeo.Options()), kept=np.arange(shape[0]))
    assert bool(what_if.treat_matrix(reader, facts)) is treated


def test_without_its_sections_nothing_is_treated() -> None:
    assert embgeo.analyze(make_rows(), sections=["spectrum"], reference=False).treated == ()


def test_a_comparison_measures_no_treatments_which_it_does_not_show() -> None:
    W = np.random.default_rng(0).standard_normal((60, 4))
    compared = embgeo.diff(embgeo.Matrix(W), embgeo.Matrix(W + 0.1))
    assert not any(member.analysis.treated for member in compared.members)
    assert embgeo.analyze(W).treated
