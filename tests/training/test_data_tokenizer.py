"""Corpora by a tokenizer.json, and vocabularies as files."""

from __future__ import annotations

import builtins
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.io.labels.counts_file import read_counts
from embgeo.training.data import Vocabulary, load_corpus, read_vocabulary, write_vocabulary
from tests.support.refusals import refusal
from tests.support.sampling import each_folder

TEXT = "the cat sat on the mat\n\na dog ran to the zoo\n" * 30


def tokenizer_file(path: Path, **changes: Any) -> Path:
    """Words by white space, as a tokenizer; id 4 has no token."""
    words = ["<unk>", "the", "cat", "dog", "mat", "</s>"]
    vocab = {word: number + (number > 3) for number, word in enumerate(words)}
    content = {
        "version": "1.0",
        "truncation": {
            "direction": "Right",
            "max_length": 2,
            "strategy": "LongestFirst",
            "stride": 0,
        },
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"},
        **changes,
    }
    path.write_text(json.dumps(content), "utf-8")
    return path


@pytest.fixture
def text(tmp_path: Path) -> Path:
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_text(TEXT, "utf-8")
    return tmp_path


def test_a_hostile_id_takes_no_memory(text: Path) -> None:
    pytest.importorskip("tokenizers")
    model = {"type": "WordLevel", "vocab": {"the": 0, "<unk>": 2**31}, "unk_token": "<unk>"}
    with refusal(UnreadableFile):
        load_corpus(text, tokenizer=tokenizer_file(text / "tokenizer.json", model=model))


def test_rows_are_ids_and_counts_are_of_the_training_split(text: Path) -> None:
    pytest.importorskip("tokenizers")
    corpus = load_corpus(text, tokenizer=tokenizer_file(text / "tokenizer.json"))
    assert corpus.vocabulary.tokens == (
        "<unk>", "the", "cat", "dog", "<no token 4>", "mat", "</s>"
    )  # fmt: skip
    sentence = [1, 2, 0, 0, 1, 5, 6, 0, 3, 0, 0, 1, 0, 6]
    assert corpus.train.tolist() == sentence * 30, "not truncated to two tokens, no empty lines"
    assert corpus.vocabulary.counts.tolist() == np.bincount(corpus.train, minlength=7).tolist()
    assert (corpus.vocabulary.unknown, corpus.vocabulary.end) == (0, 6)
    assert corpus.unit == "sentences"
    assert "tokenizer.json" in corpus.files
    assert len(load_corpus(text, tokenizer=text / "tokenizer.json", tokens=100).train) == 100


def test_a_tokenizer_sees_the_line_ends_of_a_stream(text: Path) -> None:
    pytest.importorskip("tokenizers")
    path = tokenizer_file(
        text / "tokenizer.json",
        pre_tokenizer=None,
        model={
            "type": "BPE",
            "vocab": {"t": 0, "\n": 1, "a": 2},
            "merges": [],
            "unk_token": None,
        },
    )
    corpus = load_corpus(text, tokenizer=path)
    assert corpus.unit == "stream", "there is no token that ends a sentence"
    assert corpus.vocabulary.unknown is corpus.vocabulary.end is None
    letters = ["t\na".index(letter) for letter in TEXT if letter in "t\na"]
    assert corpus.train.tolist() == [(0, 1, 2)[letter] for letter in letters]
    with refusal(BadOption):
        load_corpus(text, tokenizer=path, unit="sentences")


@pytest.mark.parametrize(
    "content", ["", "{}", "[1]", '{"model": {"type": "WordLevel", "vocab": {}}}', "\x80"]
)
def test_files_that_are_no_tokenizers(text: Path, content: str) -> None:
    pytest.importorskip("tokenizers")
    path = text / "tokenizer.json"
    path.write_bytes(content.encode("latin-1"))
    with refusal(UnreadableFile):
        load_corpus(text, tokenizer=path)


def test_a_tokenizer_that_is_missing_empty_or_fails(text: Path) -> None:
    pytest.importorskip("tokenizers")
    with refusal(UnreadableFile):
        load_corpus(text, tokenizer=text / "no.json")
    empty = {"type": "BPE", "vocab": {}, "merges": []}
    path = tokenizer_file(text / "tokenizer.json", model=empty)
    with refusal(UnreadableFile):
        load_corpus(text, tokenizer=path)
    no_unknown = {"type": "WordLevel", "vocab": {"the": 0}, "unk_token": "<unk>"}
    path = tokenizer_file(text / "tokenizer.json", model=no_unknown)
    with refusal(UnreadableFile):
        load_corpus(text, tokenizer=path)


def test_a_missing_package_is_named(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name.partition(".")[0] == "tokenizers":
            raise ImportError(name)
        return load(name, *arguments)

    monkeypatch.delitem(sys.modules, "tokenizers", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with refusal(BadOption):
        load_corpus(text, tokenizer=text / "tokenizer.json")


# --- vocabulary.tsv ---------------------------------------------------------------------------

HOSTILE = (
    "plain", "tab\there", "line\nend", "return\r", "back\\slash", "\\n", "\\", "",
    " ", "\u2028", "\x0b", "\0", "{\"a\": 1}", "[[", "token\tcount", "#", "=SUM(A1)",
    "<script>", "\ufeffmark", "<eos>", "<unk>", "名",
)  # fmt: skip


def vocabulary(tokens: tuple[str, ...]) -> Vocabulary:
    counts = np.arange(len(tokens), 0, -1)
    row = {token: place for place, token in enumerate(tokens)}
    return Vocabulary(tokens, counts, row.get("<unk>"), row.get("<eos>"))


def test_hostile_tokens_survive_whichever_comes_first(tmp_path: Path) -> None:
    for folder, first in each_folder(tmp_path, range(len(HOSTILE))):
        written = vocabulary(HOSTILE[first:] + HOSTILE[:first])
        write_vocabulary(written, folder / "vocabulary.tsv")
        found = read_vocabulary(folder / "vocabulary.tsv")
        assert found.tokens == written.tokens
        assert found.counts.tolist() == written.counts.tolist()
        assert (found.unknown, found.end) == (written.unknown, written.end)
        counts = read_counts(folder / "vocabulary.tsv")
        assert counts.tokens == written.tokens
        assert list(counts.counts) == written.counts.tolist()


def test_plain_vocabularies_look_as_the_fixture_does(tmp_path: Path) -> None:
    fixture = Path(__file__).parents[2] / "fixtures" / "vocab_counts.tsv"
    found = read_vocabulary(fixture)
    assert found.unknown is not None
    write_vocabulary(found, tmp_path / "vocabulary.tsv")
    again = read_vocabulary(tmp_path / "vocabulary.tsv")
    assert again.tokens == found.tokens == read_counts(fixture).tokens


def test_files_that_are_no_vocabularies(tmp_path: Path) -> None:
    for folder, content in each_folder(
        tmp_path,
        (b"", b"word\n", b"word\t-1\n", b"word\tx\n", b"a\tb\t1\n", b"w\t1\n\n", b"\xff\t1\n"),
    ):
        path = folder / "vocabulary.tsv"
        path.write_bytes(content)
        with refusal(UnreadableFile):
            read_vocabulary(path)
        with refusal(UnreadableFile):
            read_vocabulary(folder / "no.tsv")
