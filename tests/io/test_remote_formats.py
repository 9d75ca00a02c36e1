"""Parts of remote files in each format, of a store in memory: no network is used."""

from __future__ import annotations

import io
import json
import re
import struct
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

import embgeo
from embgeo.core.errors import EmbgeoError
from embgeo.core.source import Source
from embgeo.io.bounded import zip_members
from embgeo.io.bounded.guard import Damaged
from embgeo.io.remote import ranges
from embgeo.io.remote import tensors as remote_tensors
from embgeo.io.remote.choice import find_names
from embgeo.io.remote.ranges import RemoteFolder
from embgeo.io.remote.stores import StoreFolder
from tests.support.binary_files import archive_of, checkpoint, tensor_program
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


SIX = np.arange(6, dtype="<f4").tobytes()


def deflated(program: bytes, data: bytes = SIX) -> bytes:
    return archive_of({"a/data.pkl": program, "a/data/0": data}, zipfile.ZIP_DEFLATED)


def without_header(archive: bytes) -> bytes:
    """The header of the last member, which the directory points to, is another one."""
    at = archive.rindex(b"PK\x03\x04")
    return archive[:at] + b"XXXX" + archive[at + 4 :]


def with_sparse(program: bytes) -> bytes:
    """A second tensor, whose type is not known."""
    more = b"X\x01\x00\x00\x00xctorch._utils\n_rebuild_sparse_tensor\n)Rs."
    return program[:-1] + more


TORCH = {
    "big-endian": (checkpoint(tensor_program(), SIX, byteorder=b"big"), "not of little-endian"),
    "deflated": (deflated(tensor_program()), "is compressed, or implausibly long; fetch all"),
    "no member header": (without_header(checkpoint(tensor_program(), SIX)), "does not start where"),
    "checksum": (
        checkpoint(tensor_program(), SIX).replace(b"FloatStorage", b"HalfStorages", 1),
        "does not match its checksum",
    ),
    "longer than its storage": (
        checkpoint(tensor_program(shape=b"K\x02K\x04\x86"), SIX),
        "beyond its storage",
    ),
    "rows that do not lie one behind the other": (
        checkpoint(tensor_program(strides=b"K\x01K\x02\x86"), SIX),
        "the bytes of w do not lie in one piece; fetch all of it",
    ),
}


@pytest.mark.parametrize("case", TORCH)
def test_torch_checkpoints_that_lie_are_refused(store: Any, case: str) -> None:
    content, cause = TORCH[case]
    store.pipe("/run/pytorch_model.bin", content)
    said = refused("memory://run")
    assert said.startswith("memory://run: ")
    assert cause in said


def test_a_transposed_embedding_is_not_passed_over(store: Any) -> None:
    """Of an old checkpoint, too: another tensor would be analyzed in its place."""
    torch = needs("torch")
    for place in (True, False):
        held = io.BytesIO()
        state = {"embed_tokens.weight": torch.ones(8, 300).T, "proj.weight": torch.ones(300, 8)}
        torch.save(state, held, _use_new_zipfile_serialization=place)
        store.pipe(f"/{place}/pytorch_model.bin", held.getvalue())
        assert "the bytes of embed_tokens.weight do not lie in one" in refused(f"memory://{place}")
        assert embgeo.load(f"memory://{place}", tensor="proj.weight", output="none").n == 300


