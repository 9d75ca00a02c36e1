"""The laws of weights: equal ones change nothing, integer ones repeat rows."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.quantities import cosine, frequency, isotropy, spectrum
from tests.support.matrices import analyze_matrix, rng

#: Each weighted number and the one that it becomes where all weights are equal.
PAIRS = {
    frequency.WEIGHTED_MEAN_COSINE: cosine.MEAN,
    frequency.WEIGHTED_EFFECTIVE_RANK: spectrum.EFFECTIVE_RANK,
    frequency.WEIGHTED_ISOSCORE: isotropy.ISOSCORE,
}
SECTIONS = ("spectrum", "cosine", "isotropy", "frequency")


def measured(W, counts, kind="counts"):
    known = Frequency(kind, np.asarray(counts, dtype=np.float64), "made counts")
    return analyze_matrix(Matrix(W, frequency=known), 13, sections=SECTIONS)


@pytest.fixture(scope="module")
def rows():
    return rng(601).standard_normal((60, 5)) + 0.4


@pytest.fixture(scope="module")
def repeated(rows):
    counts = 1 + np.arange(60) % 4
    return measured(rows, counts), measured(np.repeat(rows, counts, axis=0), np.ones(counts.sum()))


def test_equal_weights_change_nothing(rows):
    # Exactly equal counts leave the whole section out: there are no frequent tokens.
    found = measured(rows, 1e15 + (np.arange(60) == 0))
    for weighted, plain in PAIRS.items():
        assert found[weighted.name].value == pytest.approx(found[plain.name].value, rel=1e-12)


@pytest.mark.parametrize("quantity", [q for q in PAIRS if q is not frequency.WEIGHTED_MEAN_COSINE])
def test_integer_weights_repeat_rows(repeated, quantity):
    weighted, plain = repeated
    assert weighted[quantity.name].value == pytest.approx(
        plain[PAIRS[quantity].name].value, rel=1e-12
    )


def test_the_weighted_mean_cosine_leaves_out_pairs_of_a_token_with_itself(repeated):
    """Repeated rows have such pairs, of cosine 1: Σn_i(n_i − 1) of them."""
    weighted, plain = repeated
    n = 1 + np.arange(60) % 4
    total, own = n.sum() * (n.sum() - 1), (n * (n - 1)).sum()
    expected = (plain[cosine.MEAN.name].value * total - own) / (total - own)
    assert weighted[frequency.WEIGHTED_MEAN_COSINE.name].value == pytest.approx(expected, rel=1e-12)


def test_tokens_without_a_count_have_no_weight(rows):
    counts = np.r_[np.arange(1, 41), np.zeros(20)]
    all_rows, seen = measured(rows, counts), measured(rows[:40], counts[:40])
    for quantity in PAIRS:
        assert all_rows[quantity.name].value == pytest.approx(seen[quantity.name].value, rel=1e-12)


def test_an_order_of_frequencies_gives_no_weights(rows):
    found = measured(rows, np.arange(60, 0, -1), kind="rank")
    for quantity in PAIRS:
        assert found[quantity.name].undefined == "only the order of the frequencies is known"


def test_equal_rows_have_no_isoscore(rows):
    found = measured(np.tile(rows[:1], (20, 1)), 1 + np.arange(20))
    assert found[frequency.WEIGHTED_ISOSCORE.name].undefined == "all rows are equal"
