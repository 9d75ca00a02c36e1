"""Counts from a corpus: by the model's own tokenizer, by words, in folders, and of no text."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import LabelMismatch, UnreadableFile
from embgeo.files import long_texts
from embgeo.io.labels.corpus_text import CorpusText, count_words
from embgeo.io.labels.tokenizer_runs import NotUsable, texts
from tests.support import tokenizer_makers
from tests.support.refusals import refusal
from tests.support.sampling import each_folder, each_value, sample_cases

D = 3
TEXT = "\n".join(tokenizer_makers.TEXT) + "\nfish\n"


def matrix_file(path: Path, rows: int) -> Path:
    np.save(path, np.arange(rows * D, dtype=np.float32).reshape(rows, D))
    return path


def written(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def counted_ids(encoded: list[int], rows: int) -> np.ndarray[Any, Any]:
    found = Counter(encoded)
    return np.array([found[row] for row in range(rows)])


@pytest.mark.parametrize("kind", ["byte-level", "byte-fallback", "wordpiece", "unigram"])
@pytest.mark.parametrize("packed", sample_cases([False, True], 2))
@pytest.mark.slow
def test_the_models_own_tokenizer_counts(tmp_path: Path, kind: str, packed: bool) -> None:
    made = tokenizer_makers.train_tokenizer(kind)
    # Neither limits of length nor padding that the file asks for may drop or add tokens.
    made.enable_truncation(5)
    made.enable_padding(length=100)
    made.save(str(tmp_path / "tokenizer.json"))
    made.no_truncation()
    made.no_padding()
    size = made.get_vocab_size()
    matrix_file(tmp_path / "model.npy", size + 2)
    text = TEXT + "<|end of text|> added one\n"
    corpus = written(tmp_path / "c" / "c.txt", gzip.compress(text.encode()) if packed else text)
    matrix = embgeo.load(tmp_path, corpus=corpus)
    expected = made.encode(text, add_special_tokens=False).ids
    assert matrix.frequency is not None
    np.testing.assert_array_equal(matrix.frequency.counts, counted_ids(expected, size + 2))
    assert matrix.frequency.source == f"corpus c.txt, {len(expected):,} tokens by tokenizer.json"
    unseen = size - len(set(expected))
    notes = matrix.origin.notes
    assert f"{unseen} of {size} tokens do not occur in c.txt" in notes
    taken = unseen * matrix.d * matrix.data.itemsize / 1e6
    assert f"rows of tokens that never occur in the corpus take {taken:,.3f} MB" in notes
    cut = embgeo.load(tmp_path, corpus=corpus, rows="10:50")
    assert cut.frequency is not None
    np.testing.assert_array_equal(cut.frequency.counts, matrix.frequency.counts[10:50])
    given = embgeo.load(
        tmp_path / "model.npy",
        tokens=tmp_path / "tokenizer.json",
        padding="mask",
        corpus=corpus,
    )
    assert given.frequency is not None
    np.testing.assert_array_equal(given.frequency.counts, matrix.frequency.counts)


def test_a_tokenizer_that_fails_on_the_way_leaves_words_to_be_counted_from_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tokenizer_makers.train_tokenizer("byte-level")
    made.save(str(tmp_path / "tokenizer.json"))
    matrix_file(tmp_path / "model.npy", made.get_vocab_size())
    written(tmp_path / "c" / "a.txt", TEXT.encode() + b"\xff\n")
    written(tmp_path / "c" / "b.bin", b"\0\1")
    progress: list[tuple[int, int]] = []

    def fail(_encoder: Any, _size: int, text: CorpusText) -> Any:
        list(text.pieces(words=False))
        raise NotUsable("it failed")

    monkeypatch.setattr("embgeo.io.labels.matrix_labels.count_tokens", fail)
    matrix = embgeo.load(
        tmp_path, corpus=tmp_path / "c", progress=lambda done, total: progress.append((done, total))
    )
    assert "1 bytes of c are not valid UTF-8" in matrix.origin.notes
    assert sum("b.bin" in note for note in matrix.origin.notes) == 1
    assert all(done <= total for done, total in progress)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.slow
def test_a_sentencepiece_model_counts(tmp_path: Path, kind: str) -> None:
    data = tokenizer_makers.sentencepiece_model(kind)
    processor = tokenizer_makers.sentencepiece_processor(written(tmp_path / "m.model", data))
    size = processor.GetPieceSize()
    path = matrix_file(tmp_path / "model.npy", size)
    corpus = written(tmp_path / "c.txt", TEXT)
    matrix = embgeo.load(path, tokens=tmp_path / "m.model", corpus=corpus)
    expected = processor.EncodeAsIds(TEXT)
    assert matrix.frequency is not None
    np.testing.assert_array_equal(matrix.frequency.counts, counted_ids(expected, size))
    assert matrix.frequency.source == f"corpus c.txt, {len(expected):,} tokens by m.model"


def test_merges_and_vocab_json_count(tmp_path: Path) -> None:
    made = tokenizer_makers.train_tokenizer("byte-level")
    made.model.save(str(tmp_path))
    size = len(json.loads((tmp_path / "vocab.json").read_text()))
    matrix_file(tmp_path / "model.npy", size)
    corpus = written(tmp_path / "c" / "c.txt", TEXT)
    matrix = embgeo.load(tmp_path, corpus=corpus)
    expected = made.encode(TEXT).ids
    assert matrix.frequency is not None
    np.testing.assert_array_equal(matrix.frequency.counts, counted_ids(expected, size))
    assert "tokens by vocab.json" in matrix.frequency.source


@pytest.mark.parametrize(
    ("words", "settings", "expected"),
    [
        ("[UNK]\nthe\nc\n##at\n", None, [1, 2, 1, 1]),
        ("[UNK]\nThe\nc\n##at\n", None, [2, 1, 1, 1]),
        ("[UNK]\nthe\nc\n##at\n", False, [2, 1, 1, 1]),
    ],
)
@pytest.mark.slow
def test_vocab_txt_counts_as_bert_does(
    tmp_path: Path, words: str, settings: bool | None, expected: list[int]
) -> None:
    pytest.importorskip("tokenizers", reason="the package tokenizers runs it")
    matrix_file(tmp_path / "model.npy", 4)
    written(tmp_path / "vocab.txt", words)
    if settings is not None:
        written(tmp_path / "tokenizer_config.json", json.dumps({"do_lower_case": settings}))
    matrix = embgeo.load(tmp_path, corpus=written(tmp_path / "c" / "c.txt", "The cat, the"))
    assert matrix.frequency is not None
    assert "tokens by vocab.txt" in matrix.frequency.source
    # The comma is unknown, and so is "the" or "The" where the case is kept.
    assert matrix.frequency.counts.tolist() == expected


@pytest.mark.slow
def test_pieces_of_any_size_count_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Line ends are part of the text, so whole lines may be counted in any number of pieces."""
    made = tokenizer_makers.train_tokenizer("byte-level")
    made.save(str(tmp_path / "tokenizer.json"))
    matrix_file(tmp_path / "model.npy", made.get_vocab_size())
    corpus = written(tmp_path / "c" / "c.txt", TEXT)
    whole = embgeo.load(tmp_path, corpus=corpus)
    monkeypatch.setattr(long_texts, "_BLOCK", 7)
    small = embgeo.load(tmp_path, corpus=corpus)
    assert whole.frequency is not None
    assert small.frequency is not None
    np.testing.assert_array_equal(small.frequency.counts, whole.frequency.counts)


