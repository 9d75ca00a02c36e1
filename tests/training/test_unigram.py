"""The unigram model: a distribution, and its perplexity next to slow sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from embgeo.core.errors import BadOption

pytest.importorskip("torch")
from embgeo.training.data import log_unigram, unigram_perplexity
from tests.support.refusals import refusal


def test_a_token_that_does_not_occur_counts_once() -> None:
    found = np.exp(log_unigram(np.array([8, 1, 0])))
    np.testing.assert_allclose(found, [0.8, 0.1, 0.1], rtol=1e-14)


def test_perplexity_is_over_all_tokens_but_the_first() -> None:
    counts = np.array([5, 4, 1])
    rows = np.array([2, 0, 1, 1, 0, 2])
    slow = 1.0
    for row in rows.tolist()[1:]:
        slow *= counts[row] / 10.0
    assert unigram_perplexity(counts, rows) == pytest.approx(slow ** (-1 / 5), rel=1e-13)


def test_one_token_predicts_none() -> None:
    with refusal(BadOption):
        unigram_perplexity(np.array([1]), np.array([0]))
    assert math.isfinite(unigram_perplexity(np.array([0, 0]), np.array([0, 1])))
