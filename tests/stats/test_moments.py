"""Sums of a scatter matrix that outlive it."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.metrics.shared import SharedStatistics
from embgeo.stats import Moments, moments
from embgeo.stats.block import Block
from tests.support.matrices import gaussian
from tests.support.refusals import refusal
from tests.support.sampling import each_value


@pytest.mark.parametrize("of", ["rows", "unit"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_kept_of_a_forgotten_scatter(of, dtype):
    W = (gaussian(70, n=50, d=6) + 0.4).astype(dtype)
    moments = Moments(6, of=of)
    moments.update(Block(np.arange(50), W))
    scatter, mean = moments.scatter, moments.mean
    moments.forget_scatter()
    assert moments.trace() == pytest.approx(np.trace(scatter), rel=1e-12)
    assert moments.squares() == pytest.approx(np.square(scatter).sum(), rel=1e-12)
    assert moments.along_mean() == pytest.approx(mean @ scatter @ mean, rel=1e-12)
    assert moments.n == 50
    with refusal(ValueError):
        moments.gram()
    assert moments.blank().trace() == 0.0


def test_scatter_of_more_columns_than_a_tile_of_its_mirror():
    W = gaussian(71, n=20, d=1100) + 0.4
    found = Moments(1100)
    found.update(Block(np.arange(20), W))
    centered = W - W.mean(axis=0)
    np.testing.assert_allclose(found.scatter, centered.T @ centered, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("of", ["rows", "unit"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_a_scatter_that_is_read_some_columns_at_a_time(monkeypatch, of, dtype):
    monkeypatch.setattr(moments, "COLUMN_ENTRIES", 40)
    W = (gaussian(72, n=50, d=11) + 0.4).astype(dtype)
    found = Moments(11, of=of)
    for start in range(0, 50, 20):
        part = np.arange(start, min(start + 20, 50))
        found.update(Block(part, W[part]))
    wide = W.astype(np.float64)
    rows = wide if of == "rows" else wide / np.linalg.norm(wide, axis=1)[:, None]
    centered = rows - rows.mean(axis=0)
    scatter, mean = centered.T @ centered, rows.mean(axis=0)
    precise = 1e-12 if of == "rows" or dtype is np.float64 else 1e-5
    np.testing.assert_allclose(found.scatter, scatter, rtol=precise, atol=precise)
    assert found.squares() == pytest.approx(np.square(scatter).sum(), rel=precise)
    assert found.along_mean() == pytest.approx(mean @ scatter @ mean, rel=precise)


def test_sums_in_float32_move_into_float64_on_the_way(monkeypatch):
    """After every second of five blocks, twice, with one block left."""
    monkeypatch.setattr(moments, "SINGLE_BLOCKS", 2)
    W = (gaussian(74, n=50, d=6) + 0.4).astype(np.float32)
    found = Moments(6, single=True)
    waiting = []
    for part in np.array_split(np.arange(50), 5):
        found.update(Block(part, W[part]))
        waiting.append(found._recent_blocks)
    assert waiting == [1, 2, 1, 2, 1]
    centered = W.astype(np.float64) - W.mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(found.scatter, centered.T @ centered, rtol=1e-5, atol=1e-4)


@each_value
@pytest.mark.parametrize("n", [0, 1, 7])
@pytest.mark.parametrize("kind", ["rows", "unit"])
def test_few_rows_give_the_sums_of_their_scatter_matrix(n, kind):
    """Merged from two workers of two blocks each, beside the matrix."""
    d, W = 20, gaussian(73, n=7, d=20) + 0.4
    found = []
    for few in (False, True):
        workers = [Moments(d, few=few, of=kind) for _ in range(2)]
        for number, part in enumerate(np.array_split(np.arange(n), 4)):
            workers[number // 2].update(Block(part, W[part]))
        workers[0].merge(workers[1])
        found.append(workers[0])
    whole, rows = found
    assert rows.n == whole.n
    close = {"rtol": 1e-12, "atol": 1e-13}
    np.testing.assert_allclose(rows.mean, whole.mean, **close)
    np.testing.assert_allclose(rows.scatter, whole.scatter, **close)
    np.testing.assert_allclose(rows.gram(), whole.gram(), **close)
    for centered in (False, True):
        values = whole.eigenvalues(centered)
        np.testing.assert_allclose(rows.eigenvalues(centered), values, atol=1e-12 * (1 + values[0]))
    for _ in range(2):
        np.testing.assert_allclose(rows.diagonal(), whole.diagonal(), **close)
        for name in ("trace", "squares", "along_mean"):
            expected = pytest.approx(getattr(whole, name)(), rel=1e-12, abs=1e-13)
            assert getattr(rows, name)() == expected, name
        rows.forget_scatter()
        whole.forget_scatter()
    with refusal(ValueError):
        rows.gram()


def make_rows(kind: str, n: int = 2000, d: int = 40) -> np.ndarray:
    decay = 1.5 if kind == "steep" else 0.35
    basis = np.linalg.qr(gaussian(74, n=d, d=d))[0]
    rows = (gaussian(75, n=n, d=d) * np.arange(1, d + 1) ** -decay) @ basis
    if kind == "cone":
        rows += 100.0
    if kind == "wide coordinate":
        rows[:, 3] *= 100.0
    if kind == "heavy norms":
        rows *= np.exp(2.0 * gaussian(76, n=n, d=1))
    return rows.astype(np.float32)


def test_probes_bound_what_rounding_does_to_eigenvalues():
    """The sums in float64 are the twin; blocks are merged from two workers."""
    for kind in ("even", "steep", "cone", "wide coordinate", "heavy norms"):
        W = make_rows(kind)
        found = []
        for probed in (True, False):
            workers = [Moments(40, probed=probed) for _ in range(2)]
            for number, part in enumerate(np.array_split(np.arange(len(W)), 11)):
                workers[number % 2].update(Block(part, W[part]))
            workers[0].merge(workers[1])
            found.append(workers[0])
        single, wide = found
        values, vectors = np.linalg.eigh(wide.scatter)
        errors = np.abs(np.linalg.eigvalsh(single.scatter) - values)
        bounds = single.bound_errors(vectors)
        assert errors.max() > 0.0
        assert (errors <= bounds).all()
        assert (bounds <= single.bound_errors() * (1 + 1e-12)).all()
        assert bounds.max() < 1e-5 * values[-1]
        assert wide.find_rounding() == 0.0
        np.testing.assert_allclose(single.mean, wide.mean, rtol=1e-12, atol=1e-15)
        before = single.find_rounding()
        single.forget_scatter()
        assert single.find_rounding() == before


@pytest.mark.parametrize("kind", ["even", "steep"])
def test_rounding_shows_or_does_not_at_every_scale(kind):
    for scale in (-30, 0, 30):
        probed, shared = Moments(40, probed=True), SharedStatistics()
        probed.update(Block(np.arange(2000), np.ldexp(make_rows(kind), scale)))
        shared.add([probed])
        assert shared.is_rough is (kind == "steep")


def test_rows_that_are_stored_in_float64_are_summed_in_float64():
    W = make_rows("even").astype(np.float64)
    found = [Moments(40, probed=probed) for probed in (True, False)]
    for moments_ in found:
        moments_.update(Block(np.arange(len(W)), W))
    np.testing.assert_array_equal(found[0].scatter, found[1].scatter)
    assert found[0].find_rounding() == 0.0
