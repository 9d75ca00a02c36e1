"""XᵀX added in place by BLAS: the triangle that is asked for, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from embgeo.numerics import rank_update
from embgeo.numerics.rank_update import add_gram


@pytest.fixture(params=["compiled", "wrapped", "other integers"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """BLAS through ctypes, and with that path out of order."""
    rank_update._find_update.cache_clear()
    if request.param == "wrapped":
        monkeypatch.setattr("scipy.linalg.cython_blas.__pyx_capi__", {})
    if request.param == "other integers":
        monkeypatch.setattr(rank_update, "ARGUMENTS", ("long",))
    yield request.param
    rank_update._find_update.cache_clear()


def test_the_way_is_the_one_that_works(way: str) -> None:
    update = rank_update._find_update(np.dtype(np.float64))
    expected = "_compiled_update" if way == "compiled" else "_wrapped_update"
    assert update.__qualname__.startswith(expected)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (3, 7), (0, 4)])
def test_the_upper_triangle_grows_by_the_gram_matrix(dtype: Any, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal(shape).astype(dtype)
    before = rng.standard_normal((shape[1], shape[1])).astype(dtype)
    into = np.array(before, order="F")
    add_gram(rows, into)
    upper = np.triu(np.ones_like(into, dtype=bool))
    expected = before + rows.astype(np.float64).T @ rows
    np.testing.assert_allclose(
        into[upper], expected[upper], rtol=1e-5 if dtype == np.float32 else 1e-12
    )
    np.testing.assert_array_equal(into[~upper], before[~upper])


def test_threads_add_to_sums_of_their_own() -> None:
    rows = np.random.default_rng(2).standard_normal((4, 500, 60))
    sums = [np.zeros((60, 60), order="F") for _ in rows]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add_gram, rows, sums))
    for part, into in zip(rows, sums, strict=True):
        np.testing.assert_allclose(into, np.triu(part.T @ part), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(
    ("rows", "into"),
    [
        (np.zeros((4, 3)), np.zeros((3, 3), dtype=np.float32, order="F")),
        (np.zeros((4, 3)), np.zeros((4, 4), order="F")),
        (np.zeros((4, 3)), np.zeros((3, 3))),
        (np.zeros((4, 6))[:, ::2], np.zeros((3, 3), order="F")),
    ],
)
def test_memory_of_another_shape_is_not_written(rows: Any, into: Any) -> None:
    with pytest.raises(ValueError, match="do not fit together"):
        add_gram(rows, into)
