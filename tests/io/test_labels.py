"""Tokens files, counts files, corpora, and how they are laid along the rows."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import BadOption, LabelMismatch, UnreadableFile
from embgeo.files import long_texts
from embgeo.io.formats.word_lists import is_numbering
from embgeo.io.labels.corpus_text import CorpusText, count_words
from embgeo.io.labels.counts_file import from_counts, read_counts
from embgeo.io.labels.label_file import read_labels
from embgeo.io.labels.rows import lay_found, lay_given
from embgeo.io.labels.side_tables import order_of
from embgeo.io.model.rows import RowCut, parse_rows
from tests.support.refusals import refusal
from tests.support.sampling import each_folder, each_value

HOSTILE = (
    "</script>",
    "new\nline",
    "tab\tbed",
    "\u202eright to left\u200f",
    "",
    "\\",
    "C:\\new",
    "line\u2028separator",
    "\x85\x0b\x0c",
    "\u00a0",
    "'\"&<b>",
    "🙂",
)


def written(tmp_path: Path, content: bytes | str, name: str = "side.file") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def labels(tmp_path: Path, content: bytes | str, name: str = "side.file") -> tuple[str, ...]:
    return read_labels(written(tmp_path, content, name)).tokens


def escaped(token: str) -> str:
    return token.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_text_has_one_token_a_line(tmp_path: Path, end: str) -> None:
    tokens = ("the", "", "of", "a b", "x\u2028y", "\x0b", "\x85")
    assert labels(tmp_path, end.join([*tokens, ""])) == tokens
    assert labels(tmp_path, end.join(tokens)) == tokens


def test_hostile_tokens_survive_json_text_and_table(tmp_path: Path) -> None:
    assert labels(tmp_path, json.dumps(HOSTILE), "t.json") == HOSTILE
    assert labels(tmp_path, "".join(f"{escaped(t)}\n" for t in HOSTILE)) == HOSTILE
    table = "".join(f"{escaped(t)}\t{k}\n" for k, t in enumerate(HOSTILE))
    vocabulary = read_labels(written(tmp_path, table))
    assert vocabulary.tokens == HOSTILE
    assert "escapes in 4 tokens" in vocabulary.notes[0]


def test_backslashes_that_are_no_escapes_are_left_alone(tmp_path: Path) -> None:
    tokens = ("1\\/2", "\\*", "\\n", "a\\")
    assert labels(tmp_path, "\n".join(tokens)) == tokens


def test_lone_surrogates_become_text_that_can_be_written(tmp_path: Path) -> None:
    tokens = labels(tmp_path, r'["\ud800", "\ud83d\ude00", "ok"]', "t.json")
    assert tokens == (r"\ud800", "😀", "ok")


def test_forms_of_a_tokens_file(tmp_path: Path) -> None:
    for folder, (content, expected) in each_folder(
        tmp_path,
        (
            ("token\tcount\nthe\t3\nof\t2\n", ("the", "of")),
            ("id\tWord\tcount\n0\tthe\t3\n1\tof\t2\n", ("the", "of")),
            ("Label\tClass\nthe\ta\nof\tb\n", ("the", "of")),
            ("word\t3\nof\t2\n", ("word", "of")),
            ("the\t3\nof\t2\n", ("the", "of")),
            ("the\tx\nof\n", ("the\tx", "of")),
            ('["the", "of"]', ("the", "of")),
            ('{"of": 1, "the": 0}', ("the", "of")),
            ('{"1": "of", "0": "the"}', ("the", "of")),
            ('{"the": 0, "of": 2}', ("the", "<unused id 1>", "of")),
            ("[\n{\n[PAD]\n", ("[", "{", "[PAD]")),
            ("[unused1]\nthe\n", ("[unused1]", "the")),
        ),
    ):
        assert labels(folder, content) == expected


def test_byte_order_marks_and_gzip(tmp_path: Path) -> None:
    assert labels(tmp_path, b"\xef\xbb\xbfthe\nof\n") == ("the", "of")
    assert labels(tmp_path, "the\nöf\n".encode("utf-16")) == ("the", "öf")
    assert labels(tmp_path, gzip.compress(b"the\nof\n")) == ("the", "of")


#: Tokens that csv, pandas and spreadsheets put between quotation marks.
MARKED = ("the", '"', '""', 'say "so"', '"so"', "a\tb", "'", "a b", "", "a,b")


@pytest.mark.parametrize(
    "quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC], ids=["few", "all", "texts"]
)
def test_quotation_marks_of_csv_are_removed(tmp_path: Path, quoting: Literal[0, 1, 2]) -> None:
    rows = [("word", "count"), *((token, k) for k, token in enumerate(MARKED))]
    path = tmp_path / "words.tsv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, "excel-tab", quoting=quoting).writerows(rows)
    found = read_labels(path)
    assert found.tokens == MARKED
    assert found.counts == read_counts(path).counts == tuple(range(len(MARKED)))
    assert read_counts(path).tokens == MARKED
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, "excel-tab", quoting=quoting).writerows([token] for token in MARKED)
    assert labels(tmp_path, path.read_bytes()) == MARKED


def test_quotation_marks_of_pandas_and_spreadsheets_are_removed(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    path = tmp_path / "words.tsv"
    frame = pd.DataFrame({"word": MARKED, "count": range(len(MARKED))})
    frame.to_csv(path, sep="\t", index=False)
    assert read_labels(path).tokens == MARKED
    # A spreadsheet encloses cells with a comma, too.
    assert labels(tmp_path, 'the\t1\r\n""""\t2\r\n"a,b"\t3\r\n') == ("the", '"', "a,b")


