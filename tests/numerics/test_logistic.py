"""The probe's classifier beside scikit-learn's, its folds, and ranks beside scipy's."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata, spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from embgeo.numerics.logistic import log_odds
from embgeo.numerics.sampling import FOLDS, deal_folds
from embgeo.numerics.scores import average_ranks, spearman
from tests.support.matrices import rng


def problem(n, d, signal, seed=0):
    g = rng(seed)
    x = g.standard_normal((n, d)) @ g.standard_normal((d, d)) + 3.0
    y = x @ g.standard_normal(d) * signal + g.standard_normal(n) > np.log(4)
    y[:2] = (True, False)
    return x, y, g.standard_normal((20, d)) + 3.0


def test_log_odds_are_those_of_scikit_learn():
    for n, d, signal in (
        (300, 5, 0.0),
        (300, 5, 1.0),
        (200, 20, 50.0),
        (40, 90, 0.1),
        (40, 39, 1.0),
        (12, 1, 1.0),
    ):
        x, y, new = problem(n, d, signal)
        model = make_pipeline(
            StandardScaler(),
            LogisticRegression(class_weight="balanced", solver="newton-cholesky", tol=1e-10),
        ).fit(x, y)
        found, settled = log_odds(x, y, new)
        assert settled
        np.testing.assert_allclose(found, model.decision_function(new), rtol=1e-6, atol=1e-6)


def test_a_constant_column_changes_nothing():
    x, y, new = problem(100, 4, 1.0)
    with_constant = np.hstack([x, np.full((100, 1), 7.0)]), np.hstack([new, np.zeros((20, 1))])
    np.testing.assert_allclose(
        log_odds(with_constant[0], y, with_constant[1])[0], log_odds(x, y, new)[0], atol=1e-9
    )


def test_a_search_cut_short_says_so(monkeypatch):
    monkeypatch.setattr("embgeo.numerics.logistic.MAX_STEPS", 1)
    assert not log_odds(*problem(100, 4, 1.0))[1]


def test_what_memory_held_before_does_not_matter(monkeypatch):
    """Regression: a NaN left in the half of the Hessian that nobody reads ended the search."""
    x, y, new = problem(100, 4, 1.0)
    expected = log_odds(x, y, new)[0]
    empty = np.empty

    def used(shape, *args, **kwargs):
        made = empty(shape, *args, **kwargs)
        if made.dtype.kind == "f":
            made.fill(np.nan)
        return made

    monkeypatch.setattr(np, "empty", used)
    np.testing.assert_array_equal(log_odds(x, y, new)[0], expected)


def test_folds_deal_each_class_evenly():
    for popular in (5, 7, 50):
        classes = np.arange(103) < popular
        tests = []
        for train, test in deal_folds(rng(3), classes):
            assert not set(train) & set(test)
            assert len(train) + len(test) == 103
            assert abs(len(test) - 103 / FOLDS) < 1
            assert abs(classes[test].sum() - popular / FOLDS) < 1
            tests.append(test)
        assert sorted(np.concatenate(tests)) == list(range(103))
        shuffled = [test.tolist() for _, test in deal_folds(rng(4), classes)]
        assert shuffled != [test.tolist() for test in tests]


def test_ranks_are_those_of_scipy():
    values = np.round(rng(5).standard_normal(200), 1)
    other = values + np.round(rng(6).standard_normal(200), 1)
    np.testing.assert_array_equal(average_ranks(values), rankdata(values))
    expected = spearmanr(values, other).statistic
    pairs = np.stack([values, values, -values]), np.stack([other, np.ones(200), other])
    np.testing.assert_allclose(spearman(*pairs), [expected, np.nan, -expected], atol=1e-14)
