"""What each method makes of a row, against slow and obvious versions."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.core.matrix import Matrix
from embgeo.core.special import SpecialToken
from embgeo.row_repair.methods import RowSource, make_rows
from embgeo.row_repair.places import survey
from tests.support.matrices import gaussian

N, D = 90, 6
DEAD = np.array([4, 11, 70])


def damaged_matrix() -> np.ndarray:
    W = gaussian(3, N, D) + 0.5
    W[4], W[11] = 0.0, np.inf
    W[70] *= 1e-9
    return W


def source() -> RowSource:
    found = survey(Matrix(damaged_matrix()), None, None)
    other = survey(Matrix(gaussian(8, N, D)), None, None)
    return RowSource(found, other, False, None, 0)


def healthy_rows() -> list[np.ndarray]:
    return [row for place, row in enumerate(damaged_matrix()) if place not in DEAD]


def scaled(direction: np.ndarray, norm: float) -> np.ndarray:
    return direction / np.sqrt(np.sum(direction**2)) * norm


def rms() -> float:
    return float(np.sqrt(np.mean([np.sum(row**2) for row in healthy_rows()])))


def test_states() -> None:
    found = source().input
    assert found.states == {4: "zero", 11: "non-finite", 70: "damaged"}
    assert np.array_equal(np.flatnonzero(~found.healthy), DEAD)
    assert found.root_mean_square == pytest.approx(rms(), rel=1e-14)


def test_the_zero_row_of_padding_is_as_intended() -> None:
    W = gaussian(3, N, D)
    W[[2, 5]] = 0.0
    matrix = Matrix(W, special=(SpecialToken("p", 2, ("pad",)),), masked={"m": np.array([7])})
    found = survey(matrix, None, None)
    assert found.states == {5: "zero"}
    assert (found.state(7), found.state(2), found.state(1)) == (None, None, "healthy")


def test_output_rows() -> None:
    made = make_rows(source(), DEAD, "output")
    U = gaussian(8, N, D)
    want = [scaled(U[row], rms()) for row in DEAD]
    np.testing.assert_allclose(made, want, rtol=1e-13)


def test_the_mean() -> None:
    want = scaled(sum(healthy_rows()) / len(healthy_rows()), rms())
    np.testing.assert_allclose(make_rows(source(), DEAD, "mean"), [want] * 3, rtol=1e-12)


def test_tiny_directions_are_scaled_without_underflow() -> None:
    U = gaussian(8, N, D)
    U[4] *= 1e-300
    found = source().input
    one = RowSource(found, survey(Matrix(U), 0.0, None), False, None, 0)
    made = make_rows(one, np.array([4]), "output")
    np.testing.assert_allclose(np.linalg.norm(made), rms(), rtol=1e-14)
