"""Tokens that no text leads to are found by the model's own tokenizer, or the reason is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo

VOCABULARY = ("[UNK]", "[unused1]", "the", "##s", "##河", "河", "q", "1", "x", "-")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a word-piece tokenizer, which takes Chinese characters one by one."""
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("model")
    pieces = tokenizers.models.WordPiece(
        {token: row for row, token in enumerate(VOCABULARY)}, unk_token="[UNK]"
    )
    tokenizer = tokenizers.Tokenizer(pieces)
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    tokenizer.add_special_tokens(["[UNK]"])
    tokenizer.save(str(folder / "tokenizer.json"))
    W = np.random.default_rng(0).standard_normal((len(VOCABULARY), 4)).astype(np.float32)
    save_file({"embeddings.word_embeddings.weight": W}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"vocab_size": len(VOCABULARY)}))
    return folder


def test_unreachable_tokens_are_found(model):
    matrix = embgeo.load(model, check_reachable=True)
    assert matrix.unreachable == (1, 4)
    found = embgeo.analyze(matrix, sections=["tokens"], reference=False)
    assert found["tokens.unreachable_rows"] == 2
    assert {row[1] for row in found["tokens.unreachable"].rows} == {"[unused1]", "##河"}


@pytest.mark.usefixtures("workers_here")
def test_rows_of_a_cut(model):
    assert embgeo.load(model, rows="3:8", check_reachable=True).unreachable == (1,)


def test_nobody_asked(model):
    matrix = embgeo.load(model)
    assert matrix.unreachable is None
    found = embgeo.analyze(matrix, sections=["tokens"], reference=False)
    assert "tokens.unreachable_rows" not in found.keys()  # noqa: SIM118


@pytest.mark.parametrize("damage", ["no tokenizer", "not understood", "no package"])
def test_the_reason_is_said(model, damage, tmp_path, monkeypatch):
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in model.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    reason = "the rows have no tokenizer"
    if damage == "no tokenizer":
        (folder / "tokenizer.json").unlink()
    elif damage == "not understood":
        data = json.loads((folder / "tokenizer.json").read_text("utf-8"))
        data["model"]["type"] = "Unheard"
        (folder / "tokenizer.json").write_text(json.dumps(data), "utf-8")
        reason = "Exception"
    else:
        monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
        reason = "needs pip install"
    matrix = embgeo.load(folder, check_reachable=True)
    monkeypatch.undo()
    found = embgeo.analyze(matrix, sections=["tokens"], reference=False)
    assert reason in found["tokens.unreachable_rows"].undefined
