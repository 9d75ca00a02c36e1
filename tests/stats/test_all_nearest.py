"""The nearest rows of all rows, searched in tiles, against a search of every pair in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.measure.analyze import analyze
from embgeo.numerics.hubness import draw_order
from embgeo.stats import all_nearest
from embgeo.stats.all_nearest import AllNearest, find_all_nearest
from embgeo.stats.nearest import GRID
from embgeo.stats.reader import RowReader
from embgeo.stats.resources import Resources
from tests.support import naive
from tests.support.matrices import gaussian
from tests.support.sampling import each_value

K = 5


def search(rows: FloatArray, k: int = K, memory: int | None = None) -> tuple[IntArray, FloatArray]:
    reader = RowReader(Matrix(rows), Resources(memory=memory))
    return find_all_nearest(reader, np.arange(len(rows)), k, "")


def search_slowly(rows: FloatArray, k: int = K) -> tuple[IntArray, FloatArray]:
    """Cosines of all pairs on the grid; equal ones by chance."""
    wide = rows.astype(np.float64)
    wide /= np.abs(wide).max(axis=1, keepdims=True)
    unit = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    cosines = np.round(unit @ unit.T * GRID) / GRID
    np.fill_diagonal(cosines, -np.inf)
    every = np.arange(len(rows))
    near = np.lexsort((draw_order(every[:, None], every), -cosines))[:, :k]
    return near, np.take_along_axis(cosines, near, axis=1)


def draw(kind: str) -> FloatArray:
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((230, 9)) + 0.5
    if kind == "equal":
        rows[40:160] = rows[40]
    elif kind == "close":  # nearer than float32 can tell
        rows[40:160] = rows[40] + 0.01 * rows[40:160]
    elif kind == "narrow":
        rows = 1.0 + 1e-9 * rows
    elif kind == "huge":
        rows *= np.logspace(-300, 300, len(rows))[:, None]
    elif kind == "equal by some":
        rows[40 : 40 + all_nearest.FURTHER] = rows[40]
    elif kind == "single":
        return np.asarray(rows, dtype=np.float32)
    elif kind == "wide":
        return np.hstack([rows] + [rng.standard_normal(rows.shape) for _ in range(4)])
    return rows


@each_value
@pytest.mark.parametrize("tile", [16, 45, 2048])
@pytest.mark.parametrize("kind", ["spread", "equal", "close", "narrow", "huge", "single", "wide"])
def test_tiles_find_what_all_pairs_find(
    kind: str, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_nearest, "TILE", tile)
    rows = draw(kind)
    near, cosines = search(rows)
    expected, values = search_slowly(rows)
    assert np.abs(cosines - values).max() <= 2.0 / GRID
    if kind != "narrow":  # where most cosines differ by less than their rounding
        assert np.array_equal(near, expected)
    every, reader = np.arange(len(rows)), RowReader(Matrix(rows), Resources())
    searched = AllNearest(rows.__getitem__, rows.shape, K, every).search(reader, "", exact=False)
    assert np.array_equal(searched[0], near)


def test_of_few_columns_tiles_far_apart_are_not_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_nearest, "TILE", 32)
    compared = []
    compare = all_nearest.AllNearest.compare
    monkeypatch.setattr(
        all_nearest.AllNearest, "compare", lambda *given: compared.append(1) or compare(*given)
    )
    rng = np.random.default_rng(3)
    angle = rng.uniform(0.0, 6.2, 512)
    rows = np.stack([np.cos(angle), np.sin(angle), *(0.01 * rng.standard_normal((6, 512)))], axis=1)
    near, _ = search(rows)
    assert np.array_equal(near, search_slowly(rows)[0])
    assert len(compared) < 16 + 120 / 4  # 16 tiles with themselves, 120 pairs


@pytest.mark.parametrize("kind", ["spread", "equal by some", "equal", "narrow", "huge"])
def test_a_tree_finds_what_all_pairs_find(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few columns; where too many rows are equally near, products find what the tree cannot."""
    rows, answers = draw(kind), []
    by_tree = all_nearest.AllNearest.search_in_tree
    monkeypatch.setattr(
        all_nearest.AllNearest,
        "search_in_tree",
        lambda *given: answers.append(by_tree(*given)) or answers[-1],
    )
    for columns in (2, all_nearest.FEW, all_nearest.FEW + 1):
        near, cosines = search(rows[:, :columns])
        expected, values = search_slowly(rows[:, :columns])
        assert np.abs(cosines - values).max() <= 2.0 / GRID
        if kind != "narrow":
            assert np.array_equal(near, expected)
    assert answers == [kind not in ("equal", "narrow")] * 2


