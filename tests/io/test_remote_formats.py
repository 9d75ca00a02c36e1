"""Parts of remote files in each format, of a store in memory: no network is used."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

import embgeo
from embgeo.core.errors import EmbgeoError
from embgeo.core.source import Source
from embgeo.io.remote import ranges
from embgeo.io.remote import tensors as remote_tensors
from embgeo.io.remote.choice import find_names
from embgeo.io.remote.ranges import RemoteFolder
from embgeo.io.remote.stores import StoreFolder
from tests.support.framework_files import needs

fsspec = pytest.importorskip("fsspec")

G = np.random.default_rng(0)
W, U = G.standard_normal((2, 300, 8)).astype(np.float32)
NORM = np.ones(8, np.float32)
LAYER = G.standard_normal((400, 400)).astype(np.float32)
TENSORS = {
    "model.embed_tokens.weight": W,
    "lm_head.weight": U,
    "model.norm.weight": NORM,
    "model.layers.0.mlp.weight": LAYER,
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("EMBGEO_CACHE", str(tmp_path / "own"))
    monkeypatch.setattr(ranges, "WAIT", 0.0)
    memory = fsspec.filesystem("memory")
    yield memory
    memory.store.clear()


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of every range that was read."""
    sizes: list[int] = []
    plain = StoreFolder.stream

    def count(self: RemoteFolder, file: str, start: int, stop: int) -> Iterator[bytes]:
        sizes.append(stop - start)
        return plain(self, file, start, stop)  # type: ignore[arg-type]

    monkeypatch.setattr(StoreFolder, "stream", count)
    return sizes


