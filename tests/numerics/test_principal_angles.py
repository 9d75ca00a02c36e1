"""Angles between subspaces, beside scipy, and ranks of columns of very different norms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from embgeo.numerics.principal_angles import column_basis, principal_cosines_and_sines


def test_angles_agree_with_scipy() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 5)), rng.standard_normal((30, 3))
    cosines, sines = principal_cosines_and_sines(column_basis(x, 30), column_basis(y, 30))
    np.testing.assert_allclose(np.arctan2(sines, cosines), subspace_angles(x, y)[::-1], rtol=1e-10)


@pytest.mark.parametrize("angle", [1e-12, 1e-6, np.pi / 2 - 1e-9])
def test_small_and_large_angles_keep_their_digits(angle: float) -> None:
    x = np.eye(4)[:, :2]
    y = np.array([[np.cos(angle)], [0.0], [np.sin(angle)], [0.0]])
    cosines, sines = principal_cosines_and_sines(x, y)
    assert sines[0] == pytest.approx(np.sin(angle), rel=1e-14)
    assert cosines[0] == pytest.approx(np.cos(angle), rel=1e-14)


@pytest.mark.parametrize("factor", [1e-18, 1e-100, 1e18])
def test_a_column_of_another_size_counts_as_a_dimension(factor: float) -> None:
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
