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
from embgeo.metrics import clump, neighbors, row_sample
from embgeo.metrics.facts import Facts
from embgeo.metrics.frequency import EDGE_PART, Popularity, rank_by_frequency
from embgeo.metrics.neighbors import find_edge_slope, influence_of_tokens
from embgeo.metrics.pairs import adapt
from embgeo.metrics.probe import (
    influence_of_edge,
    measure_probe,
    widen_near_one,
    with_fit,
)
from embgeo.metrics.row_sample import RowSample
from embgeo.metrics.spectrum import SMOOTH
from embgeo.numerics.row_errors import RowError, RowsOfSpectrum, top_share
from embgeo.numerics.scores import auc, error_of, learned_noise, share_of_noise
from embgeo.numerics.tails import NormTail, TailIndex, measure_norm_tail

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


@pytest.mark.parametrize(("above", "tokens"), [(97, 100), (60, 100), (400, 400)])
def test_an_area_near_one_is_a_share_with_two_more_on_either_side(above: int, tokens: int) -> None:
    """The literal variance of a mean of zeros and ones, and the wider of the two errors."""
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


@pytest.mark.parametrize("slope", [0.05, 0.4])
def test_the_error_of_a_probe_is_the_literal_one(slope: float) -> None:
    """DeLong's of each pair of tokens, with what the fit and the edge add, wider near 1."""
    m, edge = 60, 20
    counts = np.arange(m, 0.0, -1.0)
    known = Popularity(np.arange(m), np.arange(m) < edge, counts, np.log1p(counts), "")
    score = np.random.default_rng(4).standard_normal(m) + slope * np.arange(m)
    at = np.arange(m)
    dealt = [(at[at % 5 != fold], at[at % 5 == fold]) for fold in range(5)]
    facts: Any = SimpleNamespace(d=3)
    answers = [(score[test], True) for _, test in dealt]
    _, found = measure_probe(facts, known, at, dealt, answers, "")
    assert isinstance(found, Scalar)
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
    assert found.population_error == pytest.approx(wider * np.sqrt(parts @ parts), rel=1e-9)


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