@each_value
@pytest.mark.parametrize(
    "tokens",
    [
        ("the", '"', '""', '""""'),
        ('"', '"a,b"'),
        ('"a, b"', '5" x'),
        ('"a"b"', '""""'),
        ('""', "the"),
        ('"so"', '"a, b"', "the"),
        ('"a, b"', "the", '"so"'),
        ("", '""', "the"),
        ('"the', 'a"', '"a""'),
    ],
)
@pytest.mark.parametrize("end", ["", "\t7"])
def test_quotation_marks_of_tokens_are_kept(
    tmp_path: Path, tokens: tuple[str, ...], end: str
) -> None:
    path = written(tmp_path, "".join(f"{token}{end}\n" for token in tokens))
    assert read_labels(path).tokens == tokens
    if end:
        assert read_counts(path).tokens == tokens


def test_bad_tokens_files_are_one_line(tmp_path: Path) -> None:
    for folder, (content, name) in each_folder(
        tmp_path,
        (
            (b"the\ncaf\xe9\n", "t.txt"),
            (b"PK\x03\x04\xff", "t.pt"),
            (b"\xd0" + bytes(7) + b'{"', "t.safetensors"),
            (b"\xef\xbb\xbfcaf\xe9\n", "t.txt"),
            (b'["the",', "t.json"),
            (b"[" * 100_000 + b"]" * 100_000, "t.json"),
            (b'["the", 3]', "t.json"),
            (b"[]", "t.json"),
            (b'{"the": -1}', "t.json"),
            (b'{"the": true}', "t.json"),
            (b'{"the": 167485604, "of": 87188320}', "t.json"),
            (b'{"x": "y"}', "t.json"),
            (b"", "t.txt"),
            (b"\xef\xbb\xbf", "t.txt"),
            (b"word\tcount\n", "t.txt"),
            (b"{}", "t.json"),
        ),
    ):
        path = written(folder, content, name)
        with refusal(UnreadableFile):
            read_labels(path)


def test_forms_of_a_counts_file(tmp_path: Path) -> None:
    for folder, content in each_folder(
        tmp_path,
        (
            "the\t3\nof\t2\na\u00a0b\t0\n",
            "the 3\nof 2\na\u00a0b 0\n",
            "word\tcount\nthe\t3\nof\t2\na\u00a0b\t0\n",
            "id\tword\tfreq\n7\tthe\t3\n8\tof\t2\n9\ta\u00a0b\t0\n",
            '{"the": 3, "of": 2, "a\u00a0b": 0}',
            '[["the", 3], ["of", 2], ["a\u00a0b", 0]]',
            "the\t3\r\nof\t2\r\n\r\na\u00a0b\t0",
            "the\t3\rof\t2\ra\u00a0b\t0\r",
        ),
    ):
        counts = read_counts(written(folder, content))
        assert counts.tokens == ("the", "of", "a\u00a0b")
        assert counts.counts == (3, 2, 0)


def test_tokens_with_newlines_and_spaces_in_a_counts_file(tmp_path: Path) -> None:
    content = "".join(f"{escaped(t)}\t{k}\n" for k, t in enumerate(HOSTILE))
    assert read_counts(written(tmp_path, content)).tokens == HOSTILE
    assert read_counts(written(tmp_path, "new york 3\n")).tokens == ("new york",)