def refused(name: str, **options: Any) -> str:
    with pytest.raises(EmbgeoError) as caught:
        embgeo.load(name, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def check(name: str) -> embgeo.Matrix:
    matrix = embgeo.load(name)
    assert np.array_equal(np.asarray(matrix.data), W)
    assert matrix.output is not None
    assert np.array_equal(np.asarray(matrix.output.data), U)
    return matrix


def test_safetensors(store: Any, received: list[int]) -> None:
    store.pipe("/run/model.safetensors", save(TENSORS))
    matrix = check("memory://run")
    assert sum(received) < 2 * W.nbytes + ranges.PIECE_BYTES / 1000
    assert matrix.final_norm.name == "model.norm"
    assert (matrix.name, matrix.origin.path) == ("run", "memory://run")
    received.clear()
    check("memory://run")
    assert not received
    assert check("memory://run/model.safetensors").name == "model.safetensors"


def test_types_stay(store: Any) -> None:
    torch = needs("torch")
    from safetensors.torch import save as save_torch

    rows = torch.from_numpy(W)
    for kind in ("bfloat16", "float16", "float8_e4m3fn"):
        stored = save_torch({"embed_tokens.weight": rows.to(getattr(torch, kind))})
        store.pipe(f"/{kind}/model.safetensors", stored)
        matrix = embgeo.load(f"memory://{kind}")
        assert matrix.origin.dtype == kind
        expected = rows.to(getattr(torch, kind)).to(torch.float32).numpy()
        assert np.array_equal(np.asarray(matrix.data).astype(np.float32), expected)


def test_a_changed_file_is_fetched_again(store: Any) -> None:
    store.pipe("/run/model.safetensors", save(TENSORS))
    check("memory://run")
    store.pipe("/run/model.safetensors", save({"embed_tokens.weight": U, "x": W[:9]}))
    assert np.array_equal(np.asarray(embgeo.load("memory://run").data), U)


def test_torch_checkpoints(store: Any, received: list[int]) -> None:
    torch = needs("torch")
    held = io.BytesIO()
    torch.save({name: torch.from_numpy(value) for name, value in TENSORS.items()}, held)
    store.pipe("/run/pytorch_model.bin", held.getvalue())
    matrix = check("memory://run")
    assert matrix.final_norm.name == "model.norm"
    assert sum(received) < 2 * W.nbytes + 100_000 < len(held.getvalue())
    store.pipe("/zipped/pytorch_model.bin", held.getvalue()[:-30])
    assert "memory://zipped: " in refused("memory://zipped")


def test_gguf(store: Any, received: list[int], tmp_path: Path) -> None:
    gguf = needs("gguf")
    kind = gguf.GGMLQuantizationType.Q8_0
    rows = G.standard_normal((300, 64)).astype(np.float32)
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_token_list([f"w{k}" for k in range(300)])
    writer.add_tensor("blk.0.ffn_up.weight", np.ones((8000, 64), np.float32))
    writer.add_tensor("token_embd.weight", gguf.quants.quantize(rows, kind), raw_dtype=kind)
    writer.add_tensor("output.weight", rows.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    data = (tmp_path / "m.gguf").read_bytes()
    store.pipe("/run/m.gguf", data)
    near, far = embgeo.load(tmp_path / "m.gguf"), embgeo.load("memory://run")
    assert np.array_equal(np.asarray(near.data), np.asarray(far.data))
    assert near.tokens == far.tokens
    assert near.output is not None
    assert far.output is not None
    assert np.array_equal(np.asarray(near.output.data), np.asarray(far.output.data))
    assert sum(received) < 700_000 < len(data)


def test_shards_that_are_not_needed_are_not_read(store: Any, received: list[int]) -> None:
    names = {"model.embed_tokens.weight": "a", "lm_head.weight": "c", "model.norm.weight": "c"}
    names["model.layers.0.mlp.weight"] = "b"
    for shard in "abc":
        held = {name: TENSORS[name] for name, of in names.items() if of == shard}
        store.pipe(f"/run/{shard}.safetensors", save(held))
    weight_map = {name: f"{shard}.safetensors" for name, shard in names.items()}
    index = json.dumps({"weight_map": weight_map})
    store.pipe("/run/model.safetensors.index.json", index.encode())
    matrix = check("memory://run")
    assert matrix.final_norm.name == "model.norm"
    assert sum(received) < 2 * W.nbytes + 20_000
    # One that the user names is found in its shard.
    named = embgeo.load("memory://run", tensor="mlp.weight", output="none")
    assert named.n == 400


def test_what_cannot_be_read_in_parts_is_refused(store: Any) -> None:
    store.pipe("/run/vectors.txt", b"a 1 2\nb 3 4\n")
    said = "of the format text vectors, which is not read in parts"
    assert said in refused("memory://run/vectors.txt")
    assert "there are no weights" in refused("memory://run")
    assert "there is no such file" in refused("memory://other")
    fetched = embgeo.fetch("memory://run/vectors.txt", whole=True)
    assert embgeo.load(fetched.folder / "vectors.txt").n == 2
    store.pipe("/two/a.safetensors", save(TENSORS))
    store.pipe("/two/b.safetensors", save(TENSORS))
    assert "several files with tensors" in refused("memory://two")
    assert "memory://two/a.safetensors" in refused("memory://two")


def test_names_of_what_is_needed() -> None:
    """Projections inside of layers are not output projections, whatever they are called."""
    stack = [f"model.layers.{k}.self_attn.out_proj.weight" for k in range(3)]
    known = ["model.embed_tokens.weight", "model.embed_positions.weight", *stack]
    assert find_names(known, Source()) == {"model.embed_tokens.weight"}
    head = ["lm_head.0.weight", "model.norm.weight"]
    assert find_names([*known, *head], Source()) == {"model.embed_tokens.weight", *head}
    assert find_names([*known, *head], Source(output="none")) == {known[0], head[1]}
    assert find_names(known, Source(tensor="1.self_attn.out_proj.weight")) == {stack[1]}
    assert find_names(["layer.a", "layer.b"], Source()) == set()


@pytest.mark.usefixtures("workers_here")
@pytest.mark.slow
def test_a_dataset_of_many_files_is_fetched_whole(store: Any, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for place, rows in enumerate((W[:100], W[100:])):
        column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 8)
        held = io.BytesIO()
        pq.write_table(pa.table({"embedding": column}), held)
        store.pipe(f"/data/part-{place}.parquet", held.getvalue())
    assert "2 Parquet files, which are not read in parts; fetch all" in refused("memory://data")
    fetched = embgeo.fetch("memory://data", tmp_path / "data", whole=True)
    assert len(fetched.source.files) == 2
    assert np.array_equal(np.asarray(embgeo.load(fetched.folder).data), W)


def test_torch_checkpoints_of_old_versions(
    store: Any, received: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = needs("torch")
    monkeypatch.setattr(remote_tensors, "FIRST_BYTES", 4096)
    held = io.BytesIO()
    tensors = {name: torch.from_numpy(value) for name, value in TENSORS.items()}
    tensors["model.layers.0.mlp.weight"] = torch.ones(800, 800)
    tensors["a.transposed.weight"] = torch.ones(3, 2).T
    torch.save(tensors, held, _use_new_zipfile_serialization=False)
    data = held.getvalue()
    store.pipe("/run/pytorch_model.bin", data)
    matrix = check("memory://run")
    assert matrix.final_norm.name == "model.norm"
    assert sum(received) < 2 * W.nbytes + ranges.PIECE_BYTES / 50 < len(data)
    # A storage that begins with another count than the object says.
    at = max(data.index(W.tobytes()), data.index(U.tobytes())) - 8
    store.pipe("/lies/pytorch_model.bin", data[:at] + bytes([1]) + data[at + 1 :])
    assert "does not lie where the file says" in refused("memory://lies")
    store.pipe("/cut/pytorch_model.bin", data[:-30])
    # torch writes storages in the order of their addresses: the last may be smaller than the cut.
    assert re.search("more than the|ends before the storage", refused("memory://cut"))
