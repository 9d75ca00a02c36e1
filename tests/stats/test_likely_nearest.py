"""Neighbors from leading coordinates are true rows with exact cosines, and the recall is true."""

from __future__ import annotations

import numpy as np
import pytest

import embgeo
from embgeo.core.arrays import FloatArray
from embgeo.core.matrix import Matrix
from embgeo.core.rows import CANDIDATES
from embgeo.measure import analyze as measuring
from embgeo.report.analysis import describe_recall
from embgeo.stats import likely_nearest as likely

N, D, K = 900, 40, 10


def make_rows(decay: float) -> FloatArray:
    """Rows in small groups; their directions get shorter by a power of their number."""
    rng = np.random.default_rng(5)
    scales = np.arange(1.0, D + 1.0) ** -decay
    centers = np.repeat(rng.standard_normal((N // 3, D)), 3, axis=0)
    return np.asarray((centers + 0.5 * rng.standard_normal((N, D))) * scales + 0.05)


def search_all(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -2.0)
    return np.argsort(-cosines, axis=1)[:, :K], cosines


def analyze(rows: FloatArray, monkeypatch: pytest.MonkeyPatch, most: int = 0) -> embgeo.Analysis:
    monkeypatch.setattr(measuring, "PAGE_PRODUCTS", most)
    return embgeo.analyze(
        Matrix(rows), neighbors_of="page", sections=["projection", "tokens"], reference=False
    )


def test_what_is_found_are_rows_with_their_cosines(monkeypatch: pytest.MonkeyPatch) -> None:
    for width, least in (((2,), 0.1), ((40,), 1.0)):
        monkeypatch.setattr(likely, "WIDTHS", width)
        rows = make_rows(0.3)
        nearest = analyze(rows, monkeypatch).nearest
        assert nearest is not None
        true, cosines = search_all(rows)
        found = np.take_along_axis(cosines, nearest.neighbors, axis=1)
        assert np.allclose(nearest.cosines, found, atol=1e-7)
        assert (np.diff(nearest.cosines, axis=1) <= 0).all()
        share = np.mean(
            [np.isin(t, f).mean() for t, f in zip(true, nearest.neighbors, strict=True)]
        )
        assert share >= least
        assert (share == 1.0) == (width == (40,))
        assert nearest.recall == pytest.approx(share, abs=0.02)


def test_as_many_coordinates_are_used_as_hold_the_true_neighbors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(likely, "WIDTHS", (1, 4, 16, 40))
    widths: list[int] = []
    choose = likely.choose_candidates
    monkeypatch.setattr(
        likely, "choose_candidates", lambda c, q: widths.append(c.shape[1]) or choose(c, q)
    )
    for decay, width in ((2.0, 4), (0.3, 16)):
        nearest = analyze(make_rows(decay), monkeypatch).nearest
        assert nearest is not None
        assert widths[-1] == width
        assert nearest.recall > 0.98


def test_candidates_have_the_largest_products() -> None:
    rows = np.random.default_rng(1).standard_normal((1000, 5)).astype(np.float32)
    asked = np.array([3, 999])
    for query, found in zip(asked, likely.choose_candidates(rows, asked), strict=True):
        products = rows @ rows[query]
        products[query] = -np.inf
        best = np.argsort(-products)[: len(found)]
        assert CANDIDATES <= len(found) <= 2 * CANDIDATES
        assert set(found.tolist()) == set(best.tolist())


def test_equal_rows_are_candidates_in_bounded_number() -> None:
    rows = np.ones((5000, 3), dtype=np.float32)
    [found] = likely.choose_candidates(rows, np.array([7]))
    assert len(set(found.tolist()) - {7}) == CANDIDATES


def test_up_to_a_limit_all_pairs_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = make_rows(0.3)
    true, _ = search_all(rows)
    products = N * N * D // 2
    monkeypatch.setattr(likely, "WIDTHS", (2,))
    for most, exact in ((products, True), (products - 1, False)):
        analysis = analyze(rows, monkeypatch, most)
        nearest = analysis.nearest
        assert nearest is not None
        assert (nearest.recall == 1.0) is exact
        assert np.array_equal(nearest.neighbors, true) is exact
        assert ("leading coordinates" in describe_recall(analysis)) is not exact


def test_only_the_page_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hubs and dimensions are those of a sample, as without the option."""
    monkeypatch.setattr(likely, "WIDTHS", (2,))
    rows = make_rows(0.3)
    plain = embgeo.analyze(rows, sections=["projection", "tokens"], reference=False)
    found = analyze(rows, monkeypatch)
    assert [s.value for s in found.scalars] == [s.value for s in plain.scalars]