@pytest.mark.parametrize(("bytes_of_entry", "tiled"), [(12, True), (5, True), (4, False)])
def test_rows_that_do_not_fit_into_memory_are_read_again(
    bytes_of_entry: int, tiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, searches = draw("equal"), []
    whole = all_nearest.AllNearest.search
    monkeypatch.setattr(
        all_nearest.AllNearest, "search", lambda *given: searches.append(1) or whole(*given)
    )
    expected = search(rows)
    near, cosines = search(rows, memory=len(rows) * 9 * bytes_of_entry)
    assert len(searches) == 1 + tiled
    assert np.array_equal(near, expected[0])
    assert np.array_equal(cosines, expected[1])


def test_fewer_rows_than_neighbors_leave_places_empty() -> None:
    for memory in (None, 1):
        near, cosines = search(draw("spread")[:4], memory=memory)
        assert np.array_equal(near[:, 3:], np.full((4, 2), -1))
        assert np.isneginf(cosines[:, 3:]).all()
        assert np.array_equal(near[:, :3], search_slowly(draw("spread")[:4], 3)[0])


# --- Every pair, met once by blocks on several threads, next to the whole matrix of cosines -------


#: One block, an even and an odd number of blocks, and a last one of a single row.
SIZES = (30, 256, 300, 321)


@each_value
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.slow
def test_every_pair_is_met_once(monkeypatch, n, dtype, threads):
    monkeypatch.setattr("embgeo.metrics.pairs.BLOCK_ROWS", 64)
    W = (gaussian(81, n=n, d=5) + 0.4).astype(dtype)
    expected = np.sort(naive.pair_cosines(W.astype(np.float64)))
    for kept in (10**6, 0):
        monkeypatch.setattr("embgeo.metrics.pairs.KEPT_PAIRS", kept)
        found = analyze(
            Matrix(W),
            sections=("cosine",),
            options=Options(pairs=None),
            reference=False,
            resources=replace(Resources(), threads=threads),
        )
        histogram = found["cosine.histogram"]
        assert histogram.counts.sum() == n * (n - 1) // 2
        share = found["cosine.positive_share"].value
        assert share == pytest.approx(np.mean(expected > 0), abs=2 / len(expected))
        aperture = np.degrees(np.arccos(expected[0]))
        assert found["cosine.cone_aperture"].value == pytest.approx(aperture, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kept", [10**6, 0])
def test_orthogonal_rows_have_no_positive_cosine(monkeypatch, kept, dtype):
    monkeypatch.setattr("embgeo.metrics.pairs.KEPT_PAIRS", kept)
    found = analyze(
        Matrix(3 * np.eye(12, dtype=dtype)),
        sections=("cosine",),
        options=Options(pairs=None),
        reference=False,
    )
    assert found["cosine.positive_share"].value == 0.0


def test_opposite_rows_are_180_degrees_apart_in_float32(monkeypatch):
    """An arccos of a cosine in float32 would be off by hundredths of a degree here."""
    monkeypatch.setattr("embgeo.metrics.pairs.KEPT_PAIRS", 0)
    row = gaussian(82, n=1, d=7).astype(np.float32)
    W = np.vstack([row, -2 * row, 3 * row])
    found = analyze(Matrix(W), sections=("cosine",), options=Options(pairs=None), reference=False)
    assert found["cosine.cone_aperture"].value == pytest.approx(180.0, abs=1e-5)