def test_of_a_torch_checkpoint_tensors_of_unknown_kinds_are_left(store: Any) -> None:
    content = checkpoint(with_sparse(tensor_program()), SIX, byteorder=b"little")
    store.pipe("/run/pytorch_model.bin", content)
    assert embgeo.load("memory://run").data.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_directories_of_absurd_length(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store.pipe("/run/pytorch_model.bin", checkpoint(tensor_program(), SIX))
    monkeypatch.setattr(zip_members, "LARGEST_DIRECTORY", 50)
    assert "implausibly many members" in refused("memory://run")


def gguf_of(version: int, order: str, names: tuple[str, ...] = ("token_embd.weight",)) -> bytes:
    """Tensors of 2 × 3 zeros, of which the last is one of whole numbers."""
    head = b"GGUF" + struct.pack(order + "IQQ", version, len(names), 0)
    for place, name in enumerate(names):
        kind = 26 if place else 0
        text = struct.pack(order + "Q", len(name)) + name.encode()
        head += text + struct.pack(order + "IQQIQ", 2, 3, 2, kind, 32 * place)
    return head + bytes(-len(head) % 32) + bytes(32 * len(names))


def test_gguf_of_other_byte_orders_and_types(store: Any) -> None:
    store.pipe("/big/m.gguf", gguf_of(3, ">"))
    assert "is of big-endian byte order; fetch all of it" in refused("memory://big")
    store.pipe("/run/m.gguf", gguf_of(3, "<", ("token_embd.weight", "ids")))
    assert embgeo.load("memory://run").data.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert [one.name for one in embgeo.inspect("memory://run").tensors] == ["token_embd.weight"]


def test_an_index_that_puts_a_tensor_elsewhere_is_refused(store: Any) -> None:
    store.pipe("/run/a.safetensors", save({"x": LAYER}))
    weight_map = {"model.embed_tokens.weight": "a.safetensors", "x": "b.safetensors"}
    store.pipe("/run/model.safetensors.index.json", json.dumps({"weight_map": weight_map}).encode())
    assert "names the shard b.safetensors, which is not there" in refused("memory://run")
    assert "b.safetensors, which is not there" in refused_fetch("memory://run", whole=True)
    store.pipe("/run/b.safetensors", save({"x": LAYER}))
    said = "puts model.embed_tokens.weight into a shard that does not hold it"
    assert said in refused("memory://run")


def refused_fetch(name: str, **options: Any) -> str:
    with pytest.raises(EmbgeoError) as caught:
        embgeo.fetch(name, **options)
    return str(caught.value)


def test_names_that_leave_the_folder_are_not_listed(store: Any) -> None:
    store.pipe("/run/model.safetensors", save(TENSORS))
    store.pipe("/run/..\\..\\config.json", b"{}")
    assert list(StoreFolder("memory://run").files) == ["model.safetensors"]


def test_a_large_side_file_is_refused(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store.pipe("/run/model.safetensors", save(TENSORS))
    store.pipe("/run/config.json", b" " * 101)
    monkeypatch.setattr(ranges, "JSON_BYTES", 100)
    assert "config.json has 101 bytes, which is implausible" in refused("memory://run")


def test_what_a_store_refuses_is_said_in_one_line(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.pipe("/run/model.safetensors", b"")
    assert "no file of a known size is there" in refused("memory://run")
    store.pipe("/run/model.safetensors", save(TENSORS))
    for error, cause in (
        (PermissionError(13, "no"), "permission to read it is denied; check the credentials"),
        (ImportError("no module s3fs"), "memory:// needs a package of fsspec that is not"),
        (ConnectionError("reset\nby peer"), "(ConnectionError: reset by peer); check the name and"),
        (ValueError(), "(ValueError: ValueError); check the name and"),
    ):

        def fail(*_: Any, _error: Exception = error, **__: Any) -> None:
            raise _error

        monkeypatch.setattr(type(store), "info", fail)
        assert cause in refused("memory://run")


def test_without_fsspec_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    assert "an extra package; pip install 'embgeo[remote]'" in refused("memory://run")


@pytest.mark.parametrize(
    ("answer", "cause"),
    [(b"too much", "sends more of f than it was asked for"), (b"", "f ends early, 4 times")],
)
def test_ranges_are_as_long_as_asked_for(
    answer: bytes, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "WAIT", 0.0)
    folder: Any = SimpleNamespace(
        files={"f": ranges.RemoteFile(4)}, stream=lambda *_: iter([answer])
    )
    with pytest.raises(Damaged, match=cause):
        ranges.read_range(folder, "f", 0, 3)
    with pytest.raises(Damaged, match="f promises bytes beyond its end"):
        ranges.read_range(folder, "f", 0, 5)
