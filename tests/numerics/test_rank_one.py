"""The second eigendecomposition and its cheap product next to the ones that they replace."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.numerics.eigen import add_rank_one
from embgeo.numerics.eigen import block_rotation as cut
from tests.support.matrices import rng

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


@pytest.mark.parametrize("name", CASES)
def test_eigenpairs_after_an_outer_product_is_added(name):
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
    q = rotation(600)
    found = cut(q)
    assert found is not None
    assert found.left.shape[1] < 0.3 * 600
    rows = rng(74).standard_normal((50, 600)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    np.testing.assert_allclose(found.apply(rows), rows @ q, atol=5e-7)


def test_a_matrix_that_is_not_nearly_block_diagonal_is_left_alone():
    assert cut(np.linalg.qr(rng(75).standard_normal((600, 600)))[0]) is None
    assert cut(rotation(100)) is None


def test_blocks_need_not_divide_the_width():
    q = rotation(650)
    found = cut(q)
    rows = rng(76).standard_normal((3, 650)).astype(np.float32) / 25
    np.testing.assert_allclose(found.apply(rows), rows @ q, atol=5e-7)
