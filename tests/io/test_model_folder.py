"""Hugging Face model folders, and tokens made readable."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.io.labels.tokenizer_files import from_tokenizer_json
from embgeo.io.labels.vocabulary import from_byte_level, from_sentencepiece, guess_scheme
from tests.support.refusals import refusal

N, D = 6, 3
W = np.arange(N * D, dtype=np.float32).reshape(N, D)


def folder(tmp_path: Path, files: dict[str, Any] | None = None, **tensors: np.ndarray) -> Path:
    """A model folder with an embedding matrix, and files given as text or JSON values."""
    path = tmp_path / "model"
    path.mkdir()
    save_file(tensors or {"model.embed_tokens.weight": W}, path / "model.safetensors")
    for name, content in (files or {}).items():
        text = content if isinstance(content, str) else json.dumps(content)
        (path / name).write_text(text, encoding="utf-8")
    return path


def tokenizer(vocab: Any, **parts: Any) -> dict[str, Any]:
    return {"model": {"type": "BPE", "vocab": vocab}, **parts}


def byte_level(text: bytes) -> str:
    """The byte-level spelling of some bytes, by the published rule, written out anew."""
    visible = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    hidden = [b for b in range(256) if b not in visible]
    return "".join(chr(b) if b in visible else chr(256 + hidden.index(b)) for b in text)


def test_byte_level_tokens() -> None:
    for raw, readable in (
        (b" the", " the"),
        (b"\n", "\n"),
        (b"\t\x00", "\t\x00"),
        ("café".encode(), "café"),
        ("🙂".encode(), "🙂"),
        (b"\xe2\x80", "<0xE2><0x80>"),
        (b" \xc3", " <0xC3>"),
        (b"\xa9x", "<0xA9>x"),
        (b"", ""),
    ):
        assert from_byte_level(byte_level(raw)) == readable


def test_every_byte_is_known_to_the_byte_level_alphabet() -> None:
    for byte in range(256):
        expected = chr(byte) if byte < 128 else f"<0x{byte:02X}>"
        assert from_byte_level(byte_level(bytes([byte]))) == expected


def test_tokens_outside_the_byte_alphabet_stay() -> None:
    assert from_byte_level("日本 Ġ") == "日本 Ġ"


def test_sentencepiece_and_wordpiece() -> None:
    assert from_sentencepiece("▁the") == " the"
    assert guess_scheme(["▁the", "x"]) == "sentencepiece"
    assert guess_scheme(["Ġthe", "x"]) == "byte-level"
    assert guess_scheme(["##ing", "the", "[PAD]"]) == "plain"
    assert guess_scheme([]) == "plain"


SCHEMES = [
    (
        tokenizer({"the": 0, "Ġof": 1, "Ċ": 2}, decoder={"type": "ByteLevel"}),
        ("the", " of", "\n"),
    ),
    (
        tokenizer(
            {"a": 0, "b": 1, "Ġc": 2},
            pre_tokenizer={
                "type": "Sequence",
                "pretokenizers": [{"type": "Split"}, {"type": "ByteLevel"}],
            },
        ),
        ("a", "b", " c"),
    ),
    (
        tokenizer(
            [["<unk>", 0.0], ["▁the", -1.5], ["ing", -2.0]],
            pre_tokenizer={"type": "Metaspace"},
        ),
        ("<unk>", " the", "ing"),
    ),
    (
        tokenizer(
            {"<0x0A>": 0, "▁the": 1},
            decoder={"type": "Sequence", "decoders": [{"type": "ByteFallback"}]},
        ),
        ("<0x0A>", " the"),
    ),
    (
        tokenizer({"[PAD]": 0, "##ing": 1, "Ġ": 2}, decoder={"type": "WordPiece"}),
        ("[PAD]", "##ing", "Ġ"),
    ),
]


def test_tokenizer_json() -> None:
    for data, expected in SCHEMES:
        assert from_tokenizer_json(data, Path("tokenizer.json")).tokens == expected


def test_added_tokens_are_not_decoded_and_fill_their_ids() -> None:
    data = tokenizer(
        {"Ġa": 0, "b": 1},
        decoder={"type": "ByteLevel"},
        added_tokens=[{"id": 3, "content": "<|Ġend|>"}, {"id": 0, "content": "Ġa"}],
    )
    vocabulary = from_tokenizer_json(data, Path("tokenizer.json"))
    assert vocabulary.tokens == ("Ġa", "b", "<unused id 2>", "<|Ġend|>")
    assert "byte-level tokens, decoded" in vocabulary.source
    assert any("1 ids below 4 have no token" in note for note in vocabulary.notes)


def test_a_folder_with_everything(tmp_path: Path) -> None:
    path = folder(
        tmp_path,
        {
            "config.json": {"tie_word_embeddings": True, "vocab_size": N},
            "tokenizer.json": tokenizer({f"Ġt{k}": k for k in range(4)}),
        },
    )
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.tokens == (
        " t0",
        " t1",
        " t2",
        " t3",
        "<padding row 4>",
        "<padding row 5>",
    )
    assert matrix.masked["padding beyond the vocabulary"].tolist() == [4, 5]
    assert matrix.origin.format == "model folder (safetensors)"
    assert any("labels 4 of 6 rows" in note for note in matrix.origin.notes)
    kept = embgeo.load(path, padding="keep")
    assert kept.tokens is not None
    assert kept.tokens[4:] == ("<row 4>", "<row 5>")
    assert kept.masked == {}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"vocab.txt": "[PAD]\nthe\n##ing\n\n\u2028\nlast\n"},
            ("[PAD]", "the", "##ing", "", "\u2028", "last"),
        ),
        (
            {"vocab.json": {f"Ġ{k}": k for k in range(5)}, "added_tokens.json": {"<x>": 5}},
            (" 0", " 1", " 2", " 3", " 4", "<x>"),
        ),
        (
            {
                "tokenizer.json": tokenizer({c: k for k, c in enumerate("abcdef")}),
                "vocab.txt": "no",
            },
            tuple("abcdef"),
        ),
        ({"vocab.txt": "\n".join("abcdefgh")}, None),  # more tokens than rows
        ({}, None),
    ],
)
def test_where_tokens_come_from(
    tmp_path: Path, files: dict[str, Any], expected: tuple[str, ...] | None
) -> None:
    assert embgeo.load(folder(tmp_path, files)).tokens == expected


def test_tying(tmp_path: Path) -> None:
    head = {"model.embed_tokens.weight": W, "lm_head.weight": W + 1}
    path = folder(tmp_path, {"config.json": {"tie_word_embeddings": False}}, **head)
    untied = embgeo.load(path)
    assert untied.output is not None
    np.testing.assert_array_equal(untied.output.data, W + 1)
    (path / "config.json").write_text('{"text_config": {"tie_word_embeddings": true}}')
    assert embgeo.load(path).output is None
    (path / "config.json").write_text("{}")
    assert embgeo.load(path).output is not None


def test_a_named_file_is_tied_as_its_folder_is(tmp_path: Path) -> None:
    config = {"model_type": "llama", "tie_word_embeddings": True}
    tensors = {"model.embed_tokens.weight": W, "lm_head.weight": 2 * W}
    model = folder(tmp_path, {"config.json": config}, **tensors)
    file = model / "model.safetensors"
    for name in (model, file, file.with_suffix(".gz")):
        if name.suffix == ".gz":  # another name of the format, not of the model
            name.write_bytes(gzip.compress(file.read_bytes()))
        matrix = embgeo.load(name)
        assert matrix.output is None
        assert matrix.tied_as_configured is False


def test_a_vocabulary_size_that_nearly_fits_is_noted(tmp_path: Path) -> None:
    last = f"those from {len(W) - 2:,} on may be"
    for more, end in ((1, ""), (-1, "of which one may be"), (-2, last)):
        size = len(W) + more
        (tmp_path / str(more)).mkdir()
        model = folder(tmp_path / str(more), {"config.json": {"vocab_size": size}})
        matrix = embgeo.load(model)
        assert f"vocab_size {size:,}, and the matrix has" in matrix.origin.notes[0]
        assert end in matrix.origin.notes[0]


def test_a_single_weights_file_of_any_name(tmp_path: Path) -> None:
    np.save(tmp_path / "weights.npy", W)
    (tmp_path / "README.md").write_text("# a model")
    (tmp_path / "training_args.bin").write_bytes(b"\x80\x02}q\x00.")
    (tmp_path / "merges.txt").write_text("#version: 0.2\nĠ t\n", encoding="utf-8")
    log = {"loss": [0.5, 0.25, 0.2, 0.1], "settings": {"lr": [0.1, 0.2, 0.3, 0.4, 0.5]}}
    (tmp_path / "log.json").write_text(json.dumps(log))
    np.testing.assert_array_equal(embgeo.load(tmp_path).data, W)
    np.save(tmp_path / "more.npy", W)
    with refusal(UnreadableFile):
        embgeo.load(tmp_path)


def test_logs_are_not_listed_as_weights(tmp_path: Path) -> None:
    log = json.dumps({"loss": [0.5, 0.25, 0.2, 0.1], "more": {"lr": [0.1, 0.2, 0.3, 0.4, 0.5]}})
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(log)
    with refusal(UnreadableFile):
        embgeo.load(tmp_path)


def test_folders_without_weights(tmp_path: Path) -> None:
    with refusal(UnreadableFile):
        embgeo.load(tmp_path)
    for k in range(10):
        (tmp_path / f"{k}.md").write_text("text")
    with refusal(UnreadableFile):
        embgeo.load(tmp_path)


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", "{"),
        ("config.json", "[]"),
        ("config.json", DEEP),
        ("tokenizer.json", '{"model": ' + DEEP + "}"),
        ("tokenizer.json", "{}"),
        ("tokenizer.json", '{"model": {"vocab": 3}}'),
        ("tokenizer.json", '{"model": {"vocab": {}}}'),
        ("tokenizer.json", '{"model": {"vocab": ["a"]}}'),
        ("tokenizer.json", '{"model": {"vocab": {"a": -1}}}'),
        ("tokenizer.json", '{"model": {"vocab": {"a": "b"}}}'),
        ("tokenizer.json", '{"model": {"vocab": {"a": 10000000000}}}'),
        ("tokenizer.json", '{"model": {"vocab": {"a": 0}}, "added_tokens": [3]}'),
        ("tokenizer.json", '{"model": {"vocab": {"a": 0}}, "added_tokens": 3}'),
        ("vocab.json", "[1]"),
        ("vocab.json", "{}"),
    ],
)
def test_damaged_side_files_are_one_line(tmp_path: Path, name: str, content: str) -> None:
    path = folder(tmp_path, {name: content})
    with refusal(UnreadableFile):
        embgeo.load(path)


def test_sharded_folder_hashes_its_files_in_order(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "model.safetensors").unlink()
    save_file({"model.embed_tokens.weight": W}, path / "a.safetensors")
    save_file({"lm_head.weight": W + 1}, path / "b.safetensors")
    index = {
        "weight_map": {
            "model.embed_tokens.weight": "a.safetensors",
            "lm_head.weight": "b.safetensors",
        }
    }
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    matrix = embgeo.load(path)
    assert matrix.output is not None
    assert matrix.origin.format == "model folder (sharded checkpoint)"
    assert len(matrix.origin.sha256) == 64
    assert embgeo.load(path, hash_file=False).origin.sha256 == ""
