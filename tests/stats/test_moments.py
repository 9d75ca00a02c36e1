"""Sums of a scatter matrix that outlive it."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.stats import Moments, moments
from embgeo.stats.block import Block
from tests.support.matrices import gaussian


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
    with pytest.raises(ValueError, match="forgotten"):
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


@pytest.mark.parametrize("n", [0, 1, 7])
@pytest.mark.parametrize("kind", ["rows", "unit", "weighted"])
def test_few_rows_give_the_sums_of_their_scatter_matrix(n, kind):
    """Merged from two workers of two blocks each, beside the matrix."""
    d, W = 20, gaussian(73, n=7, d=20) + 0.4
    options = {"weights": np.arange(1.0, 8.0)} if kind == "weighted" else {"of": kind}
    found = []
    for few in (False, True):
        workers = [Moments(d, few=few, **options) for _ in range(2)]
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
    with pytest.raises(ValueError, match="forgotten"):
        rows.gram()
