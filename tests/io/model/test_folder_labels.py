"""Tokenizers of a folder: unusual files, and what is left of the model where one cannot be read."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from tests.support.refusals import refusal

N = 30
ROWS = np.random.default_rng(0).standard_normal((N, 4)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_file({"embed_tokens.weight": ROWS}, tmp_path / "model.safetensors")
    return tmp_path


def test_a_configuration_of_keras_labels_nothing(folder: Path) -> None:
    keras = {"module": "keras_hub.src.models.gemma", "class_name": "GemmaTokenizer", "config": {}}
    (folder / "tokenizer.json").write_text(json.dumps(keras))
    matrix = embgeo.load(folder)
    assert matrix.tokens is None
    assert any("tokenizer.json is a configuration of Keras" in n for n in matrix.origin.notes)
    with refusal():
        embgeo.load(folder, tokens=folder / "tokenizer.json")


@pytest.mark.parametrize("content", ["{", "[]"])
def test_a_tokenizer_that_cannot_be_read_does_not_matter_without_its_labels(
    content: str, folder: Path
) -> None:
    (folder / "tokenizer.json").write_text(content)
    with refusal():
        embgeo.load(folder)
    assert embgeo.load(folder, tokens="none").tokens is None
    words = folder / "words.list"
    words.write_text("\n".join(f"w{k}" for k in range(N)))
    assert embgeo.load(folder, tokens=words).tokens is not None
    assert any("tokenizer.json" in note for note in embgeo.inspect(folder).notes)


@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.slow
def test_shards_of_keras_are_read_by_their_index(as_list: bool, tmp_path: Path) -> None:
    """The variables of one layer may lie in several shards, which are listed."""
    h5py = pytest.importorskip("h5py")
    names = [f"model_0000{number}.weights.h5" for number in range(2)]
    for number, name in enumerate(names):
        with h5py.File(tmp_path / name, "w") as file:
            file[f"layers/reversible_embedding/vars/{number}"] = ROWS if number == 0 else ROWS.T
            file["layers/other/vars/0"] = ROWS[:3]
    weight_map = {"/layers/reversible_embedding/vars": names if as_list else names[0]}
    index = tmp_path / "model.weights.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    for given in (tmp_path, index):
        matrix = embgeo.load(given)
        np.testing.assert_array_equal(matrix.data, ROWS)
        assert bool(matrix.origin.tied_by) is as_list  # the second holds the transposed rows


def test_tiktoken_model(folder: Path) -> None:
    """As Kimi stores it, with special tokens in tokenizer_config.json."""
    words = [bytes([65 + k]) for k in range(26)]
    lines = (base64.b64encode(word) + b" %d\n" % rank for rank, word in enumerate(words))
    (folder / "tiktoken.model").write_bytes(b"".join(lines))
    added = {"added_tokens_decoder": {"29": {"content": "<|im_end|>", "special": True}}}
    (folder / "tokenizer_config.json").write_text(json.dumps(added))
    matrix = embgeo.load(folder)
    assert matrix.tokens is not None
    assert (matrix.tokens[0], matrix.tokens[29]) == ("A", "<|im_end|>")


@pytest.mark.parametrize("first", ["<pad>", "<unk>"])
def test_sentencepiece_whatever_its_first_piece(first: str, folder: Path) -> None:
    """Fields of its protocol buffer: a piece (1) with its text (1), score (2) and type (3)."""
    pieces = [first, "</s>", *(f"▁w{k}" for k in range(N - 2))]
    data = b""
    for number, piece in enumerate(pieces):
        text = piece.encode()
        kind = 3 if number < 2 else 1
        body = b"\x0a%c%b\x15%b\x18%c" % (len(text), text, np.float32(-1).tobytes(), kind)
        data += b"\x0a%c%b" % (len(body), body)
    (folder / "tokenizer.model").write_bytes(data)
    matrix = embgeo.load(folder)
    assert matrix.tokens is not None
    assert matrix.tokens[:2] == (first, "</s>")


def test_very_many_tensors_are_refused_at_once(tmp_path: Path) -> None:
    """300,000 tensors of one number took 12 s and 577 MB."""
    entry = '{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}'
    header = "{" + ",".join(f'"t{k}":{entry}' for k in range(200_001)) + "}"
    data = len(header).to_bytes(8, "little") + header.encode() + bytes(4)
    (tmp_path / "many.safetensors").write_bytes(data)
    with refusal():
        embgeo.load(tmp_path / "many.safetensors")
