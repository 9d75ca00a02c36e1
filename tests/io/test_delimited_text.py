"""Tables of vectors as pandas, numpy and spreadsheets write them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.io.formats import text_blocks
from embgeo.io.formats import text_table as delimited_text
from embgeo.io.load import open_checkpoint
from tests.support.refusals import refusal
from tests.support.sampling import each_value

W = np.random.default_rng(0).standard_normal((40, 5)).astype("f4")
WORDS = ("the", "of, course", 'say "hi"', "naïve", " ", "", "日本", *(f"w{i}" for i in range(33)))


def written(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "vectors.any"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def table(
    tmp_path: Path, before: list[list[object]], headings: list[str] | None, separator: str = ","
) -> Path:
    path = tmp_path / "vectors.any"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        if headings is not None:
            writer.writerow(headings)
        for *cells, row in zip(*before, W.tolist(), strict=True):
            writer.writerow([*cells, *row])
    return path


NUMBERED = [str(k) for k in range(W.shape[1])]
NAMED = [f"dim_{k + 1}" for k in range(W.shape[1])]


@each_value
@pytest.mark.parametrize("names", [NUMBERED, NAMED, ["d00", "d01", "d02", "d03", "d04"]])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("first", ["word", ""])
def test_words_below_headings(tmp_path: Path, names: list[str], separator: str, first: str) -> None:
    matrix = embgeo.load(table(tmp_path, [list(WORDS)], [first, *names], separator))
    assert matrix.origin.format == "text table"
    assert matrix.tokens == WORDS
    np.testing.assert_array_equal(matrix.data, W)
    assert "the first line is taken for headings" in matrix.origin.notes


@pytest.mark.parametrize(
    "headings",
    [
        ["word", "x", "y", "height", "a", "b"],
        ["word", "dim_1", "dim_2", "dim_3", "dim_4", "dim_6"],
        ["word", "d0", "d1", "d2", "d3", "label"],
    ],
)
def test_any_other_column_stops_with_its_name(headings: list[str], tmp_path: Path) -> None:
    with refusal(UnreadableFile):
        embgeo.load(table(tmp_path, [list(WORDS)], headings))


@pytest.mark.parametrize("cell", ["[0.1, 0.2]", "[ 0.1  0.2 ... 0.3]"], ids=["list", "of numpy"])
@pytest.mark.parametrize("more", ["", ",x,y"])
def test_a_vector_in_one_cell_is_refused_by_its_name(cell: str, more: str, tmp_path: Path) -> None:
    lines = "".join(f'i{k},"{cell}"{more and f",0.5,{k}"}\n' for k in range(9))
    with refusal(UnreadableFile):
        embgeo.load(written(tmp_path, f"id,embedding{more}\n{lines}"))


def test_words_in_a_later_column_are_refused(tmp_path: Path) -> None:
    with refusal(UnreadableFile):
        embgeo.load(table(tmp_path, [list(range(40)), list(WORDS)], None))


def test_ids_are_not_labels(tmp_path: Path) -> None:
    ids = [str(100 + 3 * k) for k in range(40)]
    with refusal(UnreadableFile):
        embgeo.load(table(tmp_path, [ids], ["id", *NUMBERED]))
    assert embgeo.load(table(tmp_path, [ids], ["word", *NUMBERED])).tokens == tuple(ids)
    assert embgeo.load(table(tmp_path, [list(range(40))], ["id", *NUMBERED])).tokens is None


def test_words_without_headings(tmp_path: Path) -> None:
    matrix = embgeo.load(table(tmp_path, [list(WORDS)], None))
    assert matrix.tokens == WORDS
    np.testing.assert_array_equal(matrix.data, W)


@each_value
@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("headings", [NUMBERED, NAMED, None])
@pytest.mark.parametrize("first", [None, 0, 1])
def test_tables_without_words(
    tmp_path: Path, first: int | None, headings: list[str] | None, separator: str
) -> None:
    """A first column that counts the rows is neither a dimension nor words."""
    before: list[list[object]] = [] if first is None else [[k + first for k in range(len(W))]]
    above = headings and ["id"] * len(before) + headings
    matrix = embgeo.load(table(tmp_path, before, above, separator))
    assert matrix.tokens is None
    np.testing.assert_array_equal(matrix.data, W)


@pytest.mark.parametrize("headings", [["id", *NAMED], None])
def test_row_numbers_in_another_order_are_refused(
    tmp_path: Path, headings: list[str] | None
) -> None:
    order: list[object] = np.random.default_rng(3).permutation(len(W)).tolist()
    with refusal(UnreadableFile):
        embgeo.load(table(tmp_path, [order], headings))


def test_other_whole_numbers_are_words(tmp_path: Path) -> None:
    ids: list[object] = [7 * k + 3 for k in range(len(W))]
    for headings in (["node", *NAMED], None):
        matrix = embgeo.load(table(tmp_path, [ids], headings))
        assert matrix.tokens == tuple(map(str, ids))
        np.testing.assert_array_equal(matrix.data, W)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_ends_of_lines_and_marks(tmp_path: Path, end: str, mark: bytes) -> None:
    content = table(tmp_path, [list(WORDS)], ["word", *NAMED]).read_text("utf-8")
    whole = mark + content.replace("\n", end).encode() + end.encode()
    matrix = embgeo.load(written(tmp_path, whole))
    assert matrix.tokens == WORDS
    np.testing.assert_array_equal(matrix.data, W)


def test_what_numpy_saves(tmp_path: Path) -> None:
    for options in ({}, {"fmt": "%.9g"}, {"delimiter": ","}, {"fmt": "%14.9e", "delimiter": "  "}):
        np.savetxt(tmp_path / "a", W, **options)
        np.testing.assert_array_equal(embgeo.load(tmp_path / "a").data, W)


@pytest.mark.slow
def test_lines_longer_than_the_first_bytes_that_are_looked_at(tmp_path: Path) -> None:
    wide = np.random.default_rng(1).standard_normal((6, 900)).astype("f4")
    numbers = [",".join(map(repr, map(float, row))) for row in wide]
    plain = "".join(f"w{k},{row}\n" for k, row in enumerate(numbers))
    headings = "word," + ",".join(map(str, range(900))) + "\n"
    bare = "".join(row.replace(",", " ") + "\n" for row in numbers)
    for content, words in ((plain, 6), (headings + plain, 6), (bare, 0)):
        matrix = embgeo.load(written(tmp_path, content))
        assert len(matrix.tokens or ()) == words
        np.testing.assert_array_equal(matrix.data, wide)


def test_blocks_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table(tmp_path, [list(WORDS)], ["", *NAMED])
    for size in (1, 7, 100):
        monkeypatch.setattr(text_blocks, "_BLOCK_BYTES", size)
        matrix = embgeo.load(path)
        assert matrix.tokens == WORDS
        np.testing.assert_array_equal(matrix.data, W)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("word,d0,d1\na,1,2\n\nb,1,2,3\n", "line 4 has 4 cells where 3 are expected"),
        ("\n\nword,d0,d1\na,1,2\nb,1,2,3\n", "line 5 has 4 cells where 3 are expected"),
        ('word,d0,d1\n"a",1,2\n"b,1,2\n', "line 3 has 1 cells where 3"),
        ("0.5 1.5\n1.5 a\n", "its first lines are not a table|not a number|expected"),
        ("word,d0,d1\n" + "a,1,2\n" * 9 + f"{'b' * 200_000!r},1,2\n", ""),
        ("word,d0,d1\n" + "a,1,2\n" * 12 + f'"{"b" * 200_000}",1,2\n', "not a row of a table"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: str, expected: str) -> None:
    path = written(tmp_path, content)
    if not expected:
        embgeo.load(path)
        return
    with refusal(UnreadableFile):
        embgeo.load(path)


def test_what_is_no_table() -> None:
    for head in (
        b"the 0.1 0.2\nof 0.3 0.4\n",
        b"3 2\nthe 0.1 0.2\nof 0.3 0.4\n",
        b", 0.1 0.2\n. 0.3 0.4\n",
        b"1 2 3\n4 5 6\n",
        b"word\tcount\nthe\t12\n",
        b"the,12\nof,9\n",
        b"One, two, and three\nFour, five\n",
        b"[0.1, 0.2]\n",
        b'{"the": [0.1, 0.2]}\n',
        b"\0,1,2\n",
        b"",
        b"\n",
        b",",
        b",,,\n,,,\n",
        b'word,0,a"1\r,2\nthe,1,2,3\n',
        b'[["a", 0.5], ["b", 1.5]]\n',
    ):
        assert not delimited_text.sniff(head)


@pytest.mark.parametrize("separator", [",", " "])
def test_a_million_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, separator: str) -> None:
    monkeypatch.setattr(text_blocks, "MAX_COLUMNS", 5000)
    line = "1.5" + f"{separator}1" * 5010
    with refusal(UnreadableFile):
        open_checkpoint(written(tmp_path, f"{line}\n{line}\n"))
