"""Differences of scalars: their errors, and whether they are more than chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import embgeo
from embgeo.comparison.comparison import Member
from embgeo.comparison.differences import (
    difference,
    differences,
    judge,
    population_error,
)
from embgeo.comparison.overlap import interval, mean_interval, resampled_means
from embgeo.comparison.sentences import (
    describe_isotropy_move,
    explain,
    is_carried,
    sentences,
)
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.quantities.cosine import CONE_HALF_ANGLE_MEDIAN, MEAN
from embgeo.core.quantities.frequency import PROBE_AUC
from embgeo.core.quantities.tokens import INTRINSIC_DIMENSION
from embgeo.core.values import Quantity
from embgeo.result.analysis import Analysis
from tests.support.compared import comparison, enter_pair
from tests.support.matrices import gaussian, narrow_cone, rng
from tests.support.sampling import each_value

PLAIN = Quantity("a.b", "Plain", "A number.")
GOOD = replace(PLAIN, better="higher")


def row(old, new, quantity=PLAIN):
    """Of (value, error over tokens, sampling error), or a reason why there is no value."""

    def scalar(facts):
        if isinstance(facts, str):
            return quantity.undefined(facts)
        value, tokens, sampling = (*facts, None, None)[:3]
        return quantity.measured(
            value,
            standard_error=None if sampling == "unknown" else sampling,
            error_kind="monte_carlo",
            sample="" if sampling is None else "a sample",
            population_error=tokens,
        )

    sides = (scalar(old), scalar(new))
    nobody = (Analysis({}), Analysis({}))
    error = population_error(*sides, nobody, False)
    return judge([difference(quantity, 1, *sides, error)])[0]


def test_what_is_known_of_a_difference():
    for old, new, change in (
        ((1.0,), (2.0,), "not judged"),
        ((1.0,), (1.0,), "equal"),
        ((1.0,), (1.0 + 1e-12,), "equal"),
        ((0.0,), (1e-15,), "equal"),
        ((0.0,), (1e-6,), "not judged"),
        ((1.0, 0.1), (1.1, 0.1), "not significant"),
        ((1.0, 0.1), (2.0, 0.1), "significant"),
        ((1.0, 0.1), (1.0, 0.1), "equal"),
        ((1.0, 0.1), (2.0,), "not judged"),
        ((1.0, 0.1, 0.1), (1.1, 0.1, 0.1), "not significant"),
        ((1.0, 0.1, 0.1), (2.0, 0.1), "significant"),
        ((1.0, 0.1, 0.1), (1.0, 0.1, 0.1), "equal"),
        ((1.0, 1e-15, 1e-15), (1.0 + 4e-15, 1e-15, 1e-15), "equal"),
        ((1.0, 1e-15, 1e-15), (1.0 + 4e-9, 1e-15, 1e-15), "significant"),
        ((1.0, 0.0), (1.0 + 4e-9, 0.0), "significant"),
        ((1.0, None, 0.1), (2.0, None, 0.1), "not judged"),
        ((1.0, None, "unknown"), (2.0, None, "unknown"), "not judged"),
        ((1.0, None, "unknown"), (2.0,), "not judged"),
        ("no pairs", (1.0,), "undefined"),
        ((1.0,), "no pairs", "undefined"),
    ):
        assert row(old, new).change == change


def test_differences_are_judged_together():
    """One that is alone 2.5 errors off is significant, and not among five."""
    sides = (PLAIN.measured(0.0, population_error=0.6), PLAIN.measured(2.5, population_error=0.8))
    nobody = (Analysis({}), Analysis({}))
    one = difference(PLAIN, 1, *sides, population_error(*sides, nobody, False))
    assert one.p_value == pytest.approx(0.0245058, rel=1e-4)
    assert judge([one])[0].change == "significant"
    assert judge([one] * 5)[4].change == "not significant"
    assert judge([one] * 5)[0].p_adjusted == pytest.approx(5 * one.p_value)


def test_numbers_that_depend_on_the_number_of_rows_have_no_difference():
    sides = (PLAIN.measured(1.0, size=4_000), PLAIN.measured(2.0, size=40_000))
    found = difference(PLAIN, 1, *sides)
    assert (found.difference, found.change) == (None, "undefined")
    assert found.undefined == "it depends on the number of rows: 4,000 and 40,000 rows"


def test_a_copy_in_half_precision_is_equal():
    W = gaussian(0, 1500, 32).astype(np.float32)
    full, half, other = (
        embgeo.analyze(X, reference=False)
        for X in (W, W.astype(np.float16), (W + np.float32(0.1)).astype(np.float16))
    )
    assert all(d.p_value is None for d in embgeo.diff(full, half).differences)
    assert any(d.change == "significant" for d in embgeo.diff(full, other).differences)


def test_a_bound_of_other_pairs_is_another_number():
    W = gaussian(3, 300, 8)
    few, more = (
        embgeo.analyze(W, sections="cosine", reference=False, pairs=pairs) for pairs in (500, 5000)
    )
    for old, new, undefined in ((few, more, True), (few, few, False)):
        found = {d.quantity.name: d for d in embgeo.diff(old, new).differences}
        bound, share = found["cosine.cone_aperture"], found["cosine.positive_share"]
        assert (bound.difference is None, "500 and 5,000 pairs" in bound.undefined) == (
            undefined,
            undefined,
        )
        assert share.difference is not None


def test_errors_of_both_sides_are_added_in_squares():
    found = row((1.0, 0.3), (2.0, 0.4))
    assert found.standard_error == pytest.approx(0.5)
    assert found.interval == pytest.approx((1 - 2.131494 * 0.5, 1 + 2.131494 * 0.5))
    assert "squares" in found.error_note


def test_an_undefined_side_gives_its_reason():
    assert row((1.0,), "a single row has no pairs").undefined == "a single row has no pairs"
    assert row((1.0,), "reason").baseline == 1.0
    assert row((1.0,), "reason").difference is None


def test_only_what_changed_is_better_or_worse():
    for old, new, direction in (
        ((1.0,), (2.0,), "better"),
        ((2.0,), (1.0,), "worse"),
        ((1.0,), (1.0,), None),
        ((1.0, 0.5), (1.1, 0.5), None),
    ):
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
        enter_pair(gaussian(1, n=50), "one", sections=("cosine",)),
        enter_pair(gaussian(2, n=50), "two", sections=("cosine", "spectrum")),
        enter_pair(gaussian(3, n=50), "three", sections=("tokens",)),
    )
    names = {s.name for m in made.members for s in m.analysis.scalars}
    for place in (1, 2):
        assert {d.name for d in made.differences_of(place)} == names
    assert len(made.differences) == 2 * len(names)


def test_numbers_of_unlike_classes_are_not_subtracted():
    W, counts = gaussian(1, n=50), Frequency("counts", np.arange(50.0, 0, -1), "a file")
    members = [
        enter_pair(Matrix(W, frequency=counts), name, sections=("cosine", "frequency"), **more)
        for name, more in (("one", {}), ("same", {}), ("half", {"popular_share": 0.5}))
    ]
    made = comparison(*members)
    for place, known in ((1, True), (2, False)):
        rows = {row.name: row for row in made.differences_of(place)}
        assert (rows["frequency.norm_ratio"].difference is not None) is known
        assert rows["cosine.mean"].difference == 0.0
    reason = "the baseline was measured with popular_share = 0.2, not 0.5"
    assert rows["frequency.norm_ratio"].undefined == reason
    assert f"half: some numbers are not compared: {reason}" in made.notes


# Errors over tokens -----------------------------------------------------------------------------

SETTINGS = {"sections": ("cosine", "tokens", "frequency"), "pairs": 3_000}
JUDGED = (MEAN, CONE_HALF_ANGLE_MEDIAN, PROBE_AUC, INTRINSIC_DIMENSION)


def counted(W, name, **more):
    counts = Frequency("counts", np.linspace(5000, 1, len(W)), "made up")
    return enter_pair(Matrix(W, frequency=counts), name, **SETTINGS | more)


def alike():
    W = gaussian(7, n=240) + 0.5
    return W, W + 0.05 * gaussian(8, n=240)


def test_what_both_sides_share_drops_out_of_the_error():
    made = comparison(*(counted(W, n) for W, n in zip(alike(), "ab", strict=True)))
    rows = {d.name: d for d in made.differences}
    for quantity in JUDGED:
        found = rows[quantity.name]
        assert (found.error_kind, found.error_note) == ("population", "paired, token by token")
        own = [m.analysis.find_scalar(quantity).population_error for m in made.members]
        assert found.standard_error < 0.8 * np.hypot(*own), quantity.name
        low, high = found.interval
        assert low < found.difference < high


def test_other_rows_are_not_paired():
    X, Y = alike()
    made = comparison(counted(X, "a"), counted(Y[:0:-1], "b"), match="row")
    row = next(d for d in made.differences if d.name == MEAN.name)
    own = [m.analysis.find_scalar(MEAN).population_error for m in made.members]
    assert row.standard_error == pytest.approx(np.hypot(*own), rel=0.15)


def test_a_matrix_does_not_differ_from_itself():
    W, _ = alike()
    made = comparison(counted(W, "a"), counted(W, "b"))
    assert {d.change for d in made.differences} <= {"equal", "undefined"}


@each_value
@pytest.mark.parametrize("entries", [np.float64, np.float32])
@pytest.mark.parametrize("change", ["rotated", "scaled", "centered"])
@pytest.mark.slow
def test_rounding_is_not_a_difference(change, entries):
    """Numbers that the change leaves alone are equal; another number of the same pair is not."""
    X = rng(7).standard_normal((700, 24)) * np.arange(1.0, 25.0) ** -0.3 + 0.2
    Q = np.linalg.qr(rng(8).standard_normal((24, 24)))[0]
    Y = {"rotated": X @ Q, "scaled": 3.0 * X, "centered": X - X.mean(axis=0)}[change]
    parts = ("spectrum", "cosine", "tokens")
    made = comparison(
        enter_pair(X.astype(entries), "a", sections=parts),
        enter_pair(Y.astype(entries), "b", sections=parts),
    )
    rows = {d.name: d.change for d in made.differences}
    assert rows["tokens.intrinsic_dimension"] == "equal"
    assert (rows["cosine.std"] == "equal") == (change != "centered")
    assert (rows["tokens.norm_median"] == "equal") == (change == "rotated")


@pytest.mark.nightly
def test_a_paired_error_is_the_spread_of_differences_over_populations():
    """Of two noisy copies of rows that are drawn anew each time."""
    found = []
    for seed in range(40):
        W = gaussian(seed, n=200, d=6) + 0.4
        sides = (
            counted(W + 0.2 * gaussian(100 + i + seed, n=200, d=6), "w", sections=("cosine",))
            for i in (0, 1000)
        )
        rows = {d.name: d for d in comparison(*sides, queries=0).differences}
        found.append([(rows[q.name].difference, rows[q.name].standard_error) for q in JUDGED[:2]])
    for spread, errors in np.array(found).transpose(1, 2, 0):
        assert errors.mean() == pytest.approx(spread.std(ddof=1), rel=0.3)


# Bootstrap --------------------------------------------------------------------------------------


def test_the_bootstrap_knows_the_error_of_a_mean():
    for n in (30, 400, 20_000):
        values = rng(70).exponential(size=n)
        error = values.std(ddof=1) / np.sqrt(n)
        means = resampled_means(values[:, None], seed=0)[:, 0]
        assert means.std() == pytest.approx(error, rel=0.12)
        low, high = mean_interval(values, 0)
        assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.6 * error)
        assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.6 * error)
        assert mean_interval(values, 0) == (low, high)
        assert mean_interval(values, 1) != (low, high)


def test_ends_of_an_interval_are_quantiles_of_the_replicates():
    """Of skewed ones, so that an interval mirrored at their mean is another one."""
    replicates = np.square(np.arange(2001.0) / 2000.0)
    np.testing.assert_allclose(interval(replicates), (0.025**2, 0.975**2), rtol=1e-12)


def test_the_bootstrap_keeps_columns_together():
    """The difference of two columns that move alike has their common error left out."""
    common = rng(71).standard_normal((5000, 1))
    means = resampled_means(common + 0.01 * rng(72).standard_normal((5000, 2)), seed=0)
    own, difference = means[:, 0].std(), (means[:, 1] - means[:, 0]).std()
    assert own == pytest.approx(1 / np.sqrt(5000), rel=0.12)
    assert difference == pytest.approx(0.01 * np.sqrt(2 / 5000), rel=0.12)


# Sentences --------------------------------------------------------------------------------------


def test_shrunken_norms_cannot_pass_for_isotropy():
    W = narrow_cone(length=3.0, ratio=3.0)
    parts = ("isotropy", "tokens")
    made = comparison(
        enter_pair(W, "baseline", sections=parts),
        enter_pair(0.1 * W, "shrunken", sections=parts),
    )
    rows = {d.name: d for d in made.differences}
    assert rows["isotropy.i1"].difference > 0.3
    assert rows["isotropy.i1_unit"].change == "equal"
    assert made.sentences[0].startswith("I1 of unit rows stayed at ")
    assert ", only because of smaller norms (median" in describe_isotropy_move(made, 1)


def test_a_change_is_carried_by_a_share_of_it_at_unit_scale():
    for raw, unit, carried in (
        (0.1, 0.03, True),
        (0.1, 0.02, False),
        (-0.1, -0.09, True),
        (-0.1, 0.03, False),
    ):
        assert is_carried(raw, unit) is carried


def test_what_nobody_would_call_a_rise_carries_none():
    assert not is_carried(0.02, 0.008)


def test_norms_explain_a_change_if_they_moved_the_way_that_makes_it():
    for before, after, rose, helped in (
        (1, 0.5, True, True),
        (1, 0.5, False, False),
        (1, 2, False, True),
        (1, 0.99, True, False),
    ):
        assert explain(before, after, rose) is helped


@pytest.mark.slow
def test_neighbors_are_told_of_only_where_all_or_none_were_kept():
    W = gaussian(13, n=300)
    kept, lost, some = (
        comparison(W, V).sentences for V in (2 * W, gaussian(14, n=300), W + gaussian(15, n=300))
    )
    assert any("keep all their neighbors" in s for s in kept)
    assert any("no more of their neighbors than by chance" in s for s in lost)
    assert not any("neighbors" in s for s in some)


def test_sentences_name_the_member_where_there_are_several():
    made = comparison(
        *(enter_pair(gaussian(i, n=40), f"W{i}", sections=("isotropy",)) for i in range(3))
    )
    assert any(s.startswith("W1: I1 of unit rows ") for s in made.sentences)
    assert any(s.startswith("W2: I1 of unit rows ") for s in made.sentences)
    only = sentences(
        replace(
            made,
            members=made.members[:2],
            pairs=made.pairs[:1],
            differences=made.differences_of(1),
        )
    )
    assert only[0].startswith("I1 of unit rows ")


def test_groups_of_unequal_size_count_by_their_size():
    """Of 750 draws some groups hold two and some one: the mean is that of the draws."""
    draws = rng(5).exponential(size=(750, 1)) + 1.0
    means = resampled_means(draws, 1)[:, 0]
    spread = draws.std() / np.sqrt(750)
    assert abs(means.mean() - draws.mean()) < spread / 5
    assert means.std() == pytest.approx(spread, rel=0.1)
