"""Eigenpairs beside numpy's, their signs, their rank, and a device that fails."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.numerics import eigen
from embgeo.numerics.eigen import Eigen, eigenvalues, signed_eigen


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
def test_few_rows_need_no_other_decomposition(power: float) -> None:
    rng = np.random.default_rng(1)
    W = rng.standard_normal((7, 40)) * np.arange(1, 8)[:, None] ** -power
    W[6] = W[5]
    found = signed_eigen(W.T @ W, W.mean(axis=0), rows=7)
    values = np.linalg.eigvalsh(W @ W.T)[::-1]
    np.testing.assert_allclose(found.values[:7], values, atol=1e-13 * values[0])
    assert (found.values[6:] == 0).all()
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(40), atol=1e-13)
    np.testing.assert_allclose(
        (found.vectors * found.values) @ found.vectors.T, W.T @ W, atol=1e-12
    )
    assert (W.mean(axis=0) @ found.vectors >= 0).all()
    assert found.rank(7) == 6
    np.testing.assert_allclose(eigenvalues(W.T @ W, 7), found.values, atol=1e-13)
    assert signed_eigen(np.zeros((4, 4)), None, rows=1).rank(1) == 0
