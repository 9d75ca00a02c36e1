"""Vectors as text and in word2vec's binary format."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.files import scratch
from embgeo.io.formats import text_blocks, word2vec_binary, word_vectors
from embgeo.io.load import open_checkpoint
from tests.support.refusals import refusal
from tests.support.sampling import each_folder

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "real_embeddings"

ROWS = (("the", (0.5, -1.25)), ("of", (1e-3, 2.0)), ("café", (-3.0, 4.5)))
VALUES = np.array([numbers for _, numbers in ROWS], dtype=np.float32)
BODY = "".join(f"{word} {a} {b}\n" for word, (a, b) in ROWS)


def written(tmp_path: Path, content: bytes | str, name: str = "vectors.anything") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def binary(words: list[bytes], values: np.ndarray, header: str = "", end: bytes = b"") -> bytes:
    head = header or f"{len(words)} {values.shape[1]}\n"
    rows = (
        word + b" " + row.astype("<f4").tobytes() + end
        for word, row in zip(words, values, strict=True)
    )
    return head.encode() + b"".join(rows)


def refused(path: Path) -> None:
    with refusal(UnreadableFile):
        open_checkpoint(path).tensors[0].open()


def test_every_dialect_gives_the_same_matrix(tmp_path: Path) -> None:
    for folder, (content, kind) in each_folder(
        tmp_path,
        (
            (f"3 2\n{BODY}", "word2vec text"),
            (BODY.replace("\n", " \n"), "GloVe text"),  # fastText ends lines with a space
            (BODY.replace(" ", "\t"), "text table"),
            (BODY.replace(" ", "  "), "GloVe text"),
            (BODY.rstrip("\n"), "GloVe text"),
        ),
    ):
        opened = open_checkpoint(written(folder, content))
        assert opened.format == kind
        assert opened.tokens == tuple(word for word, _ in ROWS)
        assert opened.tensors[0].shape == (3, 2)
        array = opened.tensors[0].open()
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, VALUES)


def test_tokens_may_hold_spaces_and_be_numbers(tmp_path: Path) -> None:
    lines = ["the 0.1 0.2 0.3", ". . . 0.4 0.5 0.6", "at name@domain.com 1 2 3", "7 8.5 9 10"]
    lines += ["a\u00a0b 1 1 1", "\u2028 2 2 2", " 3 3 3"]
    opened = open_checkpoint(written(tmp_path, "\n".join(lines)))
    assert opened.tokens == (
        "the",
        ". . .",
        "at name@domain.com",
        "7",
        "a\u00a0b",
        "\u2028",
        "",
    )
    array = opened.tensors[0].open()
    np.testing.assert_array_equal(array[1], np.float32([0.4, 0.5, 0.6]))
    np.testing.assert_array_equal(array[6], [3, 3, 3])


def test_words_that_are_not_utf8_stay_distinct_and_are_noted(tmp_path: Path) -> None:
    content = b"caf\xe9 1.5 2\ncaf\xea 3.5 4\ncaf 5 6\ncaf 7 8\n"
    opened = open_checkpoint(written(tmp_path, content))
    assert opened.tokens == (r"caf\xe9", r"caf\xea", "caf", "caf")
    assert any("2 words are not valid UTF-8" in note for note in opened.notes)
    assert any("1 row repeats" in note for note in opened.notes)
    assert "".join(opened.tokens).encode("utf-8")


def test_special_numbers_are_read_as_such(tmp_path: Path) -> None:
    array = open_checkpoint(written(tmp_path, "a 0.5 nan\nb inf -inf\nc 1e300 -1E-3\n"))
    values = array.tensors[0].open()
    assert np.isnan(values[0, 1])
    assert np.isinf(values[1]).all()
    assert np.isinf(values[2, 0])


def test_bad_structure_is_named_with_its_line(tmp_path: Path) -> None:
    for folder, content in each_folder(
        tmp_path,
        (
            "5 2\n" + BODY[:-1],
            "3 2\nthe 0.5 1\nof 0.5\n",
            "the 1.5 2.5\nof 1.5 2.5 3.5\nand 1.5 2.5\n",
            "3 2\n",
            "3 0\n\n",
            "9 2000000\nthe 1 2 3\n",
            "the " + "1 " * 1_000_002 + "\n",
            "2 4\rthe 0.5 1.5 2.5 3.5\rof 0.5 1.5 2.5 3.5\r",
            "the 0.5 1.5 2.5 3.5\rof 0.5 1.5 2.5 3.5",
            "the 0.5 1\rof 0.5 1\rand 0.5 1\n",
            "the 0.5 1.5\nof 0.5 x1.5\nand 1 2\n",
        ),
    ):
        refused(written(folder, content))


def test_other_numbers_of_vectors_than_the_header_promises_are_noted(tmp_path: Path) -> None:
    for promised in (2, 5):
        opened = open_checkpoint(written(tmp_path, f"{promised} 2\n{BODY}"))
        assert opened.tensors[0].shape == (3, 2)
        said = f"promises {promised} vectors, the file holds 3"
        assert any(said in note for note in opened.notes)


def test_a_very_long_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "MAX_LINE_BYTES", 1000)
    path = written(tmp_path, "the 0.5 1.5\nof 0.5 1.5" + " " * 2000)
    refused(path)


def test_lines_across_blocks_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "_BLOCK_BYTES", 7)
    opened = open_checkpoint(written(tmp_path, "3 2\n" + BODY))
    np.testing.assert_array_equal(opened.tensors[0].open(), VALUES)


def test_other_content_is_not_taken_for_vectors() -> None:
    for head in (
        b"",
        b"the 10128\nrock 34\n",
        b"the\t10128\nrock\t34\n",
        b"one line of prose, 3 words long\n",
        b"\x80\x02}q\x00.",
        b"the 0.5\0 1\n",
        b'{"a": 1}',
        b"[0.5, 0.25]",
    ):
        assert not word_vectors.sniff(head)
        assert not word2vec_binary.sniff(head)


def test_a_head_cut_inside_a_number_is_still_recognized() -> None:
    line = b"the " + b"-0.123456 " * 1000
    assert word_vectors.sniff(line[:4096])
    assert word_vectors.sniff(b"400000 1000\n" + line[:4084])


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_binary_dialects(tmp_path: Path, end: bytes) -> None:
    words = [b"</s>", "café".encode(), b"\xff\xfe"]
    opened = open_checkpoint(written(tmp_path, binary(words, VALUES, end=end), "v.txt"))
    assert opened.format == "word2vec binary"
    assert opened.tokens == ("</s>", "café", r"\xff\xfe")
    np.testing.assert_array_equal(opened.tensors[0].open(), VALUES)
    assert any("1 word is not valid UTF-8" in note for note in opened.notes)


def test_binary_in_a_scratch_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "MEMORY_BYTES", 8)
    opened = open_checkpoint(written(tmp_path, binary([b"a", b"b", b"c"], VALUES)))
    array = opened.tensors[0].open()
    assert isinstance(array, np.memmap)
    np.testing.assert_array_equal(array, VALUES)


def test_binary_files_that_lie_are_refused(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0x80, 0x100, 200_000, dtype=np.uint8).tobytes()
    for folder, content in each_folder(
        tmp_path,
        (
            binary([b"a", b"b", b"c"], VALUES)[:-3],
            binary([b"a"], VALUES[:1], header="999999999999 2\n"),
            b"3 2\na " + struct.pack("<2f", 1, 2) + noise,  # a wrong dimension
        ),
    ):
        refused(written(folder, content))


def test_bytes_behind_the_last_vector_are_noted(tmp_path: Path) -> None:
    content = binary([b"a", b"b", b"c"], VALUES, header="2 2\n")
    opened = open_checkpoint(written(tmp_path, content))
    assert opened.tensors[0].shape == (2, 2)
    assert any("10 bytes after" in note for note in opened.notes)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not next to the checkout")
@pytest.mark.parametrize(
    ("name", "kind", "shape", "first", "last"),
    [
        ("glove.500.50d.txt", "GloVe text", (500, 50), "the", 0.32093),
        ("lee_fasttext.vec", "word2vec text", (1762, 10), "the", 0.060007),
        ("w2v_papers_24118x40.bin", "word2vec binary", (24118, 40), "</s>", -0.3289999),
    ],
)
def test_real_files(name: str, kind: str, shape: tuple[int, int], first: str, last: float) -> None:
    opened = open_checkpoint(SHARED / name)
    assert (opened.format, opened.tensors[0].shape) == (kind, shape)
    assert opened.tokens is not None
    assert opened.tokens[0] == first
    assert len(opened.tokens) == shape[0]
    array = opened.tensors[0].open()
    assert np.isfinite(array).all()
    assert array[-1, -1] == pytest.approx(last, rel=1e-6)


def test_three_whole_numbers_may_be_a_word_and_its_vector(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("40 50 70\n41 1 2\n42 3 4\n")
    matrix = embgeo.load(path)
    assert matrix.tokens == ("40", "41", "42")
    assert matrix.data.tolist() == [[50, 70], [1, 2], [3, 4]]
