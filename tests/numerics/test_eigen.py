"""Eigenpairs beside numpy's, their signs, their rank, and a device that fails."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.numerics import eigen
from embgeo.numerics.eigen import Eigen, add_outside, signed_eigen, signed_eigen_of_rows


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


@pytest.mark.parametrize("shape", [(0, 5), (1, 5), (3, 1), (1, 1)])
def test_few_rows_have_the_two_directions_of_a_plane(shape: tuple[int, int]) -> None:
    found = signed_eigen_of_rows(np.ones(shape))
    d = shape[1]
    assert found.values.shape == (d,)
    k = min(d, max(2, shape[0]))
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-15)
    assert found.values[0] == pytest.approx(np.prod(shape))


@pytest.mark.parametrize("outside", [1.0, 1e-6, 1e-12])
def test_a_direction_outside_of_a_span_is_added(outside: float) -> None:
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