def test_bad_counts_are_named_with_their_line(tmp_path: Path) -> None:
    for folder, content in each_folder(
        tmp_path,
        (
            "the\t3\nof\t-2\n",
            "the\t3\nof\t2.5\n",
            "the\t3\nof\t1e5\n",
            "2020\t0.5\n",
            "3\tthe\n",
            "   3 the\n",
            "the\t3\nof\tmany\n",
            "the\t3\nof\t99999999999999999999\n",
            "the\t3\nof\t" + "9" * 5000 + "\n",
            "the\t3\n\nof\n",
            "the\t٣\n",
            '{"the": 2.5}',
            '{"the": -1}',
            '{"the": true}',
            '{"the": ' + "9" * 5000 + "}",
            '{"the": 1',
            '[["the", 1], 2]',
            "[[3, 1]]",
            "word\tcount\n",
            # Ranks and ids are no counts.
            "word\trank\nthe\t1\nof\t2\n",
            "id\tword\tpart\n7\tthe\t3\n",
            "the\t0\t300\nof\t1\t200\n",
            "the\t300\nof\t1\t200\n",
            "".join(f"t{k}\t{k}\n" for k in range(100)),
            json.dumps({f"t{k}": k + 1 for k in range(100)}),
            json.dumps({f"t{k}": k * 7 % 100 for k in range(100)}),
        ),
    ):
        path = written(folder, content)
        with refusal(UnreadableFile):
            read_counts(path)


def test_numbers_in_order_may_be_counts(tmp_path: Path) -> None:
    for folder, (content, n) in each_folder(
        tmp_path,
        (
            ("".join(f"t{k}\t{k}\n" for k in range(99)), 99),
            ("".join(f"t{k}\t{100 - k}\n" for k in range(100)), 100),
            ("".join(f"t{k}\t{k}\n" for k in (*range(99), 100)), 100),
            ("token\tcount\n" + "".join(f"t{k}\t{k}\n" for k in range(100)), 100),
        ),
    ):
        assert len(read_counts(written(folder, content)).counts) == n


def test_counts_are_matched_by_token_and_gaps_are_said(tmp_path: Path) -> None:
    counts = read_counts(written(tmp_path, "of\t2\nthe\t3\nthe\t4\nzebra\t9\n", "c.tsv"))
    frequency, notes = from_counts(("the", "of", "unseen", "the"), counts)
    np.testing.assert_array_equal(frequency.counts, [7, 2, 0, 7])
    assert (frequency.kind, frequency.source) == ("counts", "counts file c.tsv")
    text = " | ".join(notes)
    assert "1 tokens are repeated in c.tsv; their counts are summed" in text
    assert "1 rows share their token with an earlier one" in text
    assert "1 of 4 tokens are not in c.tsv" in text
    assert "1 of 3 tokens in c.tsv are not in the matrix" in text


def test_counts_of_another_model_are_refused(tmp_path: Path) -> None:
    counts = read_counts(written(tmp_path, "der\t2\ndie\t3\n"))
    with refusal(LabelMismatch):
        from_counts(("the", "of"), counts)


def test_counts_for_subword_tokens_in_every_spelling(tmp_path: Path) -> None:
    for folder, (content, expected, words) in each_folder(
        tmp_path,
        (
            (" the\t5\nthe\t2\nx\t1\n", [5, 2], False),
            ("\u0120the\t5\nthe\t2\nx\t1\n", [5, 2], False),
            ("\u2581the\t5\nthe\t2\nx\t1\n", [5, 2], False),
            ("the\t5\nx\t1\n", [5, 0], True),
        ),
    ):
        frequency, _ = from_counts((" the", "the"), read_counts(written(folder, content)))
        np.testing.assert_array_equal(frequency.counts, expected)
        assert ("it counts words" in frequency.source) == words


CORPUS = "the cat\tthe\n dog the\u00a0cat the"


@each_value
@pytest.mark.parametrize("block", [3, 4, 5, 100])
@pytest.mark.parametrize("packed", [False, True])
def test_a_corpus_is_counted_across_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, packed: bool
) -> None:
    monkeypatch.setattr(long_texts, "_BLOCK", block)
    content = CORPUS.encode()
    path = written(tmp_path, gzip.compress(content) if packed else content, "c.txt")
    frequency, notes = count_words(("the", "cat", "the\u00a0cat", "fish"), CorpusText(path))
    np.testing.assert_array_equal(frequency.counts, [3, 1, 1, 0])
    assert frequency.source == "corpus c.txt, 6 words separated by white space"
    assert "1 of 4 tokens do not occur in c.txt" in notes[0]
    assert "1 of 6 words of c.txt are not in the matrix" in notes[1]


