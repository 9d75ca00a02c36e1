"""Subspace distance and principal angles where they are known on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from embgeo.core.matrix import Matrix
from tests.support.matrices import analyze_matrix, gaussian, rng

approx = pytest.approx
M = 50


def value(found, name):
    return found[name].value


def subspace(X, Y):
    return analyze_matrix(Matrix(X, output=Matrix(Y)), 11, sections=("subspace",))


def orthonormal(columns, seed, n=M):
    return np.linalg.qr(rng(seed).standard_normal((n, columns)))[0]


def test_rotated_and_rescaled_copies_span_the_same_space():
    X = gaussian(42, n=M, d=4)
    for mixing in (
        np.linalg.qr(gaussian(43, n=4, d=4))[0],
        gaussian(44, n=4, d=4),
        1e6 * np.eye(4),
        1e200 * np.eye(4),
    ):
        assert value(subspace(X, X @ mixing), "subspace.distance") < 1e-13


def test_given_principal_angles():
    angles = np.array([1e-9, 1e-5, 0.3, 1.2, np.pi / 2])
    Q = orthonormal(10, 46)
    X, Y = Q[:, :5], Q[:, :5] * np.cos(angles) + Q[:, 5:] * np.sin(angles)
    X, Y = X @ gaussian(47, n=5, d=5), Y @ gaussian(48, n=5, d=5)
    found = subspace(X, Y)
    seen = np.radians(found["subspace.principal_angles"].y["principal angle"])
    np.testing.assert_allclose(seen, angles, rtol=1e-5)
    # SciPy takes small angles from cosines where others are large, and loses those below 1e-8.
    np.testing.assert_allclose(seen, np.sort(subspace_angles(X, Y)), atol=3e-8)
    assert value(found, "subspace.distance") == approx(math.sqrt(np.mean(np.sin(angles) ** 2)))


def test_nearly_equal_spaces_do_not_cancel():
    """1 − cos² would give 0 below 1e-8."""
    for angle in (1e-4, 1e-7, 1e-9, 1e-11):
        Q = orthonormal(6, 49)
        Y = Q[:, :3] * math.cos(angle) + Q[:, 3:] * math.sin(angle)
        assert value(subspace(Q[:, :3], Y), "subspace.distance") == approx(angle, rel=1e-15 / angle)


def test_a_contained_space_of_other_width():
    X = gaussian(50, n=M, d=6)
    assert value(subspace(X, X[:, 2:4]), "subspace.distance") < 1e-13
    assert value(subspace(X[:, 2:4], X), "subspace.distance") < 1e-13


def test_half_contained():
    Q = orthonormal(8, 51)
    found = subspace(Q[:, :6], Q[:, 4:8])
    assert value(found, "subspace.distance") == approx(math.sqrt(2 / 4))
    assert "ranks 6 of the input and 4 of the output" in found["subspace.distance"].convention


def test_rank_deficient_matrices_use_their_numerical_rank():
    Q = orthonormal(4, 52)
    X = Q[:, :2] @ gaussian(53, n=2, d=5)
    found = subspace(X, Q[:, 2:4])
    assert "ranks 2 of the input" in found["subspace.distance"].convention
    assert value(found, "subspace.distance") == approx(1)


@pytest.mark.slow
def test_random_subspaces_lie_at_the_chance_level():
    p, q = 6, 3
    found = [subspace(orthonormal(p, 100 + i), orthonormal(q, 200 + i)) for i in range(60)]
    squares = np.array([value(f, "subspace.distance") ** 2 for f in found])
    assert {f["subspace.distance"].reference for f in found} == {math.sqrt(1 - p / M)}
    assert abs(squares.mean() - (1 - p / M)) < 4 * squares.std() / math.sqrt(60)


def test_damaged_rows_of_the_output_matrix_are_left_out():
    X, Y = gaussian(60, n=200, d=4), gaussian(61, n=200, d=4) + gaussian(60, n=200, d=4)
    dead = np.array([3, 50, 199])
    Y[dead] *= 1e-12
    found, alive = subspace(X, Y), np.delete(np.arange(200), dead)
    apart = subspace(X[alive], Y[alive])
    distances = [value(one, "subspace.distance") for one in (found, apart)]
    assert distances[0] == approx(distances[1], rel=1e-9)
    said = [note.text for note in found.notes if note.code == "damaged"]
    assert said == ["3 rows are left out of the subspace distance: damaged in the output matrix"]
