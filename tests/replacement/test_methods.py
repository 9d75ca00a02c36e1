"""What each method makes of a row, against slow and obvious versions."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.core.matrix import Matrix
from embgeo.core.special import SpecialToken
from embgeo.replacement.methods import mean, mean_cov, median_norm, output
from embgeo.replacement.methods.method import RowSource
from embgeo.replacement.record import ReplacedRow
from embgeo.replacement.replace import replace_rows
from embgeo.replacement.survey import RowSurvey, survey
from tests.support.matrices import gaussian

N, D = 90, 6
DEAD = np.array([4, 11, 70])


def damaged_matrix() -> np.ndarray:
    W = gaussian(3, N, D) + 0.5
    W[4], W[11] = 0.0, np.inf
    W[70] *= 1e-9
    return W


def source(seed: int = 0) -> RowSource:
    found = survey(Matrix(damaged_matrix()), None, None)
    other = survey(Matrix(gaussian(8, N, D)), None, None)
    return RowSource(found, other, False, None, 0, seed)


def healthy_rows() -> list[np.ndarray]:
    return [row for place, row in enumerate(damaged_matrix()) if place not in DEAD]


def scaled(direction: np.ndarray, norm: float) -> np.ndarray:
    return direction / np.sqrt(np.sum(direction**2)) * norm


def rms() -> float:
    return float(np.sqrt(np.mean([np.sum(row**2) for row in healthy_rows()])))


def values(made: tuple[ReplacedRow, ...]) -> np.ndarray:
    import base64

    return np.array([np.frombuffer(base64.b64decode(one.values), "<f8") for one in made])


def test_states() -> None:
    found = source().input
    assert found.states == {4: "zero", 11: "non-finite", 70: "damaged"}
    assert np.array_equal(np.flatnonzero(~found.healthy), DEAD)
    assert found.lengths["rms"] == pytest.approx(rms(), rel=1e-14)
    median = np.median([np.linalg.norm(row) for row in healthy_rows()])
    assert found.lengths["median"] == pytest.approx(median, rel=1e-14)


def test_the_zero_row_of_padding_is_as_intended() -> None:
    W = gaussian(3, N, D)
    W[[2, 5]] = 0.0
    matrix = Matrix(W, special=(SpecialToken("p", 2, ("pad",)),), masked={"m": np.array([7])})
    found = survey(matrix, None, None)
    assert found.states == {5: "zero"}
    assert (found.state(7), found.state(2), found.state(1)) == (None, None, "healthy")


def test_output_rows() -> None:
    made = replace_rows(source(), DEAD, output)
    U = gaussian(8, N, D)
    want = [scaled(U[row], rms()) for row in DEAD]
    np.testing.assert_allclose(values(made), want, rtol=1e-13)


def test_the_mean() -> None:
    want = scaled(sum(healthy_rows()) / len(healthy_rows()), rms())
    np.testing.assert_allclose(values(replace_rows(source(), DEAD, mean)), [want] * 3, rtol=1e-12)


def slow_draws(seed: int, rows: int) -> np.ndarray:
    """Each draw written out: the mean, and a random sum of the centered rows."""
    healthy = np.array(healthy_rows())
    center = healthy.mean(axis=0)
    z = np.random.default_rng(seed).standard_normal((len(healthy), rows))
    draws = []
    for place in range(rows):
        noise = sum(z[i, place] * (row - center) for i, row in enumerate(healthy))
        draws.append(center + np.sqrt(1e-5) * noise / np.sqrt(len(healthy)))
    return np.array(draws)


def test_draws_around_the_mean() -> None:
    want = [scaled(row, rms()) for row in slow_draws(5, 3)]
    made = values(replace_rows(source(5), DEAD, mean_cov))
    np.testing.assert_allclose(made, want, rtol=1e-12)
    assert not np.array_equal(made, values(replace_rows(source(6), DEAD, mean_cov)))
    assert np.array_equal(made, values(replace_rows(source(5), DEAD, mean_cov)))


def test_the_draws_have_the_share_of_the_covariance() -> None:
    every = np.arange(N)
    healthy = np.array(healthy_rows())
    draws = np.concatenate([mean_cov.compute(source(seed), every) for seed in range(60)])
    want = 1e-5 * np.cov(healthy.T, bias=True)
    np.testing.assert_allclose(np.cov(draws.T), want, atol=0.08 * np.abs(want).max())


def test_the_own_direction() -> None:
    made = replace_rows(source(), np.array([70]), median_norm)
    median = np.median([np.linalg.norm(row) for row in healthy_rows()])
    np.testing.assert_allclose(values(made), [scaled(damaged_matrix()[70], median)], rtol=1e-13)


def test_tiny_directions_are_scaled_without_underflow() -> None:
    W = gaussian(3, N, D)
    W[4] *= 1e-300
    found = survey(Matrix(W), None, None)
    assert isinstance(found, RowSurvey)
    one = RowSource(found, None, False, None, 0, 0)
    made = values(replace_rows(one, np.array([4]), median_norm))
    np.testing.assert_allclose(np.linalg.norm(made), found.lengths["median"], rtol=1e-14)