def folder_with_tokenizer(tmp_path: Path, vocab: dict[str, int], **parts: Any) -> Path:
    data = {"version": "1.0", "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "?"}}
    path = tmp_path / "model"
    written(path / "tokenizer.json", json.dumps({**data, **parts}))
    matrix_file(path / "model.npy", len(vocab))
    return path


VOCABULARY = {"?": 0, "the": 1, "cat": 2}


def test_without_the_package_words_are_counted_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    path = folder_with_tokenizer(tmp_path, VOCABULARY)
    matrix = embgeo.load(path, corpus=written(tmp_path / "c.txt", "the cat the"))
    assert matrix.frequency is not None
    assert matrix.frequency.counts.tolist() == [0, 2, 1]
    assert matrix.frequency.source == (
        "corpus c.txt, 3 words separated by white space; the model's own tokenizer.json is not "
        "used: that needs pip install 'embgeo[hf]'"
    )
    with refusal(LabelMismatch):
        embgeo.load(path, corpus=written(tmp_path / "c.txt", "der die"))


def test_a_tokenizer_that_the_package_does_not_take(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="the package tokenizers refuses it")
    path = folder_with_tokenizer(tmp_path, VOCABULARY, normalizer={"type": "Not\x1b[2J known"})
    matrix = embgeo.load(path, corpus=written(tmp_path / "c.txt", "the cat the"))
    assert matrix.frequency is not None
    assert matrix.frequency.counts.tolist() == [0, 2, 1]
    assert "the package tokenizers cannot read it" in matrix.frequency.source
    assert matrix.frequency.source.isprintable()


def amplifying(times: int) -> dict[str, Any]:
    """A normalizer that makes every letter a thousand of them, several times over."""
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000}
    return {"type": "Sequence", "normalizers": [step] * times}


@pytest.mark.slow
def test_a_tokenizer_that_takes_all_memory_is_stopped(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="the package tokenizers runs it")
    path = folder_with_tokenizer(tmp_path, VOCABULARY, normalizer=amplifying(4))
    with refusal(UnreadableFile):
        embgeo.load(path, corpus=written(tmp_path / "c.txt", "a the cat " * 1000))


