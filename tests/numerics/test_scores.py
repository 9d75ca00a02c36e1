"""Scores of classifiers and predictions, beside scikit-learn and literal formulas."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.numerics.scores import (
    auc,
    error_of,
    share_error,
)


def draw(n_high: int, n_low: int, spread: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_high * n_low)
    high, low = rng.normal(1.0, spread, n_high), rng.normal(0.0, 1.0, n_low)
    return np.concatenate([high, low]).round(1), np.repeat([True, False], [n_high, n_low])


def test_scores_agree_with_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="the twin is scikit-learn's")
    score, positive = draw(30, 200)
    assert auc(score, positive)[0] == pytest.approx(metrics.roc_auc_score(positive, score))


def test_the_error_of_the_auc_is_the_literal_one() -> None:
    """DeLong's formula over all pairs, on classes of unequal sizes and unequal spreads."""
    for n_high, n_low, spread in ((20, 2000, 3.0), (2000, 20, 0.3), (7, 7, 1)):
        score, positive = draw(n_high, n_low, spread)
        high, low = score[positive], score[~positive]
        wins = (high[:, None] > low) + 0.5 * (high[:, None] == low)
        variance = wins.mean(1).var(ddof=1) / n_high + wins.mean(0).var(ddof=1) / n_low
        value, parts = auc(score, positive)
        assert value == pytest.approx(wins.mean(), rel=1e-12)
        assert error_of(parts) == pytest.approx(np.sqrt(variance), rel=1e-12)


def test_the_paired_error_of_two_aucs_is_the_literal_one() -> None:
    """DeLong's covariances over all pairs, of two scores of the same observations."""
    score, positive = draw(40, 90)
    other = score + np.random.default_rng(3).normal(0.0, 0.3, len(score))
    n_high, n_low = int(positive.sum()), int((~positive).sum())
    components = []
    for values in (score, other):
        high, low = values[positive][:, None], values[~positive]
        wins = (high > low) + 0.5 * (high == low)
        components.append((wins.mean(1), wins.mean(0)))
    above, below = np.cov(*(c[0] for c in components)), np.cov(*(c[1] for c in components))
    contrast = np.array([1.0, -1.0])
    variance = contrast @ (above / n_high + below / n_low) @ contrast
    paired = auc(score, positive)[1] - auc(other, positive)[1]
    assert error_of(paired) == pytest.approx(np.sqrt(variance), rel=1e-12)
    assert error_of(paired) < 0.5 * error_of(auc(score, positive)[1])


def test_a_share_that_all_agree_on_has_an_error() -> None:
    assert share_error(0.0, 100) == pytest.approx(0.0134668, rel=1e-5)
    assert share_error(1.0, 100) == pytest.approx(0.0134668, rel=1e-5)
    assert share_error(0.5, 10_000) == pytest.approx(0.005, rel=1e-3)
