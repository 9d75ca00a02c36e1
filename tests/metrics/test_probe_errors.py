"""The error of the probe's AUC: DeLong's, with noise of the fits and the edge, wider near 1."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.quantities import frequency as q
from embgeo.core.values import Halves, Scalar
from embgeo.metrics.frequency import EDGE_PART, Popularity
from embgeo.metrics.probe import influence_of_edge, measure_probe, widen_near_one, with_fit
from embgeo.numerics.halves import HALVES
from embgeo.numerics.scores import auc, error_of, learned_noise, share_of_noise


def fit_out_of_fold(rng: np.random.Generator, signal: float) -> float:
    """Mean of z·ŵ over ‖ŵ‖, where ŵ is the mean of the z of the other folds."""
    z = rng.standard_normal((100, 8))
    z[:, 0] += np.sqrt(signal)
    folds = z.reshape(5, 20, 8).mean(axis=1)
    fits = (folds.sum(axis=0) - folds) / 4
    return float(np.mean(np.einsum("ij,ij->i", folds, fits) / np.linalg.norm(fits, axis=1)))


def test_the_variance_of_a_number_out_of_fold_holds_the_noise_of_the_fits() -> None:
    for signal in (0.0, 0.1, 4.0):
        rng = np.random.default_rng(0)
        spread = np.std([fit_out_of_fold(rng, signal) for _ in range(2_000)])
        alone = np.full(100, 0.01)  # of 100 tokens with unit variance
        noise = 8 / 80
        error = error_of(with_fit(alone, noise / (signal + noise)))
        assert error == pytest.approx(spread, rel=0.08)


def test_an_area_near_one_is_a_share_with_two_more_on_either_side() -> None:
    """The literal variance of a mean of zeros and ones, and the wider of the two errors."""
    for above, tokens in ((97, 100), (60, 100), (400, 400)):
        judged = np.r_[np.ones(above + 2), np.zeros(tokens - above + 2)]
        literal = float(np.sqrt(judged.var() / len(judged)))
        area = above / tokens
        plain = float(np.sqrt(area * (1 - area) / tokens))
        assert (literal > plain) == (area > 0.9)
        for edge in (1.0, 1.5):
            expected = edge * max(plain, literal) if plain else np.hypot(edge, literal)
            found = widen_near_one(edge * plain if plain else edge, plain, area, tokens)
            assert found == pytest.approx(expected, rel=1e-12)


def test_a_probe_that_separates_all_tokens_has_an_error() -> None:
    g = np.random.default_rng(0)
    counts = np.arange(200.0, 0.0, -1.0)
    rows = np.c_[np.where(np.arange(200) < 40, 5.0, -5.0), 0.1 * g.standard_normal((200, 3))]
    found = embgeo.analyze(
        Matrix(rows, frequency=Frequency("counts", counts, "drawn")),
        sections=["frequency"],
        reference=False,
    )[q.PROBE_AUC.name]
    assert found.value == 1.0
    assert found.population_error >= np.sqrt(202 / 204 * 2 / 204 / 204)


def test_the_share_of_noise_is_that_of_what_is_seen() -> None:
    for signal, noise in ((0.3, 0.1), (2.0, 0.5), (0.0, 1.0)):
        seen = signal**2 / (signal + noise)
        assert share_of_noise(seen, noise) == pytest.approx(noise / (signal + noise))


def test_the_part_of_a_token_in_the_edge_is_the_literal_one() -> None:
    """−dA/ds·(p_i − s)/√(M·n), with A of the same scores where the share s is moved both ways."""
    m, edge = 60, 20
    counts = np.arange(m, 0.0, -1.0)
    known = Popularity(np.arange(m), np.arange(m) < edge, counts, np.log1p(counts), "")
    score = np.random.default_rng(4).standard_normal(m) + np.arange(m) / 20
    step = edge // EDGE_PART
    areas = [auc(score, np.arange(m) >= moved)[0] for moved in (edge - step, edge + step)]
    slope = (areas[1] - areas[0]) / (2 * step / m)
    expected = -slope * (known.popular - edge / m) / m
    np.testing.assert_allclose(influence_of_edge(score, known, np.arange(m)), expected)
    # None where a class is small, or all tokens looked at are on one side of a moved edge.
    assert not influence_of_edge(score[edge:], known, np.arange(edge, m)).any()
    few = replace(known, popular=np.arange(m) < EDGE_PART - 1)
    assert not influence_of_edge(score, few, np.arange(m)).any()


@pytest.mark.parametrize("slope", [0.05, 0.4])
def test_the_error_of_a_probe_is_the_literal_one(slope: float) -> None:
    """DeLong's of each pair of tokens, with what the fit and the edge add, wider near 1."""
    m, edge = 60, 20
    counts = np.arange(m, 0.0, -1.0)
    known = Popularity(np.arange(m), np.arange(m) < edge, counts, np.log1p(counts), "")
    score = np.random.default_rng(4).standard_normal(m) + slope * np.arange(m)
    at = np.arange(m)
    dealt = [(at[at % 5 != fold], at[at % 5 == fold]) for fold in range(5)]
    groups = np.random.default_rng(5).integers(0, 16, m)
    facts: Any = SimpleNamespace(d=3, kept_groups=groups)
    answers = [(score[test], True) for _, test in dealt]
    found, halves = measure_probe(facts, known, at, dealt, answers, "")
    assert isinstance(found, Scalar)
    assert isinstance(halves, Halves)
    won = (score[edge:, None] > score[:edge]).astype(float)
    area = won.mean()
    assert found.value == pytest.approx(area)
    rare, frequent = won.mean(axis=1).var(ddof=1) / 40, won.mean(axis=0).var(ddof=1) / 20
    noise = learned_noise(area, 32, 16, 3)
    scored = (1 + noise) * np.sqrt((1 - noise / 2) * (rare + frequent))
    every = np.r_[won.mean(axis=0), won.mean(axis=1)]
    spread = np.r_[np.full(edge, 1 / np.sqrt(20 * 19)), np.full(40, 1 / np.sqrt(40 * 39))]
    ends = np.r_[np.full(edge, won.mean(axis=0).mean()), np.full(40, won.mean(axis=1).mean())]
    parts = (every - ends) * spread * scored / np.sqrt(rare + frequent)
    parts = parts + influence_of_edge(score, known, at)
    like = area * (1 - area) / scored**2
    judged = (area * like + 2) / (like + 4)
    wider = max(1.0, np.sqrt(judged * (1 - judged) / (like + 4)) / scored)
    assert (wider > 1.0) == (area > 0.9) == (slope > 0.1)
    # A half has what its tokens do to the area twice, and not what the others do.
    literal = np.array(
        [area + parts[half[groups]].sum() - parts[~half[groups]].sum() for half in HALVES]
    )
    np.testing.assert_allclose(halves.values, literal, rtol=1e-9)
    of_halves = np.sqrt(np.square(literal - literal.mean()).sum() / 28)
    alone = wider * np.sqrt(parts @ parts)
    assert found.population_error == pytest.approx(max(alone, of_halves), rel=1e-9)


@pytest.mark.parametrize(("copies", "factor"), [(1, 1.0), (4, 2.0)])
def test_copies_of_tokens_in_one_family_make_the_area_no_surer(copies: int, factor: float) -> None:
    """Four copies of each token: DeLong's error alone is half of that of the tokens."""
    g = np.random.default_rng(0)
    score = np.repeat(g.standard_normal(400), copies)
    popular = np.repeat(np.arange(400) < 80, copies)
    n = len(score)
    counts = np.arange(n, 0.0, -1.0)
    known = Popularity(np.arange(n), popular, counts, np.log1p(counts), "")
    groups = np.repeat(np.random.default_rng(1).permutation(400) % 16, copies)
    facts: Any = SimpleNamespace(d=3, kept_groups=groups)
    answers = [(score, True)]
    dealt = [(np.arange(0), np.arange(n))]
    found, _ = measure_probe(facts, known, np.arange(n), dealt, answers, "")
    assert isinstance(found, Scalar)
    alone = error_of(auc(score, ~popular)[1])
    assert found.population_error == pytest.approx(factor * alone * np.sqrt(2.0), rel=0.25)
