"""Which row is which: by token, by row number, and what is said about the rest."""

from __future__ import annotations

import numpy as np

from embgeo.comparison.comparison import distinguish_names
from embgeo.comparison.matching import match_rows
from embgeo.result.analysis import Analysis
from tests.support.compared import comparison, enter_pair, number
from tests.support.matrices import gaussian
from tests.support.sample_analysis import HOSTILE


def analysis(tokens=None, rows=None, n=None, cut=None):
    count = len(tokens) if tokens is not None else len(rows)
    rows = np.arange(count) if rows is None else np.asarray(rows)
    return Analysis(
        {"n": count if n is None else n, "row_range": cut},
        rows=rows.astype(np.int64),
        tokens=None if tokens is None else tuple(tokens),
    )


def shared(matching, first, second):
    """The tokens of the matched rows, which must be equal."""
    ours = [first.tokens[i] for i in matching.first]
    assert ours == [second.tokens[i] for i in matching.second]
    return ours


def test_tokens_are_matched_by_their_string_in_the_order_of_the_baseline():
    one, two = analysis("dcba"), analysis("abxc")
    found = match_rows(one, two)
    assert found.by == "token"
    assert shared(found, one, two) == ["c", "b", "a"]
    assert found.left_out[0].missing == 1
    assert found.left_out[0].examples == ("d",)
    assert found.left_out[1].examples == ("x",)


def test_strings_are_not_changed_before_they_are_compared():
    one, two = analysis(["a", "A", " a", "a\u0301", "á"]), analysis(["á", "a ", "A", "a", "\ta"])
    assert shared(match_rows(one, two), one, two) == ["a", "A", "á"]


def test_a_string_that_stands_twice_is_matched_where_it_stands_in_the_same_rows():
    one, two = analysis(["a", "b", "a", "c", "c"]), analysis(["a", "x", "a", "c", "d"])
    found = match_rows(one, two)
    assert shared(found, one, two) == ["a", "a"]
    for part in found.left_out:
        assert part.ambiguous_examples == ("c",)
    assert [part.ambiguous for part in found.left_out] == [2, 1]
    assert [part.missing for part in found.left_out] == [1, 2]


def test_a_vocabulary_with_many_equal_strings_is_still_matched_with_itself():
    tokens = ["<unused>"] * 50 + [f"t{i}" for i in range(10)]
    found = match_rows(analysis(tokens), analysis(tokens))
    np.testing.assert_array_equal(found.first, np.arange(60))
    np.testing.assert_array_equal(found.second, np.arange(60))


def test_rows_that_one_side_leaves_out_are_not_shared():
    """Positions are those among the kept rows, not row numbers."""
    one = analysis("abc", rows=[0, 1, 2], n=4)
    two = analysis("acd", rows=[0, 2, 3], n=4)
    found = match_rows(one, two)
    assert found.first.tolist() == [0, 2]
    assert found.second.tolist() == [0, 1]


def test_examples_are_few():
    found = match_rows(
        analysis([f"a{i}" for i in range(100)]), analysis([f"b{i}" for i in range(100)])
    )
    assert found.shared == 0
    assert len(found.left_out[0].examples) == 5
    assert found.left_out[0].missing == 100


def test_without_tokens_rows_are_matched_by_number():
    found = match_rows(analysis(rows=[0, 2, 3], n=4), analysis(rows=[0, 1, 3], n=4))
    assert found.by == "row"
    assert "neither side has tokens" in found.reason
    assert found.first.tolist() == [0, 2]
    assert found.second.tolist() == [0, 2]
    assert found.left_out[0].examples == ("row 2",)


def test_tokens_on_one_side_alone_do_not_help():
    found = match_rows(analysis("abc"), analysis(rows=[0, 1, 2]))
    assert found.by == "row"
    assert "one side has no tokens" in found.reason


def test_rows_of_matrices_of_unlike_size_are_matched_only_when_asked():
    one, two = analysis(rows=range(5)), analysis(rows=range(9))
    refused = match_rows(one, two)
    assert refused.by is None
    assert refused.shared == 0
    assert "rows 0 to 4 are not rows 0 to 8" in refused.reason
    asked = match_rows(one, two, "row")
    assert asked.shared == 5
    assert asked.left_out[1].missing == 4


def test_rows_are_numbered_as_in_the_file():
    cut = analysis(rows=range(3), cut=[5, 8])
    whole = analysis(rows=range(10))
    assert match_rows(cut, whole).by is None
    assert match_rows(cut, whole, "row").second.tolist() == [5, 6, 7]
    moved = analysis(rows=range(3), cut=[6, 9])
    assert match_rows(cut, moved).by is None


def test_what_is_asked_for_is_done():
    one, two = analysis("ab"), analysis("ba")
    assert match_rows(one, two, "row").first.tolist() == [0, 1]
    assert match_rows(one, two, "row").second.tolist() == [0, 1]
    assert match_rows(one, two, "token").second.tolist() == [1, 0]
    refused = match_rows(one, analysis(rows=[0, 1]), "token")
    assert refused.by is None
    assert "one side has no tokens" in refused.reason


