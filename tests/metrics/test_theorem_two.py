"""Theorem 2 of Gao et al. on hidden states that a trained language model really has.

The small LSTM of the fixtures reads Python's documentation, and the finding is checked from the
analysis and the states alone.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import numpy.typing as npt
import pytest

import embgeo
from embgeo.core.values import Series
from tests.support import naive

FIXTURES = Path(__file__).parents[2] / "fixtures"
STATES = 2000
WORD = re.compile(r"[a-z_]+(?:'[a-z]+)?|[0-9]+|[^\sa-z0-9_]")

Array = npt.NDArray[np.float64]


def read_words(count: int) -> list[int]:
    """The first words of Python's documentation by topic, as rows of the fixtures' vocabulary."""
    lines = (FIXTURES / "vocab_counts.tsv").read_text("utf-8").splitlines()
    row_of = {line.split("\t")[0]: row for row, line in enumerate(lines)}
    words = (word for name in sorted(topics) for word in WORD.findall(topics[name].lower()))
    return [row_of.get(word, row_of["<unk>"]) for word, _ in zip(words, range(count), strict=False)]


@pytest.fixture(scope="module")
def states() -> Array:
    """Outputs of the LSTM, the vectors that the tied output matrix is multiplied with."""
    torch = pytest.importorskip("torch", reason="the small language model runs in torch")
    torch.set_num_threads(1)
    weights = torch.load(FIXTURES / "baseline.pt", map_location="cpu", weights_only=False)["model"]
    embedding = weights["encoder.weight"]
    lstm = torch.nn.LSTM(embedding.shape[1], embedding.shape[1])
    lstm.load_state_dict({k.removeprefix("rnn."): v for k, v in weights.items() if "rnn." in k})
    with torch.no_grad():
        found: Array = lstm(embedding[torch.tensor(read_words(STATES))])[0].numpy()
    return found


def analyze(states: Array) -> embgeo.Analysis:
    return embgeo.analyze(FIXTURES / "baseline.pt", hidden=states, sections="hidden")


@pytest.fixture(scope="module")
def analysis(states: Array) -> embgeo.Analysis:
    return analyze(states)


def direction(analysis: embgeo.Analysis) -> Array:
    found = analysis["hidden.direction"]
    assert isinstance(found, Series)
    return found.y["v"]


def combination(analysis: embgeo.Analysis, states: Array) -> Array:
    """The weighted sum of the certificate, from the saved weights."""
    found = analysis["hidden.weights"]
    assert isinstance(found, Series)
    weights = found.y["weight"]
    assert weights.min() > 0
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    return weights @ states[found.x.astype(int)].astype(np.float64)


def distance(analysis: embgeo.Analysis) -> float:
    scalar = analysis.find_scalar("hidden.hull_distance")
    assert scalar is not None
    assert scalar.value is not None
    return scalar.value


def test_the_trained_model_has_a_uniformly_negative_direction(
    states: Array, analysis: embgeo.Analysis
) -> None:
    assert states.shape == (STATES, 64)
    exact = states.astype(np.float64)
    assert not naive.origin_inside(exact), "the linear program finds the origin inside"
    # Weak duality: all states lie beyond the margin, and one combination lies just there.
    margin = -(exact @ direction(analysis)).max()
    nearest = float(np.linalg.norm(combination(analysis, states)))
    assert margin > 1
    assert margin * (1 + 2e-6) >= nearest
    assert distance(analysis) == pytest.approx(nearest, rel=1e-9)


def test_what_the_theorem_says_of_a_token_that_never_occurs(
    states: Array, analysis: embgeo.Analysis
) -> None:
    """Its part of the loss is Σ log(1 + exp⟨h_i, w⟩/Z_i): along v it falls without end.

    Z_i, the sum over the other tokens, does not depend on w; here it is 1.
    """
    inner = states.astype(np.float64) @ direction(analysis)
    losses = [np.logaddexp(0.0, length * inner).sum() for length in (0.0, 1.0, 10.0, 100.0)]
    assert all(b < a / 2 for a, b in pairwise(losses))


def test_the_rows_of_rare_tokens_did_drift_along_it(analysis: embgeo.Analysis) -> None:
    """What the theorem is there to explain, on the same model."""
    W = np.asarray(embgeo.load(FIXTURES / "baseline.pt").data, np.float64)
    cosines = naive.unit(W) @ direction(analysis)
    frequent, rare = cosines[:500].mean(), cosines[-500:].mean()  # rows fall by frequency
    assert rare > 0.2
    assert rare > frequent + 0.1


@pytest.mark.slow
def test_the_same_states_around_their_mean_have_none(states: Array) -> None:
    """The mean lies in the hull: once it is the origin, convex weights must certify it."""
    exact = states.astype(np.float64)
    around = exact - exact.mean(axis=0)
    assert naive.origin_inside(around), "the linear program finds the origin outside"
    analysis = analyze(around)
    assert distance(analysis) == 0.0
    longest = np.linalg.norm(around, axis=1).max()
    assert np.linalg.norm(combination(analysis, around)) <= 1e-12 * longest
    margin = analysis.find_scalar("hidden.margin")
    assert margin is not None
    assert "the origin is inside" in margin.undefined
