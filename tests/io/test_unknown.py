"""What is said of files and folders of other tools: what they are, and the way out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.errors import EmbgeoError

W = np.random.default_rng(0).standard_normal((60, 8)).astype("f4")
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 12\n"


@pytest.mark.parametrize(
    ("head", "cause"),
    [
        (b"IxFI" + bytes(60), "an index of faiss"),
        (b"IwFl" + bytes(60), "an index of faiss"),
        (b"FiFu" + bytes(60), "a finalfusion model"),
        (bytes(8) + b"DUCK" + bytes(60), "a DuckDB database"),
        (POINTER, "a Git LFS pointer"),
        (W.tobytes(), r"bare numbers.*numpy\.fromfile"),
    ],
)
def test_files_of_other_tools(head: bytes, cause: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(head)
    with pytest.raises(EmbgeoError, match=cause):
        embgeo.load(tmp_path / "file")


@pytest.mark.parametrize(
    ("entries", "cause"),
    [
        ({"latest": b"global_step10"}, "a DeepSpeed checkpoint.*zero_to_fp32"),
        ({"model.bin": bytes(9), "shared_vocabulary.json": b"[]"}, "a CTranslate2 model"),
        ({"modules.json": b"[]"}, "a SentenceTransformer.*name the folder"),
        ({"models--org--name/refs/main": b"a"}, "a Hugging Face cache"),
        ({"model.safetensors": POINTER}, r"model\.safetensors: is a Git LFS pointer"),
        (
            {
                "a.safetensors": POINTER,
                "model.safetensors.index.json": b'{"weight_map": {"w": "a.safetensors"}}',
            },
            r"the shard a\.safetensors is a Git LFS pointer.*git lfs pull",
        ),
    ],
)
def test_folders_of_other_tools(entries: dict[str, bytes], cause: str, tmp_path: Path) -> None:
    for name, content in entries.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    with pytest.raises(EmbgeoError, match=cause):
        embgeo.load(tmp_path)


def test_an_adapter_is_not_taken_for_an_embedding(tmp_path: Path) -> None:
    names = ("lm_head.lora_A.weight", "embed_tokens.lora_embedding_A")
    path = tmp_path / "adapter_model.safetensors"
    save_file({f"base_model.model.{name}": W for name in names}, path)
    with pytest.raises(EmbgeoError, match=r"an adapter .* and no embedding; merge it"):
        embgeo.load(path)
    saved = {"base_model.model.lm_head.lora_A.weight": W[:9], "base_model.embed_tokens.weight": W}
    save_file(saved, path)
    np.testing.assert_array_equal(embgeo.load(path).data, W)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("token_embedder_tokens.weight", "encoder.layer.weight"),
        ("Embedding-Token/embeddings", "Embedding-Position/embeddings"),
        ("item_embeddings.weight", "user.weight"),
        ("rnn/embedding", "rnn/embedding/Adam"),
    ],
)
def test_names_that_are_known(name: str, other: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **{other: W[:, ::-1], name: W})
    np.testing.assert_array_equal(embgeo.load(tmp_path / "a.npz").data, W)


@pytest.mark.parametrize(
    ("classes", "tied"),
    [(["BertModel"], False), (["XLMRobertaModel"], False), (["GPT2LMHeadModel"], True), ([], True)],
)
def test_a_model_without_an_output_layer_is_not_tied(
    classes: list[str], tied: bool, tmp_path: Path
) -> None:
    save_file({"embeddings.word_embeddings.weight": W}, tmp_path / "model.safetensors")
    configuration = {"tie_word_embeddings": True, "architectures": classes}
    (tmp_path / "config.json").write_text(json.dumps(configuration))
    assert embgeo.load(tmp_path).origin.tied is tied
