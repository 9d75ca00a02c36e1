"""The ridge of section 5 beside scikit-learn's, whose leave-one-out search is the slow one here."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from embgeo.numerics.ridge import ridge_prediction

PENALTIES = np.logspace(-2, 5, 15)


@pytest.mark.parametrize(("n", "d"), [(200, 10), (50, 80), (30, 1)])
@pytest.mark.parametrize("noise", [0.1, 3.0])
def test_predictions_equal_scikit_learn(n: int, d: int, noise: float) -> None:
    rng = np.random.default_rng(n + d)
    rows, new = rng.standard_normal((n, d)) * 3 + 1, rng.standard_normal((9, d))
    target = rows @ rng.standard_normal(d) + noise * rng.standard_normal(n)
    model = make_pipeline(StandardScaler(), RidgeCV(alphas=PENALTIES)).fit(rows, target)
    found = ridge_prediction(rows, target, new, PENALTIES)
    assert found == pytest.approx(model.predict(new), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("length", [1.0, 100.0, 1e4])
@pytest.mark.parametrize(("n", "d"), [(400, 50), (60, 100)])
def test_a_few_long_rows_do_not_mislead_the_penalty(n: int, d: int, length: float) -> None:
    """Where leverages are far from equal, it is the one of the rows really left out."""
    rng = np.random.default_rng(5)
    rows, target = rng.standard_normal((n, d)), rng.standard_normal(n)
    rows[:5] *= length
    new = rng.standard_normal((9, d))
    model = make_pipeline(StandardScaler(), RidgeCV(alphas=PENALTIES)).fit(rows, target)
    found = ridge_prediction(rows, target, new, PENALTIES)
    assert found == pytest.approx(model.predict(new), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("level", [7.0, 0.1, 1e-3])
def test_constant_columns_say_nothing(level: float) -> None:
    rng = np.random.default_rng(0)
    rows, target = rng.standard_normal((40, 3)), rng.standard_normal(40)
    padded = np.hstack([rows, np.full((40, 1), level)])
    new = rng.standard_normal((5, 3))
    expected = ridge_prediction(rows, target, new, PENALTIES)
    found = ridge_prediction(padded, target, np.hstack([new, np.full((5, 1), 3.0)]), PENALTIES)
    assert found == pytest.approx(expected)
