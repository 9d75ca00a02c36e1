"""Tables whose cells are vectors."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.io.convert import vector_column

W = np.random.default_rng(0).standard_normal((6, 30)).astype("f4")
WORDS = ["a", "b, c", 'say "x"', "é", "two\nlines", "6"]


def write(path: Path, cells: list[str], words: list[str] = WORDS, sign: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=sign)
        writer.writerow(["n", "text", "embedding"])
        writer.writerows(zip(range(len(cells)), words, cells, strict=False))
    return path


@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("kind", [list, np.asarray])
def test_rows_and_words(sign: str, kind: object, tmp_path: Path) -> None:
    cells = [str([float(x) for x in row] if kind is list else row) for row in W]
    found = embgeo.load(write(tmp_path / "a.csv", cells, sign=sign))
    np.testing.assert_allclose(found.data, W, rtol=1e-6)
    assert list(found.tokens or ()) == WORDS


@pytest.mark.parametrize(
    ("second", "cause"),
    [
        ("[1.5, 2.5]", "row 3 has 2 numbers where 3 are expected"),
        ("[1.5, x, 2.5]", "row 3: could not convert"),
        ("[1.5 ... 2.5]", r"shortened by '\.\.\.'; write vectors as lists"),
        ("none", "row 3 has no list of numbers"),
    ],
)
def test_what_is_wrong_is_named_by_row(second: str, cause: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", ["[1.0, 2.0, 3.0]", second])
    with pytest.raises(UnreadableFile, match=cause):
        embgeo.load(path)


def test_two_columns_of_vectors_and_odd_rows_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('word,a,b\nx,"[1.0, 2.0]","[1.0, 2.0]"\n')
    with pytest.raises(UnreadableFile, match="2 cells of its first row are vectors"):
        embgeo.load(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text('word,a\nx,"[1.0, 2.0]"\ny\n')
    with pytest.raises(UnreadableFile, match="row 3 has 1 cells, the first has 2"):
        embgeo.load(tmp_path / "a.csv")


def test_vectors_alone_have_no_words(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('vector,n\n"[1.0, 2.0]",3\n"[3.0, 4.0]",4\n')
    found = embgeo.load(tmp_path / "a.csv")
    assert found.data.tolist() == [[1, 2], [3, 4]]
    assert found.tokens is None


def test_absurd_cells_and_vectors_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.csv", ["[1.0, 2.0, 3.0]"] * 2)
    monkeypatch.setattr(vector_column, "MAX_COLUMNS", 2)
    with pytest.raises(UnreadableFile, match="lines of more than"):
        embgeo.load(path)
    monkeypatch.setattr(vector_column, "_LONGEST_CELL", 10)
    with pytest.raises(UnreadableFile, match="it is not a table"):
        embgeo.load(path)


@pytest.mark.parametrize("brackets", ["[]", "{}"])
@pytest.mark.parametrize("before", [["id", "word"], ["word"], ["id"], []])
def test_what_copy_of_postgresql_writes(tmp_path: Path, brackets: str, before: list[str]) -> None:
    words = ["tab\there", "back\\slash", 'quote"', "two\nlines", "é", "6"]
    escaped = [w.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n") for w in words]
    lines = []
    for k, row in enumerate(W.tolist()):
        vector = brackets[0] + ",".join(map(repr, row)) + brackets[1]
        cells = {"id": str(k + 7), "word": escaped[k]}
        lines.append("\t".join([*(cells[name] for name in before), vector]))
    path = tmp_path / "table.copy"
    path.write_text("\n".join([*lines, "\\."]) + "\n", encoding="utf-8")
    if not before and brackets == "[]":
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")  # lines of JSON
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens == (tuple(words) if "word" in before else None)


def test_a_csv_of_copy_without_headings(tmp_path: Path) -> None:
    lines = [f'{k},w{k},"{row}"' for k, row in enumerate(W.tolist())]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    matrix = embgeo.load(tmp_path / "a.csv")
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens == tuple(f"w{k}" for k in range(6))


@pytest.mark.parametrize("sign", ["\t", ","])
@pytest.mark.parametrize("headings", [["id", "word", "embedding"], []])
@pytest.mark.parametrize("places", [(0, 1), (1, 0)])
def test_a_column_of_ids_is_an_order(
    sign: str, headings: list[str], places: tuple[int, int], tmp_path: Path
) -> None:
    lines = [sign.join([*(headings[k] for k in places), headings[2]])] if headings else []
    for k in (3, 0, 5, 1, 4, 2):
        cells = (str(10 * k if headings else k + 1), f"w{k}")  # named ids may have gaps
        vector = str(W[k].tolist()).replace(" ", "")
        lines.append(sign.join([*(cells[place] for place in places), f'"{vector}"']))
        if sign == "\t":
            lines[-1] = lines[-1].replace('"', "")
    (tmp_path / "a").write_text("\n".join(lines) + "\n")
    matrix = embgeo.load(tmp_path / "a")
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens == tuple(f"w{k}" for k in range(6))
    assert "the rows are in the order of the row numbers in the file" in matrix.origin.notes


@pytest.mark.parametrize("first", [b"{ 0.5 1.5\n", b"[ 0.5 1.5\n", b"{a} 0.5 1.5\n"])
def test_words_that_are_brackets_are_no_vectors(tmp_path: Path, first: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(first + b"} 2.5 3.5\n")
    assert not vector_column.sniff(first + b"} 2.5 3.5\n")
    assert embgeo.load(tmp_path / "a.txt").data.tolist() == [[0.5, 1.5], [2.5, 3.5]]
