"""Differences of scalars: their errors, and whether they are more than chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embgeo.comparison.bootstrap import mean_interval, resampled_means
from embgeo.comparison.change import explain, is_carried
from embgeo.comparison.comparison import Member
from embgeo.comparison.differences import difference, differences
from embgeo.comparison.paired import draw_pairs, paired, paired_errors
from embgeo.comparison.sentences import describe_isotropy, sentences
from embgeo.core.quantities.cosine import POSITIVE_SHARE, UNIFORMITY
from embgeo.core.quantities.frequency import PROBE_AUC
from embgeo.core.values import Quantity
from embgeo.result.analysis import Analysis
from tests.support.compared import comparison, entered
from tests.support.matrices import gaussian, narrow_cone, rng

PLAIN = Quantity("a.b", "Plain", "A number.")
GOOD = replace(PLAIN, better="higher")


def row(old, new, quantity=PLAIN, paired=None):
    def scalar(facts):
        if isinstance(facts, str):
            return quantity.undefined(facts)
        value, error, sample = (*facts, None, "")[:3] if len(facts) < 3 else facts
        return quantity.measured(value, standard_error=error, sample=sample or "")

    return difference(quantity, 1, scalar(old), scalar(new), paired)


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ((1.0,), (2.0,), "exact"),
        ((1.0,), (1.0,), "equal"),
        ((1.0,), (1.0 + 1e-12,), "equal"),
        ((0.0,), (1e-15,), "equal"),
        ((0.0,), (1e-6,), "exact"),
        ((1.0, 0.1, "s"), (1.1, 0.1, "s"), "within error"),
        ((1.0, 0.1, "s"), (2.0, 0.1, "s"), "beyond error"),
        ((1.0, 0.1, "s"), (2.0,), "beyond error"),
        ((1.0,), (1.1, 0.1, "s"), "within error"),
        ((1.0, None, "s"), (2.0, None, "s"), "not judged"),
        ((1.0, None, "s"), (2.0,), "not judged"),
        ((1.0, None, "s"), (2.0, 0.1, "s"), "not judged"),
        ("no pairs", (1.0,), "undefined"),
        ((1.0,), "no pairs", "undefined"),
    ],
)
def test_what_is_known_of_a_difference(old, new, change):
    assert row(old, new).change == change


def test_errors_of_both_sides_are_added_in_squares():
    found = row((1.0, 0.3, "s"), (2.0, 0.4, "s"))
    assert found.standard_error == pytest.approx(0.5)
    assert found.interval == pytest.approx((1 - 0.98, 1 + 0.98))
    assert "squares" in found.error_note


def test_an_undefined_side_gives_its_reason():
    assert row((1.0,), "a single row has no pairs").undefined == "a single row has no pairs"
    assert row((1.0,), "reason").baseline == 1.0
    assert row((1.0,), "reason").difference is None


@pytest.mark.parametrize(
    ("old", "new", "direction"),
    [
        ((1.0,), (2.0,), "better"),
        ((2.0,), (1.0,), "worse"),
        ((1.0,), (1.0,), None),
        ((1.0, 0.5, "s"), (1.1, 0.5, "s"), None),
    ],
)
def test_only_what_changed_is_better_or_worse(old, new, direction):
    assert row(old, new, GOOD).direction == direction
    assert row(old, new, replace(PLAIN, better=None)).direction is None


def test_other_conventions_are_noted():
    one, two = (PLAIN.measured(1.0, convention=c) for c in ("k = 10", "k = 5"))
    assert difference(PLAIN, 1, one, one).note == ""
    assert difference(PLAIN, 1, one, two).note == "conventions differ: k = 10 / k = 5"


def test_a_number_that_one_side_lacks_says_whose_analysis_left_it_out():
    full = Analysis({}, scalars=(PROBE_AUC.measured(1.0),))
    bare = Analysis({}, absent={"frequency": "no counts"})
    rows = differences([Member("one", "one", full), Member("two", "two", bare)], {})
    assert [r.undefined for r in rows] == ["two has no frequency.probe_auc: no counts"]
    rows = differences([Member("two", "two", bare), Member("one", "one", full)], {})
    assert [(r.undefined, r.value) for r in rows] == [
        ("two has no frequency.probe_auc: no counts", 1.0)
    ]


def test_every_number_of_every_member_has_a_row():
    made = comparison(
        entered(gaussian(1, n=50), "one", sections=("cosine",)),
        entered(gaussian(2, n=50), "two", sections=("cosine", "spectrum")),
        entered(gaussian(3, n=50), "three", sections=("tokens",)),
    )
    names = {s.name for m in made.members for s in m.analysis.scalars}
    for place in (1, 2):
        assert {d.name for d in made.differences_of(place)} == names
    assert len(made.differences) == 2 * len(names)


# The same sample on both sides ------------------------------------------------------------------

PAIRS = 3_000
PAIRED = (POSITIVE_SHARE, UNIFORMITY)


def sampled(W, name, **more):
    return entered(W, name, sections=("cosine", "tokens"), pairs=PAIRS, **more)


def alike():
    W = narrow_cone()[np.arange(60) % 60].repeat(4, axis=0) + 0.3 * gaussian(7, n=240)
    return W, W + 0.05 * gaussian(8, n=240)


def test_a_shared_sample_gives_a_smaller_error_than_two_of_their_own():
    made = comparison(*(sampled(W, n) for W, n in zip(alike(), "ab", strict=True)))
    rows = {d.name: d for d in made.differences}
    for name in (UNIFORMITY.name,):
        found = rows[name]
        assert "the same 3,000 pairs on both sides" in found.error_note
        own = [m.analysis.scalar(name).standard_error for m in made.members]
        assert found.standard_error < 0.5 * np.hypot(*own)
        low, high = found.interval
        assert low < found.difference < high


@pytest.mark.parametrize("other", ["seed", "pairs", "rows", "all pairs"])
def test_other_samples_are_not_paired(other):
    X, Y = alike()
    one = sampled(X, "a")
    if other == "seed":
        two = sampled(Y, "b", seed=1)
    elif other == "pairs":
        two = entered(Y, "b", sections=("cosine", "tokens"), pairs=PAIRS + 1)
    elif other == "rows":
        two = sampled(Y[:-1], "b")
    else:
        one, two = (entered(W, "c", sections=("cosine",), pairs=None) for W in (X, Y))
    made = comparison(one, two, match="row")
    row = next(d for d in made.differences if d.name == UNIFORMITY.name)
    assert "paired" not in row.error_note
    matching = made.pairs[0].matching
    matrices = (one.matrix, two.matrix)
    assert not paired_errors(one.member.analysis, two.member.analysis, matrices, matching)


@pytest.mark.slow
def test_a_paired_error_is_the_spread_of_differences_over_seeds():
    """Of analyses that draw other pairs each time, the same on both sides."""
    X = gaussian(11, n=240)
    Y = X + 0.3 * gaussian(12, n=240)
    found = []
    for seed in range(40):
        made = comparison(
            *(entered(W, "w", sections=("cosine",), seed=seed, pairs=500) for W in (X, Y)),
            queries=0,
        )
        rows = {d.name: d for d in made.differences}
        found.append([(rows[q.name].difference, rows[q.name].standard_error) for q in PAIRED])
    for spread, errors in np.array(found).transpose(1, 2, 0):
        assert errors.mean() == pytest.approx(spread.std(ddof=1), rel=0.35)


@pytest.mark.slow
def test_a_paired_interval_covers_the_truth():
    """Of 40 seeds about 38 must; 33 would already be a sign of wrong intervals."""
    exact = comparison(
        *(entered(W, "t", sections=("cosine",), pairs=None) for W in alike()), queries=0
    )
    truth = {d.name: d.difference for d in exact.differences}
    covered = 0
    for seed in range(40):
        made = comparison(
            *(entered(W, "w", sections=("cosine",), seed=seed, pairs=500) for W in alike()),
            queries=0,
        )
        row = next(d for d in made.differences if d.name == UNIFORMITY.name)
        assert row.interval[0] < row.difference < row.interval[1]
        covered += row.interval[0] <= truth[row.name] <= row.interval[1]
    assert covered >= 34


def test_pairs_are_of_two_different_rows_and_uniform():
    first, second = draw_pairs(5, 20_000, 0)
    assert not np.any(first == second)
    counts = np.zeros((5, 5))
    np.add.at(counts, (first, second), 1)
    assert counts[~np.eye(5, dtype=bool)].min() > 900


# Bootstrap --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [30, 400, 20_000])
def test_the_bootstrap_knows_the_error_of_a_mean(n):
    values = rng(70).exponential(size=n)
    error = values.std(ddof=1) / np.sqrt(n)
    means = resampled_means(values[:, None], seed=0)[:, 0]
    assert means.std() == pytest.approx(error, rel=0.12)
    low, high = mean_interval(values, 0)
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.6 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.6 * error)
    assert mean_interval(values, 0) == (low, high)
    assert mean_interval(values, 1) != (low, high)


def test_the_bootstrap_keeps_columns_together():
    """The difference of two columns that move alike has their common error left out."""
    common = rng(71).standard_normal((5000, 1))
    means = resampled_means(common + 0.01 * rng(72).standard_normal((5000, 2)), seed=0)
    own, difference = means[:, 0].std(), (means[:, 1] - means[:, 0]).std()
    assert own == pytest.approx(1 / np.sqrt(5000), rel=0.12)
    assert difference == pytest.approx(0.01 * np.sqrt(2 / 5000), rel=0.12)


# Sentences --------------------------------------------------------------------------------------


def i1(raw, unit):
    return {
        name: difference(Quantity(name, name, name), 1, *(PLAIN.measured(v) for v in values))
        for name, values in (("isotropy.i1", raw), ("isotropy.i1_unit", unit))
    }


def test_shrunken_norms_cannot_pass_for_isotropy():
    W = narrow_cone(length=3.0, ratio=3.0)
    parts = ("isotropy", "tokens")
    made = comparison(
        entered(W, "baseline", sections=parts, sphere=False),
        entered(0.1 * W, "shrunken", sections=parts, sphere=False),
    )
    rows = {d.name: d for d in made.differences}
    assert rows["isotropy.i1"].difference > 0.3
    assert rows["isotropy.i1_unit"].change == "equal"
    assert "stayed at" in made.sentences[0]
    assert "what moved it are the norms (median" in made.sentences[0]


@pytest.mark.parametrize(
    ("raw", "unit", "norms", "words"),
    [
        ((0.1, 0.8), (0.2, 0.85), (2, 1), "I1 rose from 0.1 to 0.8, and from 0.2 to 0.85 at unit "),
        ((0.1, 0.8), (0.2, 0.2), (2, 1), "I1 rose from 0.1 to 0.8, but stayed at 0.2 at unit sca"),
        ((0.1, 0.8), (0.2, 0.25), (2, 1), "I1 rose from 0.1 to 0.8, but only from 0.2 to 0.25 at "),
        ((0.1, 0.8), (0.3, 0.2), (2, 1), "I1 rose from 0.1 to 0.8, but fell from 0.3 to 0.2 at u"),
        ((0.8, 0.1), (0.3, 0.3), (1, 2), "I1 fell from 0.8 to 0.1, but stayed at 0.3 at unit sca"),
        ((0.5, 0.5), (0.3, 0.3), (1, 2), "I1 stayed at 0.5, and at 0.3 at unit scale"),
        ((0.5, 0.5), (0.3, 0.4), (1, 2), "I1 stayed at 0.5, and rose from 0.3 to 0.4 at unit sca"),
    ],
)
def test_raw_and_unit_isotropy_are_told_together(raw, unit, norms, words):
    said = describe_isotropy(i1(raw, unit), norms)
    assert said.startswith(words)
    blamed = f"what moved it are the norms (median {norms[0]}, then {norms[1]})"
    assert (blamed in said) == (", but " in said)
    # Norms that moved the other way explain nothing, nor do unknown ones.
    assert "norms" not in describe_isotropy(i1(raw, unit), norms[::-1])
    assert "norms" not in describe_isotropy(i1(raw, unit), None)


@pytest.mark.parametrize(
    ("raw", "unit", "carried"),
    [(0.1, 0.03, True), (0.1, 0.02, False), (-0.1, -0.09, True), (-0.1, 0.03, False)],
)
def test_a_change_is_carried_by_a_share_of_it_at_unit_scale(raw, unit, carried):
    assert is_carried(raw, unit) is carried


def test_what_nobody_would_call_a_rise_carries_none():
    assert not is_carried(0.02, 0.008)


@pytest.mark.parametrize(
    ("before", "after", "rose", "helped"),
    [(1, 0.5, True, True), (1, 0.5, False, False), (1, 2, False, True), (1, 0.99, True, False)],
)
def test_norms_explain_a_change_if_they_moved_the_way_that_makes_it(before, after, rose, helped):
    assert explain(before, after, rose) is helped


def test_neighbors_are_told_of_only_where_all_or_none_were_kept():
    W = gaussian(13, n=300)
    kept, lost, some = (
        comparison(W, V).sentences for V in (2 * W, gaussian(14, n=300), W + gaussian(15, n=300))
    )
    assert any("keeps all its neighbors" in s for s in kept)
    assert any("no more of their neighbors than chance" in s for s in lost)
    assert not any("neighbors" in s for s in some)


def test_sentences_name_the_member_where_there_are_several():
    made = comparison(
        *(entered(gaussian(i, n=40), f"W{i}", sections=("isotropy",)) for i in range(3))
    )
    assert any(s.startswith("W1: I1 ") for s in made.sentences)
    assert any(s.startswith("W2: I1 ") for s in made.sentences)
    only = sentences(made.members[:2], made.pairs[:1], made.differences_of(1))
    assert only[0].startswith("I1 ")


def test_groups_of_unequal_size_count_by_their_size():
    """Of 750 draws some groups hold two and some one: the mean is that of the draws."""
    draws = rng(5).exponential(size=(750, 1)) + 1.0
    means = resampled_means(draws, 1)[:, 0]
    spread = draws.std() / np.sqrt(750)
    assert abs(means.mean() - draws.mean()) < spread / 5
    assert means.std() == pytest.approx(spread, rel=0.1)


def test_the_ends_of_a_paired_interval_are_not_swapped():
    skewed = rng(6).exponential(size=20_000) - 1.0
    found = paired(skewed, 0.5, "")
    low, high = np.quantile(skewed, [0.025, 0.975])
    assert found.below == pytest.approx(0.5 * low)
    assert found.above == pytest.approx(0.5 * high)
    assert found.standard_error == pytest.approx(0.5 * skewed.std(ddof=1))


def test_an_error_from_some_of_the_pairs_is_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def errors():
        one, two = (
            entered(gaussian(seed, n=300, d=6) + 0.3, "W", sections=("cosine",), pairs=2_000)
            for seed in (3, 4)
        )
        compared = comparison(one, two, queries=0)
        matching = compared.pairs[0].matching
        first, second = one.member.analysis, two.member.analysis
        return paired_errors(first, second, (one.matrix, two.matrix), matching)

    whole = errors()
    monkeypatch.setattr("embgeo.comparison.paired.MOST_PAIRS", 500)
    some = errors()
    assert whole.keys() == some.keys() != set()
    for name, found in some.items():
        assert found.standard_error == pytest.approx(whole[name].standard_error, rel=0.15)
