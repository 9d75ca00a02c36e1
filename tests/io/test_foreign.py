"""What is said of files and folders of other tools, and names of parameters that are known."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.io.formats.foreign import FOREIGN
from tests.support.refusals import refusal
from tests.support.sampling import each_folder, each_value

W = np.random.default_rng(0).standard_normal((60, 8)).astype("f4")
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 12\n"

#: A file of each kind, by its first bytes.
HEADS = {
    "Git LFS": POINTER,
    "TensorFlow": b"\0\0\x05\x08\1\x12\0\x1a\0",
    "MessagePack": b"\x81\xa1W\xc8\x00\x20\x01\x93\x92\x3c\x08" + bytes(30),
    "OpenVINO": b'<?xml version="1.0"?>\n<net name="Model0" version="11">',
    "for devices": b"\x18\0\0\0ET12" + bytes(60),
    "MXNet": b"\x12\1" + bytes(30),
    "CTranslate2": b"\6\0\0\0\x0f\0TransformerSpec\0",
    "faiss": b"IxFI" + bytes(60),
    "fastText": struct.pack("<12id", 300, 5, 5, 5, 5, 1, 2, 2, 2_000_000, 3, 6, 100, 1e-4),
    "result of embgeo": b'{\n "format": "embgeo.analysis",\n',
    "archive": bytes(257) + b"ustar" + bytes(250),
}
#: A folder with a file of each kind, by its name.
NAMES = {
    "TensorFlow": "model.ckpt.index",
    "Orbax": "manifest.ocdbt",
    "torchsnapshot": ".snapshot_metadata",
    "OpenVINO": "openvino_model.bin",
    "Core ML": "Manifest.json",
    "CTranslate2": "shared_vocabulary.json",
}


@each_value
@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("name", ["file", "v.index"])
def test_files_of_other_tools(kind: str, name: str, tmp_path: Path) -> None:
    """By their bytes, even if the name is that of a file of another tool."""
    (tmp_path / name).write_bytes(HEADS[kind])
    with refusal():
        embgeo.load(tmp_path / name)


def test_folders_that_other_tools_write(tmp_path: Path) -> None:
    for folder, kind in each_folder(tmp_path, NAMES):
        (folder / NAMES[kind]).write_bytes(b"x")
        with refusal():
            embgeo.load(folder)


def test_every_kind_has_a_sign_and_a_sample() -> None:
    for kind in FOREIGN:
        assert kind.head or kind.name
        assert any(word in kind.what for word in (*HEADS, *NAMES)), kind.what


def test_what_is_not_known_names_what_is_read(tmp_path: Path) -> None:
    """No way out leads to garbage: the kind of bare numbers is not guessed."""
    for folder, content in each_folder(
        tmp_path,
        (
            W.tobytes(),
            b"the\nof\n",
            b'{"the":0,"of":1}',
            b'{"\\"":7}',
            b'[["the",0]]',
            b"[[0.5, 1.5]]\n",
            b"the\t12\nof\t9\n",
            b"word\tcount\nthe\t120\nof\t80\n",
            "Wörter, keine Zahlen\n".encode(),
            b"\6\0\0\0\x10\0\0\0" + W.tobytes(),
            b"%PDF-1.7 " + bytes(99),
            b"FEA1" + bytes(100),  # Feather before Arrow
            bytes(range(14, 32)) * 20,
            b'model_checkpoint_path: "model.ckpt-3"\n',
            b"GGUF\x03\0\0\0",
            b"\x89HDF\r\n\x1a\n",
            b"\x1f\x8b",
            b"",
        ),
    ):
        for packed in (content, gzip.compress(content)):
            (folder / "file").write_bytes(packed)
            with refusal():
                embgeo.load(folder / "file")


def test_a_folder_with_a_file_of_another_tool_names_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "empty").touch()
    (tmp_path / "notes.txt").write_text("the\nof\n")
    with refusal():
        embgeo.load(tmp_path)
    (tmp_path / "flax_model.msgpack").write_bytes(HEADS["MessagePack"])
    with refusal():
        embgeo.load(tmp_path)


def test_folders_of_other_tools(tmp_path: Path) -> None:
    for folder, entries in each_folder(
        tmp_path,
        (
            {"latest": b"step", "step/zero_pp_rank_0_mp_rank_00_model_states.pt": b"x"},
            {"zero_pp_rank_0_mp_rank_00_model_states.pt": b"x"},
            *(
                {"config.json": b"{}", "model.bin": bytes(9), name: b"[]"}
                for name in (
                    "shared_vocabulary.json",
                    "shared_vocabulary.txt",
                    "vocabulary.json",
                    "vocabulary.txt",
                    "source_vocabulary.txt",
                )
            ),
            {"modules.json": b"[]", "0_StaticEmbedding/model.safetensors": b"x"},
            {"models--org--name/snapshots/a/model.safetensors": b"a"},
            {"model.safetensors": POINTER},
            {"analysis.json": HEADS["result of embgeo"], "arrays.npz": b"PK"},
            {
                "a.safetensors": POINTER,
                "model.safetensors.index.json": b'{"weight_map": {"w": "a.safetensors"}}',
            },
        ),
    ):
        for name, content in entries.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        with refusal():
            embgeo.load(folder)


def test_a_table_that_R_writes_is_read(tmp_path: Path) -> None:
    """``write.table(x, 'vectors.txt', quote=FALSE, col.names=FALSE)``."""
    lines = (f"w{k} {' '.join(map(str, row))}\n" for k, row in enumerate(W.tolist()))
    (tmp_path / "vectors.txt").write_text("".join(lines))
    np.testing.assert_array_equal(embgeo.load(tmp_path / "vectors.txt").data, W)


def test_an_adapter_is_not_taken_for_an_embedding(tmp_path: Path) -> None:
    names = ("lm_head.lora_A.weight", "embed_tokens.lora_embedding_A")
    path = tmp_path / "adapter_model.safetensors"
    save_file({f"base_model.model.{name}": W for name in names}, path)
    with refusal():
        embgeo.load(path)
    saved = {"base_model.model.lm_head.lora_A.weight": W[:9], "base_model.embed_tokens.weight": W}
    save_file(saved, path)
    np.testing.assert_array_equal(embgeo.load(path).data, W)


def test_names_that_are_known(tmp_path: Path) -> None:
    for folder, (name, other) in each_folder(
        tmp_path,
        (
            ("token_embedder_tokens.weight", "encoder.layer.weight"),
            ("Embedding-Token/embeddings", "Embedding-Position/embeddings"),
            ("item_embeddings.weight", "user.weight"),
            ("rnn/embedding", "rnn/embedding/Adam"),
        ),
    ):
        np.savez(folder / "arrays.npz", **{other: W[:, ::-1], name: W})
        np.testing.assert_array_equal(embgeo.load(folder).data, W)


def test_a_model_without_an_output_layer_is_not_tied(tmp_path: Path) -> None:
    for folder, (classes, tied) in each_folder(
        tmp_path,
        (
            (["BertModel"], False),
            (["XLMRobertaModel"], False),
            (["GPT2LMHeadModel"], True),
            ([], True),
        ),
    ):
        save_file({"embeddings.word_embeddings.weight": W}, folder / "model.safetensors")
        configuration = {"tie_word_embeddings": True, "architectures": classes}
        (folder / "config.json").write_text(json.dumps(configuration))
        assert embgeo.load(folder).origin.tied is tied