def test_pieces_of_words_are_counted_as_whole_words_only(tmp_path: Path) -> None:
    path = written(tmp_path, "the cat sat on the mat", "c.txt")
    frequency, _ = count_words((" the", "the", " cat", "at"), CorpusText(path))
    np.testing.assert_array_equal(frequency.counts, [2, 0, 1, 0])
    assert "pieces of words" in frequency.source


def test_a_corpus_in_another_language_or_without_spaces_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refusal(LabelMismatch):
        count_words(("the",), CorpusText(written(tmp_path, "der die")))
    monkeypatch.setattr(long_texts, "_LONGEST_WORD", 10)
    monkeypatch.setattr(long_texts, "_BLOCK", 16)
    with refusal(UnreadableFile):
        count_words(("the",), CorpusText(written(tmp_path, "the " + "x" * 50 + " the")))


def test_row_ranges() -> None:
    for rows, expected in (
        (None, (0, 10)),
        (":", (0, 10)),
        ("2:", (2, 10)),
        (":4", (0, 4)),
        ("2:4", (2, 4)),
        ((2, 4), (2, 4)),
        ((None, 4), (0, 4)),
        ("9:10", (9, 10)),
    ):
        cut = parse_rows(rows, 10)
        assert (cut.start, cut.stop) == expected


def test_bad_row_ranges() -> None:
    for rows in (
        "0:11",
        "10:",
        "4:4",
        "5:4",
        "-1:4",
        (-1, 4),
        "4",
        "a:b",
        "1:2:3",
    ):
        with refusal(BadOption):
            parse_rows(rows, 10)


WHOLE = RowCut(10, 0, 10)
MIDDLE = RowCut(10, 2, 6)
FILE = Path("folder/tokens.txt")


def numbered(count: int) -> tuple[str, ...]:
    return tuple(f"t{k}" for k in range(count))


def test_a_given_file_labels_the_cut_or_the_whole_matrix() -> None:
    of_cut = lay_given(numbered(4), MIDDLE, "auto", FILE, 3)
    assert of_cut.tokens == numbered(4)
    assert "tokens.txt labels the 4 rows that were cut out" in of_cut.notes[0]
    of_whole = lay_given(numbered(10), MIDDLE, "auto", FILE, 3)
    assert of_whole.tokens == numbered(10)[2:6]
    assert "labels all 10 rows" in of_whole.notes[0]
    assert lay_given(numbered(10), WHOLE, "auto", FILE, 3).notes == ()


def test_labels_off_by_one_are_refused() -> None:
    for length, cut, padding, expected in (
        (9, WHOLE, "auto", ["9 tokens for 10 rows", "--padding mask", "--rows 0:9"]),
        (11, WHOLE, "auto", ["11 tokens for 10 rows"]),
        (11, WHOLE, "mask", ["11 tokens for 10 rows"]),
        (5, MIDDLE, "auto", ["5 tokens for 4 rows (cut from 10)"]),
        (3, WHOLE, "auto", ["3 tokens for 10 rows", "--transpose"]),
    ):
        with refusal(LabelMismatch) as caught:
            lay_given(numbered(length), cut, padding, FILE, 3)
        for part in [*expected, "tokens.txt"]:
            assert part in caught.value.command_line_text


def test_padding_of_a_given_file() -> None:
    for length, cut, tokens, masked in (
        (9, WHOLE, [*numbered(9), "<padding row 9>"], [9]),
        (3, MIDDLE, [*numbered(3), "<padding row 5>"], [3]),
        (5, MIDDLE, ["t2", "t3", "t4", "<padding row 5>"], [3]),
        (7, MIDDLE, ["t2", "t3", "t4", "t5"], []),
    ):
        laid = lay_given(numbered(length), cut, "mask", FILE, 3)
        assert list(laid.tokens) == tokens
        assert laid.masked.tolist() == masked
        kept = lay_given(numbered(length), cut, "keep", FILE, 3)
        assert list(kept.tokens) == [token.replace("padding row", "row") for token in tokens]
        assert kept.masked.tolist() == []


