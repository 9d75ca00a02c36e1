"""Tables of vectors as pandas, numpy and spreadsheets write them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.io import open_checkpoint
from embgeo.io.convert import text_blocks
from embgeo.io.convert import text_table as delimited_text

W = np.random.default_rng(0).standard_normal((40, 5)).astype("f4")
WORDS = ("the", "of, course", 'say "hi"', "naïve", " ", "", "日本", *(f"w{i}" for i in range(33)))
COUNTS = [900 - 3 * k for k in range(len(W))]


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
HEADINGS = {"numbered": NUMBERED, "named": NAMED, "other": ["x", "y", "height", "a", "b"]}


@pytest.mark.parametrize("names", HEADINGS)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("first", ["word", "", "whatever"])
def test_words_below_headings(tmp_path: Path, names: str, separator: str, first: str) -> None:
    matrix = embgeo.load(table(tmp_path, [list(WORDS)], [first, *HEADINGS[names]], separator))
    assert matrix.origin.format == "text table"
    assert matrix.tokens == WORDS
    np.testing.assert_array_equal(matrix.data, W)
    assert "the first line is taken for headings" in matrix.origin.notes


@pytest.mark.parametrize("headings", [["id", "word", *NAMED], None])
def test_a_column_of_ids_is_an_order(headings: list[str] | None, tmp_path: Path) -> None:
    """Of any order; ids that a heading names may have gaps."""
    order = np.random.default_rng(3).permutation(len(W))
    lines = [",".join(headings)] if headings else []
    for k in order:
        number = 10 * k + 3 if headings else k + 1
        lines.append(",".join([str(number), f"w{k}", *map(repr, map(float, W[k]))]))
    matrix = embgeo.load(written(tmp_path, "\n".join(lines) + "\n"))
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens == tuple(f"w{k}" for k in range(len(W)))


def test_words_without_headings(tmp_path: Path) -> None:
    matrix = embgeo.load(table(tmp_path, [list(WORDS)], None))
    assert matrix.tokens == WORDS
    np.testing.assert_array_equal(matrix.data, W)


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize(
    ("columns", "headings"),
    [
        (["index"], ["", *NUMBERED]),
        (["index"], None),
        (["index"], ["id", *NAMED]),
        ([], NUMBERED),
        ([], NAMED),
        ([], None),
    ],
)
def test_tables_without_words(
    tmp_path: Path, columns: list[str], headings: list[str] | None, separator: str
) -> None:
    before: list[list[object]] = [list(range(len(W))) for _ in columns]
    matrix = embgeo.load(table(tmp_path, before, headings, separator))
    if separator == "\t" and columns and headings is None:
        assert matrix.tokens == tuple(map(str, range(len(W))))  # as in word2vec's text
        return
    assert matrix.tokens is None
    np.testing.assert_array_equal(matrix.data, W)


@pytest.mark.parametrize(
    "places", [("", "token", "count"), ("count", "word"), ("freq", "", "word")]
)
def test_counts_and_columns_of_no_use(tmp_path: Path, places: tuple[str, ...]) -> None:
    kinds = {"": range(len(W)), "word": WORDS, "token": WORDS, "count": COUNTS, "freq": COUNTS}
    before: list[list[object]] = [list(kinds[place]) for place in places]
    matrix = embgeo.load(table(tmp_path, before, [*places, *NAMED]))
    assert matrix.tokens == WORDS
    assert matrix.frequency is not None
    assert matrix.frequency.counts.tolist() == COUNTS
    assert matrix.frequency.source == "counts in the file"
    np.testing.assert_array_equal(matrix.data, W)
    unused = [note for note in matrix.origin.notes if "not used" in note]
    assert len(unused) == ("" in places)


def test_shares_are_no_counts(tmp_path: Path) -> None:
    shares: list[list[object]] = [list(WORDS), [1 / (k + 1) for k in range(len(W))]]
    matrix = embgeo.load(table(tmp_path, shares, ["word", "frequency", *NAMED]))
    assert matrix.frequency is None
    assert matrix.d == 5


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
        ("word,x,y\na,1,2\nb,1\n", "line 3 has 2 cells where 3 are expected"),
        ("word,x,y\na,1,2\n\nb,1,2,3\n", "line 4 has 4 cells where 3 are expected"),
        ("word,x,y\na,1,2\nb,1,z\n", "line 3, number 2: 'z' is not a number"),
        ("word,x,y\na,1,2\nb,1,2 3\n", "line 3, number 2: '2 3' is not a number"),
        ("word,x,y\na,1,2\nb,,2\n", "line 3, number 1: '' is not a number"),
        ('word,x,y\n"a",1,2\n"b,1,2\n', "line 3 has 1 cells where 3"),
        ('word,x,y\n"a",1,2\n"b\nc",1,2\n', "line 3 has 1 cells where 3"),
        ('word,x,y\n"a",1,2\n"b,1,z"\n', "line 3 has 1 cells where 3"),
        ("0.5 1.5\n1.5 2.5\n3.5\n", "line 3 has 1 cells where 2"),
        ("0.5 1.5\n1.5 a\n", "its first lines are not a table|not a number|expected"),
        ("word,x,y\n" + "a,1,2\n" * 9 + f"{'b' * 200_000!r},1,2\n", ""),
        ("word,x,y\n" + "a,1,2\n" * 12 + f'"{"b" * 200_000}",1,2\n', "not a row of a table"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: str, expected: str) -> None:
    path = written(tmp_path, content)
    if not expected:
        embgeo.load(path)
        return
    with pytest.raises(UnreadableFile, match=expected):
        embgeo.load(path)


@pytest.mark.parametrize(
    "head",
    [
        b"the 0.1 0.2\nof 0.3 0.4\n",
        b"3 2\nthe 0.1 0.2\nof 0.3 0.4\n",
        b", 0.1 0.2\n. 0.3 0.4\n",
        b"the\t0.1\t0.2\n",
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
        b'word,x,"y\rz"d,3\nthe,1,2,3\n',
    ],
)
def test_what_is_no_table(head: bytes) -> None:
    assert not delimited_text.sniff(head)


@pytest.mark.parametrize("separator", [",", " "])
def test_a_million_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, separator: str) -> None:
    monkeypatch.setattr(text_blocks, "MAX_COLUMNS", 5000)
    line = "1.5" + f"{separator}1" * 5010
    with pytest.raises(UnreadableFile, match="more than 5,000 numbers"):
        open_checkpoint(written(tmp_path, f"{line}\n{line}\n"))


def test_a_trailing_separator_takes_no_column(tmp_path: Path) -> None:
    lines = "".join("\t".join(map(str, row)) + "\t\n" for row in W.tolist())
    matrix = embgeo.load(written(tmp_path, lines))
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens is None
    below = "".join(f"w{k}," + ",".join(map(str, row)) + ",\n" for k, row in enumerate(W.tolist()))
    matrix = embgeo.load(written(tmp_path, "word,a,b,c,d,e,\n" + below))
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens is not None
    assert matrix.tokens[:2] == ("w0", "w1")


@pytest.mark.parametrize("names", HEADINGS)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["word", "count"], []),
        (["word"], ["count"]),
        (["count"], ["word"]),
        ([], ["frequency", "token"]),
    ],
)
def test_counting_columns_are_no_dimensions(
    tmp_path: Path, names: str, before: list[str], after: list[str]
) -> None:
    columns = {"word": WORDS, "token": WORDS, "count": COUNTS, "frequency": COUNTS}
    path = tmp_path / "vectors.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*before, *HEADINGS[names], *after])
        for k, row in enumerate(W.tolist()):
            writer.writerow(
                [*(columns[n][k] for n in before), *row, *(columns[n][k] for n in after)]
            )
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens == WORDS
    assert matrix.frequency is not None
    assert matrix.frequency.counts.tolist() == COUNTS


@pytest.mark.parametrize("form", ["{}", "{}.0"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_column_of_row_numbers_orders_the_rows(tmp_path: Path, form: str, first: int) -> None:
    order = np.random.default_rng(3).permutation(len(W)).tolist()
    lines = ["word,id,count,a,b,c,d,e"]
    for k in order:
        cells = [f"w{k}", form.format(k + first), str(COUNTS[k]), *map(str, W[k].tolist())]
        lines.append(",".join(cells))
    matrix = embgeo.load(written(tmp_path, "\n".join(lines) + "\n"))
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens == tuple(f"w{k}" for k in range(len(W)))
    assert matrix.frequency is not None
    assert matrix.frequency.counts.tolist() == COUNTS
    assert "the rows are in the order of the row numbers in the file" in matrix.origin.notes


def test_numbers_that_are_no_row_numbers_order_nothing(tmp_path: Path) -> None:
    lines = [f"{7 * k % 9},{','.join(map(str, row))}" for k, row in enumerate(W.tolist())]
    matrix = embgeo.load(written(tmp_path, "id,a,b,c,d,e\n" + "\n".join(lines) + "\n"))
    np.testing.assert_array_equal(matrix.data, W)


def test_a_column_of_classes_is_neither_a_dimension_nor_a_word(tmp_path: Path) -> None:
    lines = [f"{','.join(map(str, row))},{k % 3}" for k, row in enumerate(W.tolist())]
    matrix = embgeo.load(written(tmp_path, "a,b,c,d,e,label\n" + "\n".join(lines) + "\n"))
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens is None


def test_columns_that_headings_number_are_the_dimensions(tmp_path: Path) -> None:
    lines = [f"w{k},{k / 7},{','.join(map(str, row))}" for k, row in enumerate(W.tolist())]
    matrix = embgeo.load(written(tmp_path, "word,score,0,1,2,3,4\n" + "\n".join(lines) + "\n"))
    np.testing.assert_array_equal(matrix.data, W)
