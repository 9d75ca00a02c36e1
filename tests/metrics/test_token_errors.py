"""What errors over tokens hold besides the spread of the terms: noise of fits, and the edge."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import embgeo
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.options import Options
from embgeo.core.quantities import cosine, isotropy, spectrum
from embgeo.core.quantities import frequency as q
from embgeo.core.values import Caveat, Scalar
from embgeo.metrics import neighbors
from embgeo.metrics.frequency import EDGE_PART, Popularity
from embgeo.metrics.neighbors import find_edge_slope, influence_of_tokens
from embgeo.metrics.pairs import adapt
from embgeo.metrics.probe import influence_of_edge, with_fit
from embgeo.numerics.row_errors import RowError
from embgeo.numerics.scores import auc, error_of, share_of_noise

Draw = Callable[[np.random.Generator], npt.NDArray[np.float64]]
RARITIES = (q.NEIGHBOR_RARITY_RARE, q.NEIGHBOR_RARITY_POPULAR)


def fit_out_of_fold(rng: np.random.Generator, signal: float) -> float:
    """Mean of z·ŵ over ‖ŵ‖, where ŵ is the mean of the z of the other folds."""
    z = rng.standard_normal((100, 8))
    z[:, 0] += np.sqrt(signal)
    folds = z.reshape(5, 20, 8).mean(axis=1)
    fits = (folds.sum(axis=0) - folds) / 4
    return float(np.mean(np.einsum("ij,ij->i", folds, fits) / np.linalg.norm(fits, axis=1)))


@pytest.mark.parametrize("signal", [0.0, 0.1, 4.0])
def test_the_variance_of_a_number_out_of_fold_holds_the_noise_of_the_fits(signal: float) -> None:
    rng = np.random.default_rng(0)
    spread = np.std([fit_out_of_fold(rng, signal) for _ in range(2_000)])
    alone = np.full(100, 0.01)  # of 100 tokens with unit variance
    noise = 8 / 80
    error = error_of(with_fit(alone, noise / (signal + noise)))
    assert error == pytest.approx(spread, rel=0.08)


def test_the_share_of_noise_is_that_of_what_is_seen() -> None:
    for signal, noise in ((0.3, 0.1), (2.0, 0.5), (0.0, 1.0)):
        seen = signal**2 / (signal + noise)
        assert share_of_noise(seen, noise) == pytest.approx(noise / (signal + noise))


def measure_rarities(share: float) -> list[float]:
    """Of rare and of frequent tokens, in a matrix whose rows follow the counts."""
    counts = np.arange(100.0, 0.0, -1.0)
    rows = np.random.default_rng(1).standard_normal((100, 4))
    rows[:, 0] += counts / 50
    found = embgeo.analyze(
        Matrix(rows, frequency=Frequency("counts", counts, "drawn")),
        sections=["frequency"],
        reference=False,
        options=Options(popular_share=share),
    )
    return [float(found[rarity.name]) for rarity in RARITIES]


def test_the_slope_at_the_edge_is_that_between_two_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    slopes: list[float] = []

    def listen(*arguments: Any) -> float:
        slopes.append(find_edge_slope(*arguments))
        return slopes[-1]

    monkeypatch.setattr(neighbors, "find_edge_slope", listen)
    now = measure_rarities(0.2)
    found = list(slopes)
    for place, moved in enumerate((0.25, 0.15)):
        change = measure_rarities(moved)[place] - now[place]
        assert found[place] == pytest.approx(change / (0.2 - moved), rel=1e-9)
    assert EDGE_PART == 4


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


def test_the_part_of_a_token_as_query_and_neighbor_is_the_literal_one() -> None:
    """Without it, its query is gone, and the next nearest token takes its place."""
    m, k, queries = 200, 3, np.arange(120)
    rows = np.random.default_rng(3).standard_normal((m, 4))
    is_rare = np.random.default_rng(4).random(m) < 0.6
    order = [[j for j in np.argsort(np.linalg.norm(rows - row, axis=1)) if j != i]
             for i, row in enumerate(rows)]  # fmt: skip

    def measure(left: int) -> float:
        """Mean share of rare tokens among the nearest, without a token."""
        near = [[j for j in order[i] if j != left][:k] for i in queries if i != left]
        return float(is_rare[np.array(near)].mean())

    facts: Any = SimpleNamespace(kept=np.arange(m), m=m)
    near = np.array([order[i][: k + 1] for i in queries])
    parts, _, error = influence_of_tokens(facts, queries, near, is_rare, 0.0)
    literal = np.array([measure(-1) - measure(left) for left in range(m)])
    np.testing.assert_allclose(parts, literal, atol=0.02 * np.abs(literal).max())
    # A place that changes is in the sum once, as the spread of the queries holds it already.
    near_next = is_rare[near[:, :k]] != is_rare[near[:, k:]]
    expected = np.sum(literal**2) - near_next.sum() / (k * len(queries)) ** 2
    assert error == pytest.approx(np.sqrt(expected), rel=0.03)


@pytest.fixture(scope="module")
def cone_of_rows() -> embgeo.Analysis:
    rows = np.random.default_rng(2).standard_normal((400, 6)) / 2
    rows[:, 0] += 0.5
    return embgeo.analyze(rows, sections=["spectrum", "isotropy"], reference=False)


def test_numbers_made_of_sums_have_errors_over_tokens(cone_of_rows: embgeo.Analysis) -> None:
    for quantity in (spectrum.EFFECTIVE_RANK, spectrum.TOP_SHARE, isotropy.ISOSCORE):
        scalar = cone_of_rows.scalar(quantity)
        assert scalar.known == "exact"
        influence = cone_of_rows.influence(quantity.name).values.astype(float)
        # Pairs of rows count twice in the squares of the parts; Student's t widens the error.
        assert 0.97 < error_of(influence) / scalar.population_error < 1.42


def test_what_is_counted_or_an_extreme_has_no_error(cone_of_rows: embgeo.Analysis) -> None:
    without = (spectrum.ENERGY_90, spectrum.CONDITION_NUMBER, isotropy.I1, isotropy.I2)
    for quantity in without:
        assert cone_of_rows.scalar(quantity).population_error is None


@pytest.mark.parametrize(
    ("draw", "known"),
    [
        (lambda g: np.exp(0.3 * g.standard_normal((1000, 1))), True),
        (lambda g: np.exp(0.7 * g.standard_normal((1000, 1))), False),
        (lambda g: np.sqrt(20.0 / g.chisquare(20.0, (1000, 1))), True),
        (lambda g: np.sqrt(3.0 / g.chisquare(3.0, (1000, 1))), False),
    ],
)
def test_all_draws_of_a_population_have_errors_or_none(draw: Draw, known: bool) -> None:
    """An error that only draws without the longest rows have is too small."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows = rng.standard_normal((1000, 8)) * draw(rng)
        found = embgeo.analyze(rows, sections=["spectrum"], reference=False)
        assert has_error(found["spectrum.effective_rank"]) is known


