"""Eigenpairs beside numpy's, their signs, their rank, and a device that fails."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from embgeo.numerics import eigen, rank_update
from embgeo.numerics.eigen import (
    Eigen,
    add_outside,
    add_rank_one,
    leading_eigen,
    signed_eigen,
    signed_eigen_of_rows,
)
from embgeo.numerics.eigen import block_rotation as cut
from embgeo.numerics.principal_angles import column_basis, principal_cosines_and_sines
from embgeo.numerics.rank_update import add_gram
from tests.support.matrices import rng
from tests.support.refusals import refusal
from tests.support.sampling import each_value


@pytest.mark.parametrize("largest_numpy", [0, 2048])
@pytest.mark.parametrize("with_mean", [False, True])
def test_eigenpairs_fall_and_their_signs_are_fixed(
    largest_numpy: int, with_mean: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eigen, "NUMPY_EIGH", largest_numpy)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    gram, mean = X.T @ X, X.mean(axis=0)
    found = signed_eigen(gram.copy(), mean if with_mean else None)
    np.testing.assert_allclose(found.values, np.linalg.svd(X, compute_uv=False) ** 2)
    np.testing.assert_allclose((found.vectors * found.values) @ found.vectors.T, gram, atol=1e-12)
    if with_mean:
        assert (mean @ found.vectors >= 0).all()
    else:
        largest = np.abs(found.vectors).argmax(axis=0)
        assert (found.vectors[largest, np.arange(6)] > 0).all()


@pytest.mark.parametrize(("rows", "d", "count"), [(60, 30, 10), (10, 30, 2), (5, 2, 2)])
def test_the_first_eigenpairs_are_those_of_all(rows: int, d: int, count: int) -> None:
    gram = np.cov(rng(5).standard_normal((rows, d)) * np.arange(1, d + 1), rowvar=False)
    every, first = signed_eigen(gram.copy(), None), leading_eigen(gram, count)
    assert np.abs(first.values - every.values).max() < 1e-14 * every.values[0] * d
    assert first.vectors.shape == (d, count)
    assert np.allclose(first.vectors, every.vectors[:, :count], atol=1e-12)


def test_a_device_that_fails_is_replaced() -> None:
    gram = np.diag([1.0, 3.0, 2.0])
    expected = signed_eigen(gram.copy(), None)
    found = signed_eigen(gram.copy(), None, lambda _: None)
    np.testing.assert_array_equal(found.values, expected.values)
    shifted = signed_eigen(gram, None, lambda g: np.linalg.eigh(2 * g))
    np.testing.assert_allclose(shifted.values, 2 * expected.values)


def test_the_rank_counts_what_rounding_cannot_make() -> None:
    vectors = np.eye(3)
    assert Eigen(np.array([1.0, 1e-10, 1e-17]), vectors).rank(100) == 2
    assert Eigen(np.array([1.0, 1e-10, 1e-17]), vectors).rank(10**7) == 1
    assert Eigen(np.zeros(3), vectors).rank(5) == 0


@pytest.mark.parametrize("power", [0.0, 3.0])
@pytest.mark.parametrize("with_mean", [False, True])
def test_few_rows_need_no_matrix(power: float, with_mean: bool) -> None:
    rng = np.random.default_rng(1)
    W = rng.standard_normal((7, 40)) * np.arange(1, 8)[:, None] ** -power
    W[6] = W[5]
    mean = W.mean(axis=0)
    found = signed_eigen_of_rows(W, mean if with_mean else None)
    whole = signed_eigen(W.T @ W, mean if with_mean else None)
    np.testing.assert_allclose(found.values, whole.values, atol=1e-13 * whole.values[0])
    assert found.vectors.shape == (40, 7)
    np.testing.assert_allclose(found.vectors[:, :6], whole.vectors[:, :6], atol=1e-9)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(7), atol=1e-13)
    assert found.rank(7) == whole.rank(7) == 6


def test_few_rows_have_the_two_directions_of_a_plane() -> None:
    for shape in ((0, 5), (1, 5), (3, 1), (1, 1)):
        found = signed_eigen_of_rows(np.ones(shape))
        d = shape[1]
        assert found.values.shape == (d,)
        k = min(d, max(2, shape[0]))
        np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-15)
        assert found.values[0] == pytest.approx(np.prod(shape))


def test_a_direction_outside_of_a_span_is_added() -> None:
    for outside in (1.0, 1e-6, 1e-12):
        basis = np.linalg.qr(np.random.default_rng(2).standard_normal((30, 6)))[0]
        inside, direction = basis[:, :5] @ np.arange(1.0, 6.0), basis[:, 5]
        found = add_outside(basis[:, :5], inside + outside * direction)
        np.testing.assert_allclose(found.T @ found, np.eye(6), atol=1e-14)
        assert abs(found[:, 5] @ direction) == pytest.approx(1.0, abs=1e-15 / outside)


def test_nothing_outside_of_a_span_adds_no_direction() -> None:
    basis = np.linalg.qr(np.random.default_rng(3).standard_normal((30, 30)))[0]
    x = np.arange(30.0)
    assert add_outside(basis, x) is basis
    half = basis[:, :9]
    assert add_outside(half, half @ (half.T @ x)) is half
    assert add_outside(half, np.zeros(30)) is half


# --- Angles between subspaces, beside scipy, and ranks of columns of very different norms ---------


def test_angles_agree_with_scipy() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 5)), rng.standard_normal((30, 3))
    cosines, sines = principal_cosines_and_sines(column_basis(x, 30), column_basis(y, 30))
    np.testing.assert_allclose(np.arctan2(sines, cosines), subspace_angles(x, y)[::-1], rtol=1e-10)


def test_small_and_large_angles_keep_their_digits() -> None:
    for angle in (1e-12, 1e-6, np.pi / 2 - 1e-9):
        x = np.eye(4)[:, :2]
        y = np.array([[np.cos(angle)], [0.0], [np.sin(angle)], [0.0]])
        cosines, sines = principal_cosines_and_sines(x, y)
        assert sines[0] == pytest.approx(np.sin(angle), rel=1e-14)
        assert cosines[0] == pytest.approx(np.cos(angle), rel=1e-14)


def test_a_column_of_another_size_counts_as_a_dimension() -> None:
    for factor in (1e-18, 1e-100, 1e18):
        x = np.random.default_rng(1).standard_normal((30, 4))
        plain = column_basis(x, 30)
        x[:, 2] *= factor
        scaled = column_basis(x, 30)
        assert scaled.shape == plain.shape == (30, 4)
        np.testing.assert_allclose(scaled @ scaled.T, plain @ plain.T, atol=1e-12)


def test_dependent_columns_count_once() -> None:
    x = np.random.default_rng(2).standard_normal((30, 3))
    assert column_basis(np.c_[x, x @ [1.0, 2.0, 3.0]], 30).shape == (30, 3)
    assert column_basis(np.zeros((5, 2)), 5).shape == (5, 0)


def test_the_rank_tolerance_is_that_of_the_taller_matrix() -> None:
    """A second singular value between 5·2⁻⁵² and 20,000·2⁻⁵² of the first."""
    x = np.array([[1.0, 1.0], [0.0, 1e-13], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    assert column_basis(x, 5).shape == (5, 2)
    assert column_basis(x, 20_000).shape == (5, 1)


# --- The second eigendecomposition and its cheap product next to the ones that they replace -------


CASES = {
    "plain": lambda g: (g.random(50), g.standard_normal(50)),
    "repeated": lambda g: (np.repeat(g.random(10), 5), g.standard_normal(50)),
    "all zero": lambda g: (np.zeros(20), g.standard_normal(20)),
    "rank-deficient": lambda g: (
        np.r_[np.zeros(10), g.random(10)],
        np.r_[np.zeros(5), g.standard_normal(15)],
    ),
    "no change": lambda g: (g.random(5), np.zeros(5)),
    "graded, small": lambda g: (np.logspace(0, -30, 40), g.standard_normal(40) * 1e-3),
    "graded, large": lambda g: (np.logspace(0, -30, 40), g.standard_normal(40) * 1e3),
    "nearly equal": lambda g: (1 + 1e-14 * g.random(30), g.standard_normal(30)),
    "far magnitude": lambda g: (g.random(50) * 1e200, g.standard_normal(50) * 1e100),
    "one": lambda g: (g.random(1), g.standard_normal(1)),
    "many": lambda g: (g.random(400), g.standard_normal(400)),
}


def test_eigenpairs_after_an_outer_product_is_added():
    for name in CASES:
        values, z = CASES[name](rng(71))
        values = np.sort(values)[::-1]
        found, q = add_rank_one(values, z)
        matrix = np.diag(values) + np.outer(z, z)
        size = max(float(matrix.max()), 1e-300)
        expected = np.linalg.eigvalsh(matrix / size)[::-1]
        np.testing.assert_allclose(found / size, expected, atol=1e-13 * max(1.0, expected[0]))
        np.testing.assert_allclose(q.T @ q, np.eye(len(q)), atol=1e-13)
        residual = (matrix / size) @ q - q * (found / size)
        assert np.abs(residual).max() <= 1e-13 * max(1.0, expected[0])


def rotation(d):
    return add_rank_one(np.sort(rng(72).random(d))[::-1], rng(73).standard_normal(d) / 5)[1]


def test_a_rotation_in_blocks_is_the_rotation():
    """The blocks need not divide the width."""
    for width in (600, 650):
        q = rotation(width)
        found = cut(q)
        assert found is not None
        assert found.left.shape[1] < 0.3 * width
        rows = rng(74).standard_normal((50, width)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        np.testing.assert_allclose(found.apply(rows), rows @ q, atol=5e-7)


def test_a_matrix_that_is_not_nearly_block_diagonal_is_left_alone():
    assert cut(np.linalg.qr(rng(75).standard_normal((600, 600)))[0]) is None
    assert cut(rotation(100)) is None


# --- XᵀX added in place by BLAS: the triangle that is asked for, and nothing else -----------------


@pytest.fixture(params=["compiled", "wrapped", "other integers"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """BLAS through ctypes, and with that path out of order."""
    found = rank_update._find_update, rank_update._find_stacking
    for one in found:
        one.cache_clear()
    if request.param == "wrapped":
        for library in ("blas", "lapack"):
            monkeypatch.setattr(f"scipy.linalg.cython_{library}.__pyx_capi__", {})
    if request.param == "other integers":
        for name in ("SYRK", "TPQRT"):
            monkeypatch.setattr(rank_update, name, ("long",))
    yield request.param
    for one in found:
        one.cache_clear()


def test_the_way_is_the_one_that_works(way: str) -> None:
    update = rank_update._find_update(np.dtype(np.float64))
    expected = "_compiled_update" if way == "compiled" else "_wrapped_update"
    assert update.__qualname__.startswith(expected)
    assert (rank_update._find_stacking() is not None) is (way == "compiled")


@each_value
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("width", [1, 3, 130])
@pytest.mark.parametrize("count", [0, 1, 5, 300])
def test_stacked_rows_have_the_factor_of_all_rows(width: int, count: int) -> None:
    rng = np.random.default_rng(2)
    first, more = rng.standard_normal((2 * width, width)), rng.standard_normal((count, width))
    found = rank_update.stack_rows(np.linalg.qr(first, mode="r"), more)
    exact = np.linalg.qr(np.vstack([first, more]), mode="r")
    assert np.array_equal(found, np.triu(found))
    np.testing.assert_allclose(np.abs(found), np.abs(exact), atol=1e-12)


@each_value
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


def test_memory_of_another_shape_is_not_written() -> None:
    for rows, into in (
        (np.zeros((4, 3)), np.zeros((3, 3), dtype=np.float32, order="F")),
        (np.zeros((4, 3)), np.zeros((4, 4), order="F")),
        (np.zeros((4, 3)), np.zeros((3, 3))),
        (np.zeros((4, 6))[:, ::2], np.zeros((3, 3), order="F")),
    ):
        with refusal(ValueError):
            add_gram(rows, into)