def test_labels_that_came_with_the_model() -> None:
    padded = lay_found(numbered(8), WHOLE, "auto", "tokenizer.json")
    assert padded.tokens[7:] == ("t7", "<padding row 8>", "<padding row 9>")
    assert padded.masked.tolist() == [8, 9]
    assert padded.notes == (
        "tokenizer.json labels 8 of 10 rows; 2 rows without a token are masked as padding",
    )
    assert lay_found(numbered(8), MIDDLE, "auto", "x").notes == ()
    longer = lay_found(numbered(12), WHOLE, "auto", "tokenizer.json")
    assert longer.tokens == numbered(10)
    assert "2 tokens of tokenizer.json lie beyond the last row" in longer.notes[0]


def test_an_error_is_one_line_whatever_the_tokens_hold(tmp_path: Path) -> None:
    counts = read_counts(written(tmp_path, json.dumps({"a\nb\x1b": 1})))
    with refusal():
        from_counts(("x\ny", "\u202e"), counts)


def test_rows_without_names(tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_text("3 2\na 1 2\nb 3 4\nc 5 6\n")
    assert embgeo.load(tmp_path / "vectors.txt").tokens == ("a", "b", "c")
    assert embgeo.load(tmp_path / "vectors.txt", tokens="none").tokens is None


@pytest.mark.parametrize("headings", ["id\ttoken", "Index\tEmoji", "idx\tWord"])
def test_a_column_of_row_numbers_orders_the_tokens(tmp_path: Path, headings: str) -> None:
    order = np.random.default_rng(2).permutation(30).tolist()
    path = tmp_path / "metadata.tsv"
    path.write_text(headings + "\n" + "".join(f"{k}\tw{k}\n" for k in order))
    found = read_labels(path)
    assert found.tokens == tuple(f"w{k}" for k in range(30))
    assert any("in the order of the row numbers" in note for note in found.notes)
    swapped = "\t".join(reversed(headings.split("\t")))
    path.write_text(swapped + "\n" + "".join(f"w{k}\t{k}\n" for k in order))
    assert read_labels(path).tokens == found.tokens


def test_row_numbers_of_a_table_without_headings(tmp_path: Path) -> None:
    for n, step, first in ((30, 1, 0), (30, 7, 1), (100, 7, 0)):
        order = [k * step % n for k in range(n)]
        tokens = tuple(f"w{k}" for k in range(n))
        before = "".join(f"{k + first}\tw{k}\n" for k in order)
        assert labels(tmp_path, before) == tokens
        behind = "".join(f"w{k}\t{k + first}\n" for k in order)
        # Of few rows they may be counts.
        assert labels(tmp_path, behind) == (tokens if n == 100 else tuple(f"w{k}" for k in order))
    assert labels(tmp_path, "1\t500\n0\t40\n") == ("1", "0")
    assert labels(tmp_path, "2\ta\n3\tb\n") == ("2", "3")


def test_row_numbers_are_an_order_if_they_are_all_rows_from_0_or_1() -> None:
    for numbers, order in (
        ([1, 0], [1, 0]),
        ([2, 3, 1], [2, 0, 1]),
        ([0, 1, 2], None),  # in order
        ([1, 2], None),
        ([3, 2], None),  # from 2
        ([-1, 1, 0], None),
        ([2, 0], None),  # a gap
        ([1, 0, 0], None),  # twice
        ([], None),
    ):
        found = order_of(numbers)
        assert (None if found is None else found.tolist()) == order


def test_a_first_token_called_index_is_a_token(tmp_path: Path) -> None:
    path = tmp_path / "tokens.tsv"
    path.write_text("index\tnoun\nrow\tnoun\n")
    assert read_labels(path).tokens == ("index", "row")


@pytest.mark.parametrize(
    "text", ['{"a": 5, "b": 2, "a": 1}', '[["a", 5], ["b", 2], ["a", 1]]', '{"b": 2, "a": 6}']
)
def test_counts_of_repeated_keys_are_summed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "counts.json"
    path.write_text(text)
    found = read_counts(path)
    assert dict(zip(found.tokens, found.counts, strict=True)) == {"a": 6, "b": 2}
    is_noted = any("1 tokens are repeated in counts.json" in note for note in found.notes)
    assert is_noted == (text.count('"a"') > 1)


def test_whole_numbers_of_words_are_a_numbering() -> None:
    numbers = {f"w{k}": k for k in range(20)}
    assert is_numbering(numbers)
    assert not is_numbering({word: float(number) for word, number in numbers.items()})
    assert not is_numbering({number: number for number in numbers.values()})
