"""The pieces of a token's text, with each kind of tokenizer, without damaged and added tokens."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import BadOption
from embgeo.io.labels.tokenizer_runs import NotUsable, find_pieces
from embgeo.io.labels.vocabulary import TextEncoder
from tests.support.safetensors_model import EMBEDDING, write_model

tokenizers = pytest.importorskip("tokenizers")

WORDS = ["a", "b", "c", "|", "ab", "abc", "bc", "<unk>"]


def byte_pairs() -> Any:
    vocabulary = {word: row for row, word in enumerate(WORDS)}
    merges = [("a", "b"), ("ab", "c"), ("b", "c")]
    return tokenizers.models.BPE(vocabulary, merges, unk_token="<unk>")


def word_pieces() -> Any:
    words = ["a", "##b", "##c", "|", "ab", "abc", "##bc", "<unk>"]
    vocabulary = {word: row for row, word in enumerate(words)}
    return tokenizers.models.WordPiece(vocabulary, unk_token="<unk>")


def unigrams() -> Any:
    scores = [(word, -1.0 - 0.1 * row) for row, word in enumerate(WORDS)]
    return tokenizers.models.Unigram(scores, unk_id=7)


def encoder(folder: Path, model: Any) -> TextEncoder:
    """A tokenizer.json with an added token, ``ab|``."""
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.add_special_tokens(["<unk>", "ab|", "?"])
    file = folder / "tokenizer.json"
    tokenizer.save(str(file))
    return TextEncoder("tokenizer.json", (file,))


@pytest.mark.usefixtures("workers_here")
@pytest.mark.parametrize("kind", [byte_pairs, unigrams])
def test_pieces(kind: Any, tmp_path: Path) -> None:
    own = encoder(tmp_path, kind())
    rows = [5, 8, 9]
    # "abc" without itself, the added "ab|" by its text, and "?" of which there are no pieces.
    assert find_pieces(own, rows, np.array(rows)) == [[4, 2], [4, 3], []]
    assert find_pieces(own, rows, np.array([4, 5, 8, 9])) == [[0, 6], [0, 1, 3], []]
    assert find_pieces(own, rows, np.array([1, 4, 5, 6, 8, 9])) == [[], [], []]


@pytest.mark.usefixtures("workers_here")
def test_word_pieces(tmp_path: Path) -> None:
    own = encoder(tmp_path, word_pieces())
    assert find_pieces(own, [5, 9], np.array([5, 9])) == [[4, 2], []]
    assert find_pieces(own, [5], np.array([4, 5])) == [[0, 6]]


@pytest.mark.slow
def test_a_row_is_the_mean_of_its_pieces(tmp_path: Path) -> None:
    W = np.random.default_rng(0).standard_normal((10, 4)).astype(np.float32)
    W[8] = 0.0
    model = write_model(tmp_path / "old", {EMBEDDING: W})
    own = encoder(model, byte_pairs())
    assert own.files[0].parent == model
    done = embgeo.repair(model, tmp_path / "new", method="subwords", diff=False)
    assert done.record.places == [8]
    mean = (W[4].astype(float) + W[3]) / 2
    norm = np.sqrt(np.mean(np.sum(np.delete(W, 8, axis=0).astype(float) ** 2, axis=1)))
    new = embgeo.load(tmp_path / "new").data[8]
    np.testing.assert_allclose(new, mean / np.linalg.norm(mean) * norm, rtol=1e-6)
    with pytest.raises(BadOption, match=r"has no pieces with healthy rows: row 9 '\?'"):
        embgeo.repair(model, rows=[9], method="subwords", dry_run=True)


def test_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = np.zeros(0, dtype=np.int64)
    with pytest.raises(NotUsable, match="no tokenizer"):
        find_pieces(None, [1], none)
    with pytest.raises(NotUsable, match=r"spiece\.model is not a tokenizer\.json"):
        find_pieces(TextEncoder("SentencePiece", (Path("spiece.model"),)), [1], none)
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"type": "x"}}))
    own = TextEncoder("tokenizer.json", (tmp_path / "tokenizer.json",))
    with pytest.raises(NotUsable):
        find_pieces(own, [1], none)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(NotUsable, match=r"pip install 'embgeo\[hf\]'"):
        find_pieces(own, [1], none)