def test_listed_rows_are_matched_by_number_where_both_are_cut_alike():
    """Of very large matrices some rows are listed, in which a token need not be on both sides."""
    for rows, match, by in (
        (9, None, "row"),
        (9, "row", "row"),
        (9, "token", None),
        (12, None, None),
        (12, "row", "row"),
        (12, "token", None),
    ):
        one = analysis("abc", n=9)
        other = analysis("abc", n=rows)
        other.provenance["listed"] = 3
        found = match_rows(one, other, match)
        assert found.by == by
        assert ("--match row" in found.reason) is (by is None)
        assert found.shared == (3 if by else 0)


def test_hostile_vocabularies_are_matched_and_named():
    """Every string is only ever compared, and shown as it is in the result."""
    filler = tuple(f"t{i}" for i in range(20))
    first, second = (*HOSTILE, *filler), (*HOSTILE[::-1], *filler, "\x1b[2J")
    made = comparison(
        enter_pair(gaussian(1, n=len(first)), "one", tokens=first),
        enter_pair(gaussian(2, n=len(second)), "two", tokens=second),
    )
    pair = made.pairs[0]
    assert pair.matching.shared == len(set(HOSTILE)) + 20
    assert number(pair, "cka") > 0
    labels = {cell for row in pair["compare.moved"].rows for cell in row if isinstance(cell, str)}
    assert labels <= set(first)
    assert any("\\x1b" in note for note in made.notes)


def test_notes_cut_long_tokens():
    one = enter_pair(gaussian(6, n=30), "one", tokens=("y" * 9000, *(f"t{i}" for i in range(29))))
    two = enter_pair(gaussian(7, n=30), "two", tokens=("x" * 9000, *(f"t{i}" for i in range(29))))
    made = comparison(one, two)
    assert max(map(len, made.notes)) < 120
    assert made.pairs[0].matching.left_out[0].examples == ("y" * 9000,)


def test_a_note_says_how_rows_were_matched_and_what_was_left_out():
    one = enter_pair(gaussian(3, n=30), "one", tokens=tuple(f"t{i}" for i in range(30)))
    two = enter_pair(gaussian(4, n=31), "two", tokens=("x", *(f"t{i}" for i in range(30))))
    three = enter_pair(gaussian(5, n=32))
    said = comparison(one, two, three).notes
    assert "one and two: 30 tokens shared, matched by token" in said
    assert "one and two: 1 token only in two: 'x'" in said
    single = comparison(one, enter_pair(gaussian(3, n=2), "two", tokens=("t0", "x"))).notes
    assert "one and two: 1 token shared, matched by token" in single
    assert sum("over all its rows" in s for s in said) == 1
    assert any("one and W: rows are not matched: one side has no tokens" in s for s in said)


def test_names_tell_members_apart():
    for paths, names in (
        (["a/x.pt", "b/y.pt"], ["x", "y"]),
        (["a/x.pt", "b/x.pt"], ["a/x", "b/x"]),
        (["r/a/x.pt", "s/a/x.pt", "z.pt"], ["r/a/x", "s/a/x", "z"]),
        (["x.pt", "x.pt"], ["x (1)", "x (2)"]),
        (["a/x.pt", "a/x.npy"], ["x.pt", "x.npy"]),
        (["x.pt", "x.npy", "x.pt"], ["x (1)", "x.npy", "x (2)"]),
        (["/x.pt", "a/x.pt"], ["x", "a/x"]),
    ):
        from pathlib import Path

        plain = [Path(path).stem for path in paths]
        assert distinguish_names(plain, [Path(path) for path in paths]) == names


def test_equal_numbers_of_a_string_in_other_rows_say_nothing():
    one, two = analysis(["a", "a", "b"]), analysis(["a", "b", "a"])
    found = match_rows(one, two)
    assert shared(found, one, two) == ["b"]
    assert [part.ambiguous for part in found.left_out] == [2, 2]
    assert [part.ambiguous_examples for part in found.left_out] == [("a",), ("a",)]


def test_strings_that_stand_twice_are_matched_by_their_row_in_the_file():
    tokens = ["a", "b", "a", "c", "a", "a", "d", "a"]
    cut, whole = analysis(tokens[5:8], cut=[5, 8]), analysis(tokens)
    found = match_rows(cut, whole)
    assert (found.first.tolist(), found.second.tolist()) == ([1], [6])
    same = match_rows(analysis(tokens[5:8], cut=[5, 8]), analysis(tokens[5:8], cut=[5, 8]))
    assert same.second.tolist() == [0, 1, 2]
    moved = match_rows(analysis(tokens[5:8], cut=[5, 8]), analysis(tokens[5:8], cut=[6, 9]))
    assert moved.first.tolist() == [1]
