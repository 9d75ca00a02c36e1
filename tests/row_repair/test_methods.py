"""New rows: their mean and covariance are those of the rows that live."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.core.matrix import Matrix
from embgeo.row_repair.methods import make_rows, measure_living
from tests.support.matrices import rng
from tests.support.refusals import refusal

W = rng(0).standard_normal((900, 6)) @ rng(1).standard_normal((6, 6)) + 2.0
LIVING = np.arange(100, 900)


def drawn(method, count=20_000, named=None, dtype=np.float64):
    living = measure_living(Matrix(W), LIVING)
    return make_rows(living, count, method, named, "test", 0, np.dtype(dtype))


def test_drawn_rows_have_the_mean_and_the_covariance_of_the_others():
    rows = drawn("draw", 200_000)
    expected = np.cov(W[LIVING].T, bias=True)
    np.testing.assert_allclose(rows.mean(axis=0), W[LIVING].mean(axis=0), atol=0.05)
    np.testing.assert_allclose(np.cov(rows.T), expected, atol=0.03 * expected.max())


def test_rows_along_the_mean_have_the_median_norm():
    rows = drawn("mean")
    center = W[LIVING].mean(axis=0)
    median = np.median(np.linalg.norm(W[LIVING], axis=1))
    np.testing.assert_allclose(
        rows.mean(axis=0), center * median / np.linalg.norm(center), rtol=0.05
    )
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), median, rtol=0.11)


def test_copies_keep_the_norm_of_the_token():
    rows = drawn("copy", named=W[7])
    apart = np.linalg.norm(rows - W[7], axis=1)
    np.testing.assert_allclose(apart, 0.1 * np.linalg.norm(W[7]), rtol=1e-9)


@pytest.mark.parametrize("rows", [np.ones((9, 3)), W])
def test_without_rows_to_draw_from_it_refuses(rows):
    living = np.arange(9) if len(rows) == 9 else np.array([3])
    with refusal():
        measure_living(Matrix(rows), living)


def test_a_type_that_does_not_hold_the_rows_is_refused():
    living = measure_living(Matrix(W * 1e6), LIVING)
    with refusal():
        make_rows(living, 3, "draw", None, "test", 0, np.dtype(np.float16))


@pytest.mark.parametrize(("times", "alone"), [(50.0, False), (1e20, True)])
def test_rows_that_are_very_long_are_not_drawn_from(times, alone):
    """One finite row of 1e20 would give all new rows norms of 1e18."""
    rows, median = W.copy(), np.median(np.linalg.norm(W[LIVING], axis=1))
    rows[-1] *= times * median / np.linalg.norm(rows[-1])
    living = measure_living(Matrix(rows), LIVING)
    expected = rows[LIVING[:-1] if alone else LIVING].mean(axis=0)
    np.testing.assert_allclose(living.mean, expected)
    assert living.median == pytest.approx(median, rel=0.01)
