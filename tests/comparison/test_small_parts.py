"""Texts of differences, names of members, and rare tokens, by hand."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from embgeo.comparison.comparison import Comparison, Member, member_name, name_of, short_name
from embgeo.comparison.film import bin_jointly, make_film
from embgeo.comparison.moved import list_moved_tokens, rare_tokens
from embgeo.comparison.overlap import Overlap, measure_overlap
from embgeo.comparison.pair import Difference
from embgeo.comparison.similarity import PERMUTATIONS, center_gram
from embgeo.comparison.track import Track
from embgeo.core.quantities import cosine
from embgeo.core.quantities.compare import MOVED
from embgeo.core.values import Histogram, Quantity, Table
from embgeo.numerics.sampling import generator
from embgeo.result.analysis import Analysis
from tests.support.compared import pair_of
from tests.support.sample_comparison import sample_comparison

PLAIN = Quantity("a.b", "Plain", "A number.")


def test_texts_of_a_difference() -> None:
    one = Difference(PLAIN, 1, 1.0, 0.5, -0.5, 0.123, interval=(-0.7, 0.3), note="n")
    assert (one.text, one.error_text, one.interval_text) == ("−0.5", "± 0.12", "−0.7 … +0.3")
    assert repr(one) == "<Difference a.b: −0.5>"
    assert replace(one, error_note="e").remarks == "n; e"
    none = Difference(PLAIN, 1, None, 0.5, None, change="undefined", undefined="no pairs")
    assert (none.text, none.error_text, none.interval_text) == ("", "", "")
    assert repr(none) == "<Difference a.b: no pairs>"
    assert none.remarks == "no pairs"
    near = replace(one, difference=1e-15, change="equal")
    assert near.text == "≈ 0"
    assert replace(near, difference=0.0).text == "0"
    assert replace(one, quantity=replace(PLAIN, unit="°")).text == "−0.5°"


def test_names_are_steps_in_a_track_only() -> None:
    member = Member("a\u202eb", "a", Analysis({}), step=12_000.0)
    plain = replace(member, step=None)
    assert name_of(member, True) == "step 12,000"
    assert name_of(member, False) == name_of(plain, True) != "step 12,000"
    two = Comparison({}, (member, plain))
    assert [member_name(two, place) for place in (0, 1)] == ["a‹U+202E›b"] * 2
    track = Track((1.0, 2.0), "names")
    assert member_name(Comparison({}, (member, plain), track=track), 0) == "step 12,000"
    assert member_name(Comparison({}, (member, plain), track=track), 1) == "a‹U+202E›b"


@pytest.mark.parametrize(("length", "short"), [(18, "x" * 18), (19, "xxxxxxxxx…xxxxxxxx")])
def test_long_names_are_cut_in_the_middle(length: int, short: str) -> None:
    found = Comparison({}, (Member("x" * length, "", Analysis({})),) * 2)
    assert short_name(found, 0) == short


def test_rare_tokens_are_those_of_the_first_member_that_knows_both() -> None:
    def member(tokens: Any, popular: Any) -> Any:
        return SimpleNamespace(analysis=SimpleNamespace(tokens=tokens, popular=popular))

    words, which = ("a", "b", "c"), (True, False, False)
    known, named = member(words, which), member(words, None)
    counted = member(None, which)

    def find(*members: Any) -> Any:
        return rare_tokens(SimpleNamespace(members=members))  # type: ignore[arg-type]

    assert find(named, counted, known) == {"b", "c"}
    assert find(known, member(words, (False, True, True))) == {"b", "c"}
    assert find(named, counted) == frozenset()


def test_neighbors_that_stay_are_those_on_both_sides() -> None:
    columns = ("token", "cosine lost", "overlap", "before 1", "before 2", "after 1", "after 2")
    rows = (("a", 0.25, 1 / 3, "b", "c", "c", "d"), ("e", 0.0, 1.0, "b", "c", "b", "c"))
    pair: Any = SimpleNamespace(tables=(Table(MOVED, columns, rows),))
    nobody: Any = SimpleNamespace(members=())
    (line,) = list_moved_tokens(nobody, pair)
    assert (line.token, line.lost, line.overlap) == ("a", "0.250", "0.333")
    assert [one.kept for one in (*line.before, *line.after)] == [False, True, True, False]


@pytest.mark.parametrize("exact", [True, False])
def test_an_overlap_of_all_tokens_has_no_error(exact: bool) -> None:
    g = np.random.default_rng(0)
    before, after = (np.argsort(g.random((40, 60)), axis=1)[:, :10] for _ in range(2))
    found = Overlap(np.arange(40), before, after, 40 if exact else 60)
    overlap = measure_overlap(found, 0)
    kept = np.array([len({*a} & {*b}) for a, b in zip(before, after, strict=True)])
    jaccard = kept / (20 - kept)
    assert float(overlap) == pytest.approx(jaccard.mean(), rel=1e-12)
    error = jaccard.std(ddof=1) / np.sqrt(40)
    assert overlap.standard_error == (None if exact else pytest.approx(error, rel=1e-12))
    assert ("bootstrap interval" in overlap.sample) is not exact


def test_centered_gram_matrices_have_norm_1_and_no_sums() -> None:
    rows = 1e3 * np.random.default_rng(1).standard_normal((9, 3)) + 5.0
    gram = center_gram(rows)
    assert gram is not None
    assert np.linalg.norm(gram) == pytest.approx(1.0, rel=1e-12)
    assert np.abs(gram.sum(axis=0)).max() < 1e-12
    assert np.diagonal(gram).tolist() == [0.0] * 9
    assert center_gram(np.ones((9, 3))) is None


def test_the_chance_of_a_pairing_is_that_of_permuted_tokens() -> None:
    """Rows and columns of the second Gram matrix change places together."""
    g = np.random.default_rng(2)
    rows = g.standard_normal((30, 4))
    sides = rows, 0.25 * rows + g.standard_normal((30, 4))
    scalar = pair_of(*sides)["compare.cka_p"]
    found = float(scalar)
    first, second = (center_gram(side) for side in sides)
    assert first is not None
    assert second is not None
    seen = float((first * second).sum())
    order = generator(0, "permutations of tokens")
    reached = [
        (first * second[np.ix_(p, p)]).sum() >= seen - 1e-12
        for p in (order.permutation(30) for _ in range(PERMUTATIONS))
    ]
    assert found == (1 + sum(reached)) / (1 + PERMUTATIONS)
    assert 0.002 < found < 0.9
    share = np.r_[np.ones(1 + sum(reached)), np.zeros(PERMUTATIONS - sum(reached))]
    assert scalar.standard_error == pytest.approx(share.std() / np.sqrt(PERMUTATIONS), rel=1e-9)


def test_a_film_has_two_frames_at_least() -> None:
    whole = sample_comparison(members=4, track=True)
    assert whole.track is not None
    for count, frames in ((1, None), (2, 2)):
        track = replace(whole.track, steps=whole.track.steps[:count], same_as=())
        part = replace(whole, members=whole.members[:count], track=track)
        film = make_film(part)
        assert (None if film is None else len(film.members)) == frames


def test_a_histogram_of_one_pair_has_a_density() -> None:
    one = Histogram(cosine.HISTOGRAM, np.array([0.0, 1.0]), np.array([1.0]), "cosine", "pairs")
    assert bin_jointly([one, one])[1].shape[1] > 0
    none = replace(one, counts=np.array([0.0]))
    assert bin_jointly([one, none])[1].shape == (2, 0)
