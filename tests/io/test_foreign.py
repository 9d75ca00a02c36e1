"""What is said of files and folders of other tools: what they are, and a way out that works."""

from __future__ import annotations

import gzip
import io
import json
import shlex
import shutil
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.errors import EmbgeoError
from tests.support.torch_files import SYSTEM, Named, Stored, pickle_value, tar

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


def test_a_folder_with_a_file_of_another_tool_names_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "empty").touch()
    (tmp_path / "notes.txt").write_text("the\nof\n")
    with pytest.raises(EmbgeoError, match="no model weights in this folder"):
        embgeo.load(tmp_path)
    (tmp_path / "flax_model.msgpack").write_bytes(
        b"\x81\xa1W\xc8\x00\x20\x01\x93\x92\x3c\x08" + bytes(30)
    )
    with pytest.raises(EmbgeoError, match=r"flax_model\.msgpack: is a msgpack file of Flax"):
        embgeo.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('{"the":0,"of":1}', "is JSON that names no shards"),
        ('[["the",0]]', "is JSON that names no shards"),
        ("[PAD]\n[UNK]\nthe\n", "is text without vectors"),
        ("{the\nof\n", "is text without vectors"),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_vocabularies_and_json(
    text: str, cause: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(pack(text.encode()))
    with pytest.raises(EmbgeoError, match=cause) as caught:
        embgeo.load(tmp_path / "file")
    assert "--tokens" in caught.value.command_line_text
    assert "--" not in str(caught.value)
    assert "embgeo-" not in caught.value.command_line_text


@pytest.mark.parametrize(
    ("entries", "cause"),
    [
        (
            {"latest": b"step", "step/zero_pp_rank_0_mp_rank_00_model_states.pt": b"x"},
            "no model weights in this folder, but in step; name it: .*step$",
        ),
        (
            {"zero_pp_rank_0_mp_rank_00_model_states.pt": b"x"},
            "no model weights in this folder",
        ),
        *(
            ({"config.json": b"{}", "model.bin": bytes(9), name: b"[]"}, "a CTranslate2 model")
            for name in (
                "shared_vocabulary.json",
                "shared_vocabulary.txt",
                "vocabulary.json",
                "vocabulary.txt",
                "source_vocabulary.txt",
            )
        ),
        (
            {"modules.json": b"[]", "0_StaticEmbedding/model.safetensors": b"x"},
            "but in 0_StaticEmbedding; name it: .*/0_StaticEmbedding$",
        ),
        (
            {"models--org--name/snapshots/a/model.safetensors": b"a"},
            "name it: .*/models--org--name/snapshots/a$",
        ),
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


# The ways out


def way_out(path: Path) -> str:
    with pytest.raises(EmbgeoError) as caught:
        embgeo.load(path)
    assert "\n" not in str(caught.value)
    return caught.value.way_out


def run(folder: Path, command: str, **names: str) -> None:
    """Run the command at the end of a way out, with `names` in place of its capitals."""
    command = command.partition(", then ")[0].removeprefix("unpack it: ")
    command = command.removeprefix("if you trust it: ").removeprefix("export the table: ")
    for name, value in names.items():
        command = command.replace(name, value)
    command = command.replace("python -c", f"{shlex.quote(sys.executable)} -W ignore -c")
    subprocess.run(command, shell=True, check=True, cwd=folder, capture_output=True)


def needs(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed")


def torch_tar(folder: Path) -> Path:
    """As torch 0.1 wrote it: pickles and numbers in a tar archive."""
    needs("torch")
    key = ("w", "cpu", Named("torch.FloatStorage"))
    tensor = pickle_value(1) + pickle_value((1, "w", Named("torch.FloatTensor")))
    parts = {
        "sys_info": pickle_value(SYSTEM),
        "pickle": pickle_value({"w": Stored(1)}),
        "tensors": tensor + struct.pack("<ii5q", 2, 0, *W.shape, W.shape[1], 1, 0),
        "storages": pickle_value(1) + pickle_value(key) + struct.pack("<q", W.size) + W.tobytes()
        + pickle_value([]),
    }  # fmt: skip
    (folder / "file").write_bytes(tar(parts))
    return folder / "file"


def glove(folder: Path) -> Path:
    parts = np.stack([np.hstack([W / 4, W[:, :1]]), np.hstack([W * 3 / 4, W[:, :1]])])
    parts.astype("f8").tofile(folder / "vectors.bin")
    (folder / "vocab.txt").write_text("".join(f"w{k} {90 - k}\n" for k in range(60)))
    return folder / "vectors.bin"


def matlab(folder: Path) -> Path:
    needs("scipy.io").savemat(folder / "file", {"M": W})
    return folder / "file"


def new_matlab(folder: Path) -> Path:
    with needs("h5py").File(folder / "file", "w", userblock_size=512) as file:
        file["M"] = W.T  # MATLAB stores columns
    with (folder / "file").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file")
    return folder / "file"


def joblib_file(folder: Path) -> Path:
    needs("joblib").dump(W, folder / "file", compress=True)
    return folder / "file"


def numbers(folder: Path) -> Path:
    W.tofile(folder / "file")
    return folder / "file"


def packed(folder: Path, module: str) -> Path:
    (folder / "file").write_bytes(needs(module).compress(npy_bytes()))
    return folder / "file"


def npy_bytes() -> bytes:
    out = io.BytesIO()
    np.save(out, W)
    return out.getvalue()


def database(folder: Path) -> Path:
    if shutil.which("sqlite3") is None:
        pytest.skip("sqlite3 is not installed")
    with sqlite3.connect(folder / "file") as base:
        base.execute(f"CREATE TABLE M (word, {', '.join(f'd{k} REAL' for k in range(8))})")
        rows = ([f"w{k}", *row.tolist()] for k, row in enumerate(W))
        base.executemany(f"INSERT INTO M VALUES ({', '.join('?' * 9)})", rows)
    base.close()
    return folder / "file"


def duck(folder: Path) -> Path:
    needs("pyarrow")
    with needs("duckdb").connect(str(folder / "file")) as base:
        base.execute("CREATE TABLE M (word VARCHAR, vector FLOAT[8])")
        rows = [[f"w{k}", row.tolist()] for k, row in enumerate(W)]
        base.executemany("INSERT INTO M VALUES (?, ?)", rows)
    return folder / "file"


def index(folder: Path) -> Path:
    faiss = needs("faiss")
    made = faiss.IndexFlatL2(8)
    made.add(W)
    faiss.write_index(made, str(folder / "file"))
    return folder / "file"


def zarr_folder(folder: Path) -> Path:
    needs("zarr").save(folder / "file", W)
    return folder / "file"


def flax(folder: Path) -> Path:
    tree = {"step": 3, "params": {"embed": {"embedding": W}, "b": None}}
    content = needs("flax.serialization").msgpack_serialize(tree)
    (folder / "file").write_bytes(content)
    return folder / "file"


def orbax(folder: Path) -> Path:
    needs("flax")
    keeper = needs("orbax.checkpoint").PyTreeCheckpointer()
    keeper.save(folder / "file", {"params": {"embed": {"embedding": W}}})
    return folder / "file"


def tensorflow_1(folder: Path, version: int = 2) -> Path:
    tensorflow = needs("tensorflow")
    v1 = tensorflow.compat.v1
    with tensorflow.Graph().as_default(), v1.Session() as session:
        v1.get_variable("bert/embeddings/word_embeddings", initializer=W)
        session.run(v1.global_variables_initializer())
        v1.train.Saver(write_version=version).save(session, str(folder / "model.ckpt"))
    return folder / ("model.ckpt.index" if version == 2 else "model.ckpt")


def tensorflow_2(folder: Path) -> Path:
    tensorflow = needs("tensorflow")
    made = tensorflow.train.Checkpoint(embedding=tensorflow.Variable(W))
    made.save(str(folder / "file" / "ckpt"))
    return folder / "file"


def saved_model(folder: Path) -> Path:
    tensorflow = needs("tensorflow")
    module = tensorflow.Module()
    module.embedding = tensorflow.Variable(W)
    tensorflow.saved_model.save(module, str(folder / "file"))
    return folder / "file"


@pytest.mark.parametrize(
    ("make", "result", "names"),
    [
        (torch_tar, "new.pt", {}),
        (glove, "a.npy", {}),
        (matlab, "a.npy", {"NAME": "M"}),
        (new_matlab, "a.npy", {"NAME": "M"}),
        (joblib_file, "a.npy", {}),
        (numbers, "a.npy", {"DTYPE": "'f4'", "ROWS": "60", "COLUMNS": "8"}),
        (partial(packed, module="bz2"), "unpacked", {}),
        (partial(packed, module="lzma"), "unpacked", {}),
        (database, "table.csv", {"TABLE": "M"}),
        (duck, "table.parquet", {"TABLE": "M"}),
        (index, "a.npy", {}),
        (zarr_folder, "a.npy", {}),
        (flax, "model.safetensors", {}),
        (orbax, "model.safetensors", {}),
        (tensorflow_1, "model.npz", {}),
        (partial(tensorflow_1, version=1), "model.npz", {}),
        (tensorflow_2, "model.npz", {}),
        (saved_model, "model.npz", {}),
    ],
    ids=lambda value: getattr(value, "__name__", None) or getattr(value, "keywords", None),
)
@pytest.mark.slow
def test_the_way_out_leads_to_the_matrix(
    make: Callable[[Path], Path], result: str, names: dict[str, str], tmp_path: Path
) -> None:
    run(tmp_path, way_out(make(tmp_path)), **names)
    np.testing.assert_allclose(embgeo.load(tmp_path / result).data, W, rtol=1e-6)


def test_the_vocabulary_of_glove_labels_the_converted_matrix(tmp_path: Path) -> None:
    said = way_out(glove(tmp_path))
    run(tmp_path, said)
    assert said.endswith("then counts")
    matrix = embgeo.load(tmp_path / "a.npy", counts=tmp_path / "vocab.txt")
    assert matrix.tokens == tuple(f"w{k}" for k in range(60))
    assert matrix.frequency is not None
    assert matrix.frequency.counts[0] == 90


def test_a_table_that_R_writes_is_read(tmp_path: Path) -> None:
    """``write.table(x, 'vectors.txt', quote=FALSE, col.names=FALSE)``."""
    lines = (f"w{k} {' '.join(map(str, row))}\n" for k, row in enumerate(W.tolist()))
    (tmp_path / "vectors.txt").write_text("".join(lines))
    np.testing.assert_array_equal(embgeo.load(tmp_path / "vectors.txt").data, W)


def test_an_odd_name_is_not_put_into_a_command(tmp_path: Path) -> None:
    odd = tmp_path / "a'; touch CANARY; '.bin"
    W.tofile(odd)
    assert "CANARY" not in way_out(odd)


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
