"""Accuracy and macro-F1 against scikit-learn, and the bootstrap over documents."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from embgeo.numerics.scores import mcnemar
from embgeo.training.study.document_outcomes import (
    DocumentOutcomes,
    compare_documents,
    score_classes,
)
from embgeo.training.study.samples import TextLosses, bootstrap_samples


@pytest.mark.parametrize("classes", [2, 5])
def test_scores_are_those_of_scikit_learn(classes: int) -> None:
    generator = np.random.default_rng(0)
    truth, given = generator.integers(0, classes, (2, 60))
    given[given == 1] = 0
    weights = generator.integers(0, 3, 60).astype(float)
    for one in (None, weights):
        found = score_classes(truth, given, one)
        assert found["accuracy"] == pytest.approx(accuracy_score(truth, given, sample_weight=one))
        expected = f1_score(truth, given, average="macro", sample_weight=one, zero_division=0.0)
        assert found["macro_f1"] == pytest.approx(expected)


def outcomes(share: float, seed: int = 0, n: int = 300) -> DocumentOutcomes:
    truth = np.random.default_rng(9).integers(0, 3, n)
    wrong = np.random.default_rng(seed).random(n) > share
    return DocumentOutcomes("test", tuple(truth.tolist()), tuple(((truth + wrong) % 3).tolist()))


def test_the_interval_is_that_of_documents_drawn_one_by_one() -> None:
    before, after = outcomes(0.6), outcomes(0.75, 1)
    found = bootstrap_samples({0: before}, {0: after}, "test.accuracy")
    truth, old, new = (np.array(one) for one in (before.truth, before.given, after.given))
    generator = np.random.default_rng(5)
    steps = (new == truth).astype(float) - (old == truth)
    means = [steps[generator.integers(0, 300, 300)].mean() for _ in range(2000)]
    assert found is not None
    np.testing.assert_allclose(found, np.quantile(means, [0.025, 0.975]), atol=0.012)


def test_only_the_same_documents_are_compared() -> None:
    before = {seed: outcomes(0.6, seed) for seed in range(2)}
    after = {seed: outcomes(0.9, seed + 5) for seed in range(2)}
    interval = bootstrap_samples(before, after, "test.macro_f1", draws=100)
    assert interval is not None
    assert 0.0 < interval[0] < interval[1]
    assert bootstrap_samples(before, before, "test.accuracy", draws=20) == (0.0, 0.0)
    assert bootstrap_samples(before, {7: after[0]}, "test.accuracy") is None
    assert bootstrap_samples(before, {0: outcomes(0.9, n=299)}, "test.accuracy") is None
    few = {0: outcomes(0.9, n=10)}
    assert bootstrap_samples(few, few, "test.accuracy") is None


def test_an_interval_is_for_the_number_that_it_is_about() -> None:
    before, after = {0: outcomes(0.6)}, {0: outcomes(0.9)}
    assert bootstrap_samples(before, after, "test.accuracy") is not None
    assert bootstrap_samples(before, after, "valid.accuracy") is None
    assert bootstrap_samples(before, after, "cosine.mean") is None
    texts = {0: TextLosses("test", tuple(np.arange(30.0).tolist()), (5,) * 30)}
    assert bootstrap_samples(texts, texts, "test.perplexity") == (0.0, 0.0)
    assert bootstrap_samples(texts, after, "test.accuracy") is None


def test_the_test_of_mcnemar_is_the_binomial_one_on_what_one_alone_gets_right() -> None:
    for first, second in itertools.product(range(6), range(0, 400, 57)):
        n, least = first + second, min(first, second)
        tail = Fraction(sum(math.comb(n, k) for k in range(least + 1)), 2**n)
        assert mcnemar(first, second) == pytest.approx(float(min(Fraction(1), 2 * tail)), rel=1e-9)
        assert mcnemar(first, second) == mcnemar(second, first)


def test_mcnemar_counts_documents_of_the_same_seed() -> None:
    truth = (0, 1, 2) * 8
    before = DocumentOutcomes("test", truth, (0,) * 24)
    after = DocumentOutcomes("test", truth, (0, 1, 2) * 4 + (1,) * 12)
    found = compare_documents({3: before, 5: before, 8: before}, {3: after, 5: before, 7: after})
    assert found == ("seed 3: 4 lost, 12 won, p = 0.077; seed 5: 0 lost, 0 won, p = 1")
    assert compare_documents({3: before}, {3: outcomes(0.5)}) == ""
