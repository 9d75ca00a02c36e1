"""Binary formats: every tensor is what the library that wrote it reads."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.io.formats import pickled, sharded
from tests.support.binary_files import (
    TORCH_DTYPES,
    arrays,
    as_numpy,
    is_mapped,
    npy,
    open_file,
    safetensors_of,
    same_bits,
)
from tests.support.refusals import refusal
from tests.support.sampling import each_folder, each_value


def sparse(path: Path, start: bytes, size: int) -> None:
    """A file of `size` bytes that takes no room on the disk."""
    with path.open("wb") as file:
        file.write(start)
        file.truncate(size)


# numpy


@each_value
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f2", "<f4", ">f4", "f8", "i1", ">i4", "u8", "?", "c8"])
def test_npy(tmp_path: Path, dtype: str, order: Any) -> None:
    array = np.arange(12).reshape(3, 4).astype(dtype, order=order)
    np.save(tmp_path / "a.npy", array)
    checkpoint = open_file(tmp_path / "a.npy")
    made = arrays(checkpoint)[""]
    np.testing.assert_array_equal(made, array)
    assert is_mapped(made)
    assert checkpoint.files == (tmp_path / "a.npy",)


def test_npy_shapes(tmp_path: Path) -> None:
    for folder, shape in each_folder(tmp_path, ((), (0,), (5,), (0, 3), (2, 3, 4))):
        np.save(folder / "a.npy", np.ones(shape))
        assert arrays(open_file(folder / "a.npy"))[""].shape == shape


@each_value
@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L)}",
        '{"shape":(2,3),"fortran_order":False,"descr":"<f4"}',
        "{ 'fortran_order' : False , 'shape' : ( 2 , 3 , ) , 'descr' : '<f4' }",
    ],
)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_npy_headers_of_other_writers(tmp_path: Path, header: str, version: int) -> None:
    body = np.arange(6, dtype="<f4").tobytes()
    for left, notes in ((b"", ()), (b"more", ("4 bytes after the array were not read",))):
        (tmp_path / "a.npy").write_bytes(npy(header, body + left, version))
        checkpoint = open_file(tmp_path / "a.npy")
        assert arrays(checkpoint)[""].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert checkpoint.notes == notes


@pytest.mark.parametrize("compress", [False, True])
def test_npz(tmp_path: Path, compress: bool) -> None:
    matrix = np.arange(12, dtype="f4").reshape(4, 3)
    words = np.array(["a", "né", "<b>", "d"])
    save = np.savez_compressed if compress else np.savez
    save(tmp_path / "a.npz", W=matrix, words=words, k=np.array([{}], dtype=object))
    checkpoint = open_file(tmp_path / "a.npz")
    made = arrays(checkpoint)
    assert list(made) == ["W"]
    np.testing.assert_array_equal(made["W"], matrix)
    assert is_mapped(made["W"]) is not compress
    assert checkpoint.tokens == ("a", "né", "<b>", "d")
    assert checkpoint.tokens_source == "words in the file"
    unread = {t.name: t.problem for t in checkpoint.tensors if t.problem}
    assert list(unread) == ["words", "k"]
    assert "Python objects" in unread["k"]


# pickles


VOCABULARIES: list[tuple[str, object]] = [
    ("id_to_word", {0: "a", 2: "c", 1: "b"}),
    ("word_to_id", {"c": 2, "a": 0, "b": 1}),
    ("word2idx", {"c": 2, "a": 0, "b": 1}),
    ("index2word", ["a", "b", "c"]),
    ("itos", ("a", "b", "c")),
    ("vocab", np.array(["a", "b", "c"])),
    ("index_to_key", [np.str_("a"), np.str_("b"), np.str_("c")]),
]


@each_value
@pytest.mark.parametrize(("key", "words"), VOCABULARIES)
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_pickled_vocabularies(tmp_path: Path, key: str, words: object, protocol: int) -> None:
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps({key: words, "W": np.ones((3, 2))}, protocol=protocol))
    checkpoint = open_file(path)
    assert checkpoint.tokens == ("a", "b", "c")
    assert checkpoint.tokens_source == f"{key} in the file"


def test_vocabularies_in_two_orders_label_nothing(tmp_path: Path) -> None:
    held = {"words": ["b", "a", "c"], "word2id": {"a": 0, "b": 1, "c": 2}, "W": np.ones((3, 2))}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(held))
    matrix = embgeo.load(tmp_path / "a.pkl")
    assert matrix.tokens is None
    assert any("words and word2id in the file" in note for note in matrix.origin.notes)


def test_vocabularies_that_do_not_fit_are_left(tmp_path: Path) -> None:
    for folder, words in each_folder(
        tmp_path,
        (
            ["a", "b"],
            ["a", "b", "c", "d"],
            {0: "a", 1: "b", 3: "c"},
            {"a": 0, "b": 0, "c": 1},
            [1, 2, 3],
            {1: "a"},
        ),
    ):
        (folder / "a.pkl").write_bytes(pickle.dumps({"words": words, "W": np.ones((3, 2))}))
        assert open_file(folder / "a.pkl").tokens is None


@each_value
@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("wrap", [lambda w: w, lambda w: [w], lambda w: {"W": w}, lambda w: (w, w)])
def test_pickles_of_every_protocol_are_recognized(
    tmp_path: Path, wrap: Callable[[Any], object], protocol: int
) -> None:
    (tmp_path / "a").write_bytes(pickle.dumps(wrap(np.ones((40, 30))), protocol=protocol))
    tensor = open_file(tmp_path / "a").tensors[0]
    assert tensor.shape == (40, 30)
    assert is_mapped(tensor.open()) is (protocol >= 3)


def test_text_is_not_taken_for_a_pickle() -> None:
    for text in (
        b"3 2\na 0.1 0.2\n",
        b"( 0.1 0.2\n] 1 2\n",
        b"cat 0.1 0.2\n",
        b"c\t1\n",
        b"i 1 2\n",
    ):
        assert not pickled.sniff(text)


# safetensors


SAFETENSORS_DTYPES = [d for d in TORCH_DTYPES if d != "complex128"]


@pytest.mark.parametrize("dtype", SAFETENSORS_DTYPES)
def test_safetensors_dtypes(torch: Any, tmp_path: Path, dtype: str) -> None:
    library = pytest.importorskip("safetensors.torch")
    bits = (torch.arange(7 * 48, dtype=torch.int64) % 2).to(torch.uint8)
    tensor = bits.view(getattr(torch, dtype)) if dtype != "bool" else bits.bool()
    tensor = tensor.reshape(3, -1)
    library.save_file({"a": tensor, "e": tensor[:0]}, tmp_path / "a", metadata={"format": "pt"})
    read = library.load_file(tmp_path / "a")
    made = arrays(open_file(tmp_path / "a"))
    assert same_bits(made["a"], as_numpy(torch, read["a"]))
    assert made["e"].shape == read["e"].shape
    assert is_mapped(made["a"])


def test_safetensors_unaligned_and_packed(tmp_path: Path) -> None:
    header = {
        "odd": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},
        "w": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [3, 11]},
        "four": {"dtype": "F4", "shape": [4], "data_offsets": [11, 13]},
    }
    expected = np.array([[1, -2], [3, 0.5]], dtype=ml_dtypes.bfloat16)
    (tmp_path / "a").write_bytes(safetensors_of(header, b"abc" + expected.tobytes() + b"\x00\x00"))
    checkpoint = open_file(tmp_path / "a")
    made = arrays(checkpoint)
    np.testing.assert_array_equal(made["w"].astype("f8"), expected.astype("f8"))
    assert list(made) == ["odd", "w"]
    four = checkpoint.tensors[-1]
    assert (four.name, four.shape, "F4" in four.problem) == ("four", (4,), True)


def shard(path: Path, name: str, value: float) -> None:
    header = {name: {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}}
    path.write_bytes(safetensors_of(header, np.full(2, value, "<f4").tobytes()))


def write_index(path: Path, weight_map: dict[str, str]) -> Path:
    path.write_text(json.dumps({"metadata": {"total_size": 16}, "weight_map": weight_map}))
    return path


def test_safetensors_index(tmp_path: Path) -> None:
    shard(tmp_path / "m-1.safetensors", "a.weight", 1)
    shard(tmp_path / "m-2.safetensors", "b.weight", 2)
    index = write_index(
        tmp_path / "model.safetensors.index.json",
        {"b.weight": "m-2.safetensors", "a.weight": "m-1.safetensors"},
    )
    checkpoint = open_file(index)
    assert {n: a.tolist() for n, a in arrays(checkpoint).items()} == {
        "b.weight": [[2], [2]],
        "a.weight": [[1], [1]],
    }
    assert [file.name for file in checkpoint.files] == ["m-2.safetensors", "m-1.safetensors"]
    (tmp_path / "m-1.safetensors").unlink()
    with refusal(UnreadableFile):
        open_file(index)


def test_index_in_the_cache_of_hugging_face(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "m" / "blobs", tmp_path / "m" / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    shard(blobs / "0123", "a", 1)
    (snapshot / "m-1.safetensors").symlink_to(Path("..") / ".." / "blobs" / "0123")
    index = write_index(snapshot / "model.safetensors.index.json", {"a": "m-1.safetensors"})
    assert arrays(open_file(index))["a"].shape == (2, 1)


@pytest.mark.parametrize(
    "name",
    ["../s", "/etc/passwd", "a/../../s", "..", ".", "", "C:\\s", "..\\s", "sub/s", "s\n", "s\x00"],
)
def test_index_that_is_foreign_link_of_the_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    shard(tmp_path / "s", "a", 1)
    with refusal(UnreadableFile):
        open_file(write_index(folder / "i.json", {"a": name}))


def test_index_with_a_link_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    shard(tmp_path / "s", "a", 1)
    (folder / "s").symlink_to(tmp_path / "s")
    with refusal(UnreadableFile):
        open_file(write_index(folder / "i.json", {"a": "s"}))


def test_index_that_names_what_its_shard_lacks(tmp_path: Path) -> None:
    shard(tmp_path / "s", "a", 1)
    with refusal(UnreadableFile):
        open_file(write_index(tmp_path / "i.json", {"a": "s", "b": "s"}))


def test_index_that_puts_a_tensor_into_two_shards(tmp_path: Path) -> None:
    shard(tmp_path / "s", "a", 1)
    shard(tmp_path / "t", "a", 2)
    (tmp_path / "i.json").write_text('{"weight_map": {"a": "s", "a": "t"}}')
    with refusal(UnreadableFile):
        open_file(tmp_path / "i.json")


def test_index_whose_shard_leaves_the_tensor_out(tmp_path: Path) -> None:
    header = {
        "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
        "b": {"dtype": "F4", "shape": [4], "data_offsets": [8, 10]},
    }
    (tmp_path / "s").write_bytes(safetensors_of(header, bytes(10)))
    checkpoint = open_file(write_index(tmp_path / "i.json", {"a": "s", "b": "s"}))
    assert [(tensor.name, "F4" in tensor.problem) for tensor in checkpoint.tensors] == [
        ("a", False),
        ("b", True),
    ]


def test_index_of_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "s.npy", np.ones((2, 2)))
    index = write_index(tmp_path / "i.json", {"a": "s.npy"})
    with refusal(UnreadableFile):
        open_file(index)
    monkeypatch.setattr(sharded, "_LONGEST_INDEX", 10)
    with refusal(UnreadableFile):
        open_file(index)


# Mapped, not read


TWO_GIB = 2**31


def test_large_npy_is_mapped(tmp_path: Path) -> None:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({TWO_GIB // 4},)}}"
    sparse(tmp_path / "a", npy(header), TWO_GIB + 1024)
    assert is_mapped(open_file(tmp_path / "a").tensors[0].open())


def test_large_safetensors_is_mapped(tmp_path: Path) -> None:
    entry = {"dtype": "BF16", "shape": [TWO_GIB // 128, 64], "data_offsets": [0, TWO_GIB]}
    start = safetensors_of({"w": entry}, b"")
    sparse(tmp_path / "a", start, len(start) + TWO_GIB)
    assert is_mapped(open_file(tmp_path / "a").tensors[0].open())


W = np.random.default_rng(0).standard_normal((30, 5)).astype("f4")


def test_arrays_saved_one_after_the_other_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "a.npy").open("wb") as file:
        np.save(file, W)
        np.save(file, 2 * W)
    with refusal(UnreadableFile):
        embgeo.load(tmp_path / "a.npy")


def test_bfloat16_of_paddle(tmp_path: Path) -> None:
    """paddle.save writes a dict of numpy arrays, bfloat16 as uint16."""
    small = W.astype(ml_dtypes.bfloat16)
    state = {
        "embed.weight": small.view("u2"),
        "StructuredToParameterName@@": {"embed.weight": "w_0"},
    }
    (tmp_path / "a.pdparams").write_bytes(pickle.dumps(state, 4))
    matrix = embgeo.load(tmp_path / "a.pdparams")
    np.testing.assert_array_equal(matrix.data, small)
    assert any("read as bfloat16" in note for note in matrix.origin.notes)


@pytest.mark.parametrize("name", ["char_to_ix", "lookup", "mapping"])
def test_numbered_words_label_the_rows_under_any_name(tmp_path: Path, name: str) -> None:
    order = np.random.default_rng(2).permutation(30).tolist()
    numbers = {f"w{k}": k for k in order}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"weights": W, name: numbers}, 4))
    assert embgeo.load(tmp_path / "a.pkl").tokens == tuple(f"w{k}" for k in range(30))
    numbers["w0"] = 1
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"weights": W, name: numbers}, 4))
    assert embgeo.load(tmp_path / "a.pkl").tokens is None