def test_nothing_of_the_corpus_belongs_to_the_rows(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="the package tokenizers runs it")
    path = folder_with_tokenizer(tmp_path, VOCABULARY)
    corpus = written(tmp_path / "c.txt", "cat")
    with refusal(LabelMismatch):
        embgeo.load(path, corpus=corpus, rows="0:2")


def test_texts_are_cut_behind_lines_and_nothing_is_lost() -> None:
    lines = "".join(f"line {number} of some\n" for number in range(5000))
    for piece in (lines, "x" * 50_000, "ab cd " * 9000, "", "é\n"):
        cut = texts(piece)
        assert "".join(cut) == piece
        assert all(len(text) <= 2**14 for text in cut)
    assert all(text.endswith("\n") for text in texts(lines))
    assert all(text[0] == " " for text in texts("ab cd " * 9000)[1:])


def heard_while_counting(path: Path) -> list[tuple[int, int]]:
    progress: list[tuple[int, int]] = []
    count_words(("the",), CorpusText(path, lambda done, total: progress.append((done, total))))
    return progress


def test_progress_counts_the_bytes_of_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_texts, "_BLOCK", 4)
    written(tmp_path / "c" / "a.txt", "the cat")
    written(tmp_path / "c" / "b.txt", "the")
    assert heard_while_counting(tmp_path / "c") == [(4, 10), (7, 10), (10, 10)]
    written(tmp_path / "c" / "b.txt", gzip.compress(b"the"))
    assert heard_while_counting(tmp_path / "c") == [(4, 0), (7, 0), (10, 0)]
    progress = []
    embgeo.load(
        matrix_file(tmp_path / "m.npy", 1),
        tokens=written(tmp_path / "tokens.txt", "the"),
        corpus=tmp_path / "c" / "a.txt",
        progress=lambda done, total: progress.append((done, total)),
    )
    assert progress == [(4, 7), (7, 7)]


def test_a_folder_of_texts(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    written(folder / "a.txt", "the cat the")
    written(folder / "deeper" / "b.txt", gzip.compress(b"cat of"))
    written(folder / "empty.txt", "")
    written(folder / ".hidden", "the the the")
    written(folder / ".git" / "c", "the the the")
    written(folder / "picture.png", b"\x89PNG\r\n\x1a\n\0\0\0")
    outside = written(tmp_path / "outside.txt", "the the the")
    (folder / "link.txt").symlink_to(outside)
    (folder / "circle").symlink_to(folder)
    frequency, notes = count_words(("the", "cat", "of", "thecat"), CorpusText(folder))
    assert frequency.counts.tolist() == [2, 2, 1, 0]
    assert frequency.source == "corpus texts, 5 words separated by white space"
    assert "not read, because it is binary, not text: picture.png" in notes
    assert not any(str(tmp_path) in note for note in (*notes, frequency.source))


def test_folders_without_text_and_paths_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with refusal(UnreadableFile):
        count_words(("the",), CorpusText(tmp_path / "empty"))
    with refusal(UnreadableFile):
        count_words(("the",), CorpusText(tmp_path / "missing"))


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    for folder, content in each_folder(
        tmp_path,
        (
            b"the\0cat",
            np.random.default_rng(1).integers(1, 256, 10_000, np.uint8).tobytes(),
            "the cat".encode("utf-16"),
            b"",
        ),
    ):
        path = written(folder / "c.txt", content)
        with refusal(UnreadableFile):
            count_words(("the",), CorpusText(path))


def test_bytes_that_are_no_utf8_are_counted_and_said(tmp_path: Path) -> None:
    text = "the café " * 9
    path = written(tmp_path / "c.txt", (text + "\nthe end \n").encode("latin-1"))
    frequency, notes = count_words(("the", "end"), CorpusText(path))
    assert frequency.counts.tolist() == [10, 1]
    assert "9 bytes of c.txt are not valid UTF-8" in notes


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path: Path) -> None:
    frequency, notes = count_words(
        ("the",), CorpusText(written(tmp_path / "c", b"\xef\xbb\xbfthe the"))
    )
    assert (frequency.counts.tolist(), notes) == ([2], ())


@each_value
@pytest.mark.parametrize("block", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("text", ["日本語のテキスト🙂é" * 3, "a b\nc é\n\nd", "\n\n \n", "é"])
def test_no_character_is_cut_and_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, text: str
) -> None:
    monkeypatch.setattr(long_texts, "_BLOCK", block)
    monkeypatch.setattr(long_texts, "_LONGEST_WORD", 6)
    monkeypatch.setattr(long_texts, "_MOST_INVALID", 1.0)
    corpus = CorpusText(written(tmp_path / "c.txt", text))
    pieces = list(corpus.pieces(words=False))
    assert b"".join(pieces).decode() == text
    assert all(piece.decode() for piece in pieces)
    assert corpus.notes() == ()