def has_error(scalar: Scalar) -> bool:
    """Tell whether a number has an error over tokens, which the longest rows do not decide."""
    known = scalar.population_error is not None
    assert ("heavy_tail" in scalar.caveats) is not known
    return known


@pytest.mark.parametrize(("n", "known"), [(400, True), (700, False)])
def test_a_sample_may_miss_the_longest_row(n: int, known: bool) -> None:
    """All rows of 400, but 500 of 700."""
    rows = np.random.default_rng(0).standard_normal((n, 8))
    rows[0] *= 6.0 * 8**0.5 / np.linalg.norm(rows[0])
    found = embgeo.analyze(rows, sections=["spectrum"], reference=False)
    assert has_error(found["spectrum.effective_rank"]) is known


@pytest.mark.parametrize(("index", "known"), [(5.65, True), (5.5, False)])
def test_fourth_powers_of_norms_have_a_mean(index: float, known: bool) -> None:
    """Norms of a body of width one, and a tail of 4% that falls by a power."""
    tail = 1.5 * (np.arange(1, 41) / 40.5) ** (-1.0 / index)
    body = np.full(960, 1.5)
    rows = np.random.default_rng(0).standard_normal((1000, 8))
    rows *= (np.r_[body, tail] / np.linalg.norm(rows, axis=1))[:, None]
    found = embgeo.analyze(rows, sections=["spectrum"], reference=False)
    assert has_error(found["spectrum.effective_rank"]) is known


def test_errors_need_enough_rows() -> None:
    rows = np.random.default_rng(3).standard_normal((17, 6))
    found = embgeo.analyze(rows, sections=["spectrum", "isotropy"], reference=False)
    for quantity in (spectrum.EFFECTIVE_RANK, spectrum.TOP_SHARE, isotropy.ISOSCORE):
        assert found.scalar(quantity).population_error is None
        assert found.scalar(quantity).caveats == ("few_rows",)
    assert found.scalar(spectrum.NUMERICAL_RANK).caveats == ()


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_the_share_of_the_first_direction_has_an_error_in_every_draw(decay: float) -> None:
    """Not only where the first eigenvalue happens to be far above the next."""
    for seed in range(5):
        rows = np.random.default_rng(seed).standard_normal((300, 8)) * np.arange(1, 9) ** -decay
        found = embgeo.analyze(rows, sections=["spectrum"], reference=False)
        assert found.scalar(spectrum.TOP_SHARE).population_error > 0


@pytest.mark.parametrize("share", [0.05, 0.95])
@pytest.mark.parametrize(("over_rows", "by_sampling"), [(0.0099, 0.0), (0.006, 0.0079)])
def test_the_error_of_a_share_is_known_up_to_a_fifth_of_the_rarer_sign(
    share: float, over_rows: float, by_sampling: float
) -> None:
    def find(factor: float) -> RowError | Caveat:
        found = RowError(factor * over_rows, np.zeros(3))
        return adapt(cosine.POSITIVE_SHARE, share, found, factor * by_sampling)

    assert isinstance(find(1.0), RowError)
    assert find(1.02) == "rare_sign"
    assert isinstance(adapt(cosine.UNIFORMITY, share, RowError(0.1, np.zeros(3)), 0.1), RowError)


@pytest.mark.parametrize("pairs", ["all", 2000])
def test_no_error_over_tokens_without_a_pair_of_the_rarer_sign(pairs: str | int) -> None:
    rows = np.random.default_rng(0).standard_normal((300, 8)) + 3.0
    found = embgeo.analyze(rows, sections=["cosine"], reference=False, pairs=pairs)
    share = found["cosine.positive_share"]
    assert share.value == 1.0
    assert share.population_error is None
    assert share.caveats == ("rare_sign",)
    assert (share.standard_error is None) == (pairs == "all")
