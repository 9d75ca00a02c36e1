"""The ridge of section 5 beside scikit-learn's, with a penalty that was found the slow way."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from embgeo.metrics.ridge import ridge_prediction
from tests.naive_frequency import best_penalty

PENALTIES = np.logspace(-2, 5, 15)


@pytest.mark.parametrize(("n", "d"), [(200, 10), (50, 80), (30, 1)])
@pytest.mark.parametrize("noise", [0.1, 3.0])
def test_predictions_equal_scikit_learn(n: int, d: int, noise: float) -> None:
    rng = np.random.default_rng(n + d)
    rows, new = rng.standard_normal((n, d)) * 3 + 1, rng.standard_normal((9, d))
    target = rows @ rng.standard_normal(d) + noise * rng.standard_normal(n)
    penalty = best_penalty(StandardScaler().fit_transform(rows), target, PENALTIES)
    model = make_pipeline(StandardScaler(), Ridge(alpha=penalty)).fit(rows, target)
    found = ridge_prediction(rows, target, new, PENALTIES)
    assert found == pytest.approx(model.predict(new), rel=1e-9, abs=1e-9)


def test_the_penalty_is_about_that_of_rows_left_out_in_turn() -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((400, 40)) * np.logspace(0, -2, 40)
    target = rows @ rng.standard_normal(40) + rng.standard_normal(400)
    scaled = StandardScaler().fit_transform(rows)
    left_out = RidgeCV(alphas=PENALTIES).fit(scaled, target).alpha_
    found = best_penalty(scaled, target, PENALTIES)
    step = PENALTIES[1] / PENALTIES[0]
    assert left_out / step <= found * 1.0001
    assert found <= left_out * step * 1.0001


def test_constant_columns_say_nothing() -> None:
    rng = np.random.default_rng(0)
    rows, target = rng.standard_normal((40, 3)), rng.standard_normal(40)
    padded = np.hstack([rows, np.full((40, 1), 7.0)])
    new = rng.standard_normal((5, 3))
    expected = ridge_prediction(rows, target, new, PENALTIES)
    found = ridge_prediction(padded, target, np.hstack([new, np.full((5, 1), 3.0)]), PENALTIES)
    assert found == pytest.approx(expected)