@pytest.mark.parametrize("some", [False, True])
def test_the_error_that_is_printed_of_rare_neighbors_is_the_literal_one(
    some: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without each token: its query, its place as a neighbor, and the edge that it moves."""
    if some:
        monkeypatch.setattr(neighbors, "CLASS_QUERIES", (40, 40))
    m, k, edge = 250, 10, 50
    counts = np.arange(m, 0.0, -1.0)
    rows = np.random.default_rng(1).standard_normal((m, 4))
    rows[:, 0] += counts / 125
    unit = rows / np.linalg.norm(rows, axis=1)[:, None]
    order = np.array(
        [[j for j in np.argsort(-(unit @ one)) if j != i] for i, one in enumerate(unit)]
    )
    found = embgeo.analyze(rows, counts=counts, sections=["frequency"], reference=False)
    facts = Facts(n=m, d=4, kept=np.arange(m), frequency=Frequency("counts", counts, "drawn"))
    known = rank_by_frequency(facts)
    for name, queries in zip(
        ("popular", "rare"), neighbors.draw_class_queries(facts, known), strict=True
    ):
        # The order of the classes moves with the edge; each token of m holds one share of it.
        slope = find_edge_slope(facts, queries, order[queries, :k], known)
        literal = np.zeros(m)
        whole = (order[queries, :k] >= edge).mean()
        for left in range(m):
            stay = queries != left
            near = np.array(
                [[j for j in order[i, : k + 1] if j != left][:k] for i in queries[stay]]
            )
            literal[left] = whole - (near >= edge).mean()
        literal -= slope * ((np.arange(m) >= edge) - (m - edge) / m) / m
        near_next = (order[queries, :k] >= edge) != (order[queries, k : k + 1] >= edge)
        variance = np.sum(literal**2) - near_next.sum() / (k * len(queries)) ** 2
        printed = found[f"frequency.neighbor_rarity_{name}"].population_error
        assert printed == pytest.approx(np.sqrt(variance), rel=0.05), name


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


def heavy_of(found: embgeo.Analysis) -> set[str]:
    """Return the names of numbers without an error for a heavy tail."""
    return {scalar.name for scalar in found.scalars if "heavy_tail" in scalar.caveats}


OF_SPECTRUM = {one.name for one in (*SMOOTH, isotropy.ISOSCORE)}


@pytest.mark.parametrize(
    ("index", "shape", "of_norms", "known"),
    [
        ((5.0, 0.49), 0.49, 4.01, True),
        ((5.0, 0.51), 0.49, 4.01, False),
        ((5.0, 0.49), 0.51, 4.01, False),
        ((5.0, 0.49), 0.49, 3.99, False),
        ((np.inf, 0.0), -np.inf, np.inf, True),
    ],
)
def test_tails_of_coordinates_and_of_norms_are_light(
    index: tuple[float, float],
    shape: float,
    of_norms: float,
    known: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_sample, "measure_coordinate_tail", lambda _: TailIndex(*index))
    monkeypatch.setattr(row_sample, "measure_norm_tail", lambda _: NormTail(shape, 1.0))
    monkeypatch.setattr(row_sample, "measure_norm_index", lambda _: of_norms)
    rows = np.random.default_rng(0).standard_normal((100, 4)) * np.arange(1, 5)
    found = embgeo.analyze(rows, sections=["spectrum", "isotropy"], reference=False)
    assert heavy_of(found) == (set() if known else OF_SPECTRUM)


@pytest.mark.parametrize("d", [1, 3])
def test_rows_along_one_line_have_one_eigenvalue_however_long_they_are(d: int) -> None:
    rows = np.random.default_rng(0).standard_normal((3000, 1)) * np.ones(d)
    rows[1] *= 1e90  # its fourth power is all that is left of the others
    found = embgeo.analyze(rows, sections=["spectrum"], reference=False)
    assert heavy_of(found) == set()
    for quantity in SMOOTH:
        assert found.scalar(quantity).value == pytest.approx(1.0)
        assert found.scalar(quantity).population_error == 0.0


@pytest.mark.parametrize(("spread", "decay"), [(1.69, 0.0), (1.71, 0.0), (1.69, 0.5)])
def test_norms_are_light_where_pairs_of_rows_hold_much_of_a_variance(
    spread: float, decay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of isotropic rows, but not of a falling spectrum."""
    monkeypatch.setattr(row_sample, "measure_norm_index", lambda _: 4.0 * spread)
    monkeypatch.setattr(row_sample, "measure_log_norms", lambda *_: SimpleNamespace(spread=0.25))
    rows = np.random.default_rng(0).standard_normal((900, 8)) * np.arange(1, 9) ** -decay
    found = embgeo.analyze(rows, sections=["spectrum", "isotropy"], reference=False)
    is_heavy = not decay and spread < 1.7
    assert heavy_of(found) == (OF_SPECTRUM if is_heavy else set())


@pytest.mark.parametrize(("share", "known"), [(0.059, True), (0.061, False)])
def test_much_of_a_variance_is_six_percent(share: float, known: bool) -> None:
    rows = np.random.default_rng(0).standard_normal((34, 2))
    norms = np.r_[np.linspace(1.0, 1.1, 30), 1.0, 2.0, 8.0, 64.0]  # longer than lognormal ones
    shared: Any = SimpleNamespace(norms=norms)
    sample = RowSample(np.arange(34), rows, 34, shared)
    found = sample.correct(RowError(2.0, np.ones(4), of_pairs=share))
    assert isinstance(found, RowError) is known
    assert sample.correct(None) is None


def test_an_error_counts_the_long_rows_that_its_sample_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The root of the fourth powers of all norms and of longer ones, over those of the sample."""
    monkeypatch.setattr(row_sample, "ROWS", (300, 300))
    rows = np.random.default_rng(0).standard_normal((900, 8)) * np.arange(1.0, 9.0) ** -0.5
    rows[:, 1] *= 1.5
    found = embgeo.analyze(rows, sections=["spectrum"], reference=False)
    places = found.influence("spectrum.top_share").rows
    values, vectors = np.linalg.eigh(rows.T @ rows)
    sample = RowsOfSpectrum(values[::-1], rows[places] @ vectors[:, ::-1], 900)
    norms = np.linalg.norm(rows, axis=1)
    factor = np.sqrt(measure_norm_tail(norms).fourth / np.mean(norms[places] ** 4))
    assert abs(factor - 1.0) > 0.01
    expected = factor * sample.find_error(top_share).error
    assert found.scalar(spectrum.TOP_SHARE).population_error == pytest.approx(expected, rel=1e-6)


def test_errors_need_enough_rows() -> None:
    rows = np.random.default_rng(3).standard_normal((17, 6))
    found = embgeo.analyze(rows, sections=["spectrum", "isotropy"], reference=False)
    for quantity in (spectrum.EFFECTIVE_RANK, spectrum.TOP_SHARE, isotropy.ISOSCORE):
        assert found.scalar(quantity).population_error is None
        assert found.scalar(quantity).caveats == ("few_rows",)
    assert found.scalar(spectrum.NUMERICAL_RANK).caveats == ()


@pytest.mark.parametrize("pairs", [None, 5])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_errors_of_cosines_need_four_rows(n: int, pairs: int | None) -> None:
    rows = np.random.default_rng(3).standard_normal((n, 1 if n == 3 else 6))
    found = embgeo.analyze(rows, sections=["cosine"], reference=False, pairs=pairs)
    for quantity in (cosine.MEAN, cosine.STD, cosine.POSITIVE_SHARE, cosine.UNIFORMITY):
        one = found.scalar(quantity)
        assert ("few_rows" in one.caveats) == (n < 4)
        assert (one.population_error is None) == (bool({"few_rows", "rare_sign"} & {*one.caveats}))
    assert found.scalar(cosine.CONE_APERTURE).caveats == ()


def test_rows_without_pairs_have_no_caveat() -> None:
    for rows, pairs in ((np.ones((1, 3)), None), (np.eye(3), 0)):
        found = embgeo.analyze(rows, sections=["cosine"], reference=False, pairs=pairs)
        one = found.scalar(cosine.UNIFORMITY)
        assert one.value is None
        assert one.caveats == ()


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


def test_halves_show_how_far_the_end_of_a_set_moves() -> None:
    """Of values more than one deviation above their mean, counted by a mean that moves."""
    g = np.random.default_rng(0)
    moved, found = [], []
    for values in g.standard_normal((1000, 400)):
        inside = values > values.mean() + 1.0
        moved.append(inside.sum() - (values > 1.0).sum())
        halves = [g.permutation(400).reshape(2, 200) for _ in range(clump.HALVINGS)]
        further = [
            [(values[at] > values[at].mean() + 1.0).sum() - inside[at].sum() for at in two]
            for two in halves
        ]
        found.append(clump.variance_of_end(np.array(further, dtype=float)))
    assert np.mean(found) == pytest.approx(np.var(moved), rel=0.15)


def test_a_half_without_a_clump_has_no_end() -> None:
    further = np.array([[3.0, -1.0], [np.nan, 5.0], [0.0, 2.0], [np.nan, np.nan]])
    assert clump.variance_of_end(further) == 10.0
    assert clump.variance_of_end(further[[1, 3]]) == 0.0


def test_the_end_of_a_clump_is_part_of_the_error_of_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.random.default_rng(4).standard_normal((600, 16))
    rows[:90] = 0.1 * rows[:90] + 0.4
    seen: list[Any] = []

    def listen(further: npt.NDArray[np.float64]) -> float:
        seen.append(further)
        return 40.0

    monkeypatch.setattr(clump, "variance_of_end", listen)
    found = embgeo.analyze(rows, sections=["tokens"], reference=False)["tokens.clump_rows"]
    assert isinstance(found, Scalar)
    assert found.value == 90
    assert found.population_error == pytest.approx(np.sqrt(90 * (1 - 90 / 600) + 40.0))
    (further,) = seen
    assert further.shape == (clump.HALVINGS, 2)
    assert np.isfinite(further).sum() >= clump.HALVINGS
