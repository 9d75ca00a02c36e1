"""HDF5, ONNX, Flax and TensorFlow: the numbers that each format's own library reads.

Flax's files are written with msgpack by the rules of ``flax.serialization``, TensorFlow's by hand.
Both libraries are too large to be installed for this: test_large_frameworks.py compares with what
they write themselves, where they are there.
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.io import open_checkpoint
from embgeo.io.formats import flax as flax_msgpack
from embgeo.io.formats.tensorflow import name_and_start
from tests.support.framework_files import (
    D,
    N,
    W,
    bundle_header,
    field,
    flax_array,
    flax_bytes,
    flax_chunks,
    is_mapped,
    needs,
    slice_name,
    table_of,
    values,
    variable,
)
from tests.support.sampling import sample_cases

# HDF5


def keras_file(target: Any) -> None:
    h5py = needs("h5py")
    with h5py.File(target, "w") as file:
        file["model_weights/embedding/model/embedding/embeddings:0"] = W
        file["model_weights/dense/model/dense/kernel:0"] = W.T * 2
        file["model_weights/dense/model/dense/bias:0"] = W[:, 0]
        file["optimizer_weights/Adam/m/embedding/embeddings:0"] = W


@pytest.mark.slow
def test_keras_h5(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    keras_file(path)
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.origin.tensor == "model_weights/embedding/model/embedding/embeddings:0"
    assert "not read, because it is the optimizer's state: optimizer_weights" in matrix.origin.notes
    assert is_mapped(open_checkpoint(path).tensors[0].open())


@pytest.mark.usefixtures("workers_here")
@pytest.mark.slow
def test_keras_archive(tmp_path: Path) -> None:
    h5py = needs("h5py")
    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        file["layers/embedding/vars/0"] = W
        file["layers/dense/vars/0"] = W.T
        file["optimizer/vars/0"] = W
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", '{"keras_version": "3.9.0"}')
        archive.writestr("config.json", '{"class_name": "Functional"}')
        archive.writestr("model.weights.h5", weights.getvalue())
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    assert (matrix.origin.tensor, matrix.origin.format) == ("layers/embedding/vars/0", "HDF5, zip")


STORED = {
    "contiguous": {},
    "chunked": {"chunks": (7, 3)},
    "gzip": {"chunks": (7, 3), "compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf"},
}


@pytest.mark.parametrize(
    ("storage", "dtype"), sample_cases(product(STORED, ("<f4", ">f4", "<f8", "<f2", ">i4")), 3)
)
@pytest.mark.usefixtures("workers_here")
@pytest.mark.slow
def test_hdf5_storage(tmp_path: Path, storage: str, dtype: str) -> None:
    options = STORED[storage]
    h5py = needs("h5py")
    path = tmp_path / "w.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("w", data=(10 * W).astype(dtype), **options)
        expected = file["w"][...]
    array = values(open_checkpoint(path))["w"]
    np.testing.assert_array_equal(array, expected)
    assert is_mapped(array) == (not options)


@pytest.mark.usefixtures("workers_here")
@pytest.mark.slow
def test_hdf5_shapes_types_and_words(tmp_path: Path) -> None:
    h5py = needs("h5py")
    path = tmp_path / "w.h5"
    words = [f"wörd{k}" for k in range(N)]
    with h5py.File(path, "w", libver="latest") as file:
        file["vectors"] = W
        file["words"] = words
        file["same"] = file["vectors"]
        file["scalar"], file["none"], file["empty"] = 3.5, np.zeros((0, 3)), h5py.Empty("f4")
        kept = file.create_dataset("bf", data=W.astype(ml_dtypes.bfloat16).view("V2"))
        kept.attrs["dtype"] = "bfloat16"
        file["text"], file["opaque"] = "hello", np.zeros(3, dtype="V5")
    checkpoint = open_checkpoint(path)
    found = values(checkpoint)
    assert set(found) == {"vectors", "same", "scalar", "none", "bf"}
    np.testing.assert_array_equal(found["bf"], W.astype(ml_dtypes.bfloat16))
    assert float(found["scalar"]) == 3.5
    assert {t.name: t.alias_of for t in checkpoint.tensors}["vectors"] == "same"
    assert checkpoint.tokens == tuple(words)


@pytest.mark.usefixtures("workers_here")
@pytest.mark.slow
@pytest.mark.parametrize("precision", [8, 12])
def test_hdf5_numbers_of_fewer_bits_than_their_bytes(tmp_path: Path, precision: int) -> None:
    """h5py calls them int16, and the library converts them; they cannot be mapped."""
    import h5py

    path, W = tmp_path / "a.h5", np.arange(-6, 6, dtype="<i2").reshape(4, 3)
    kind = h5py.h5t.STD_I16LE.copy()
    kind.set_precision(precision)
    kind.set_offset(2)
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple(W.shape)
        h5py.h5d.create(file.id, b"w", kind, space).write(space, space, W)
    (tensor,) = open_checkpoint(path).tensors
    np.testing.assert_array_equal(tensor.open(), W)


def test_pandas_frame(tmp_path: Path) -> None:
    """As pandas' fixed format lays a frame out: labels of fixed width, numbers in a block."""
    h5py = needs("h5py")
    path = tmp_path / "mini.h5"
    with h5py.File(path, "w") as file:
        file["mat/axis0"] = np.arange(D)
        file["mat/axis1"] = np.array([f"/c/en/{k}".encode() for k in range(N)])
        file["mat/block0_values"] = W
    matrix = embgeo.load(path)
    assert matrix.tokens == tuple(f"/c/en/{k}" for k in range(N))
    np.testing.assert_array_equal(matrix.data, W)


def test_hdf5_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.h5"
    path.write_bytes(b"\x89HDF\r\n\x1a\n")
    present = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "h5py" else present(name)
    )
    with pytest.raises(UnreadableFile, match=r"pip install 'embgeo\[hdf5\]'"):
        open_checkpoint(path)


# ONNX


def onnx_model(path: Path, **saving: Any) -> dict[str, np.ndarray]:
    """A model saved by the onnx package, and its initializers as that package reads them."""
    onnx = needs("onnx")
    from onnx import TensorProto, helper, numpy_helper

    small = W.astype(ml_dtypes.bfloat16)
    initializers = [
        numpy_helper.from_array(W, "model.embed_tokens.weight"),
        numpy_helper.from_array(2 * W.astype("f8"), "lm_head.weight"),
        numpy_helper.from_array(W.astype("f2"), "half"),
        numpy_helper.from_array(small, "brain"),
        numpy_helper.from_array(np.arange(3), "whole"),
        helper.make_tensor("floats", TensorProto.FLOAT, [N, D], W.reshape(-1).tolist()),
        helper.make_tensor("doubles", TensorProto.DOUBLE, [N, D], W.reshape(-1).tolist()),
        helper.make_tensor("words", TensorProto.STRING, [2], [b"a", b"b"]),
        helper.make_tensor("listed", TensorProto.FLOAT16, [2], [1.5, 2.5]),
    ]
    graph = helper.make_graph([], "g", [], [], initializer=initializers)
    onnx.save(helper.make_model(graph, producer_name="pytorch"), path, **saving)
    read = {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
    del read["words"], read["listed"]
    return read


@pytest.mark.parametrize("external", [False, True])
def test_onnx(tmp_path: Path, external: bool) -> None:
    path = tmp_path / "model.onnx"
    saving = {"save_as_external_data": True, "location": "model.data", "size_threshold": 0}
    expected = onnx_model(path, **(saving if external else {}))
    checkpoint = open_checkpoint(path)
    found = values(checkpoint)
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name].astype("f8"), array.astype("f8"))
        assert found[name].dtype.name == array.dtype.name
        assert is_mapped(found[name])
    assert [file.name for file in checkpoint.files] == [
        "model.onnx",
        *(["model.data"] if external else []),
    ]
    assert "not read, because it holds strings: words" in checkpoint.notes
    matrix = embgeo.load(path)
    assert matrix.origin.tensor == "model.embed_tokens.weight"
    assert matrix.output is not None


# Flax


def test_flax(tmp_path: Path) -> None:
    needs("msgpack")
    path = tmp_path / "flax_model.msgpack"
    tree = {
        "transformer": {
            "wte": {"embedding": flax_array(W)},
            "wpe": {"embedding": flax_array(W[:5])},
            "h": {"0": {"kernel": flax_array(W[:8].astype(ml_dtypes.bfloat16))}},
        },
        "lm_head": {"kernel": flax_array(np.ascontiguousarray(2 * W.T))},
        "step": 3,
        "rate": 0.5,
        "names": ["a", None, True, -1, 2**40, b"bytes"],
    }
    path.write_bytes(flax_bytes({"params": tree}))
    found = values(open_checkpoint(path))
    assert {name: array.dtype.name for name, array in found.items()} == {
        "params.transformer.wte.embedding": "float32",
        "params.transformer.wpe.embedding": "float32",
        "params.transformer.h.0.kernel": "bfloat16",
        "params.lm_head.kernel": "float32",
    }
    assert all(map(is_mapped, found.values()))
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.output is not None
    np.testing.assert_array_equal(matrix.output.data, 2 * W)


@pytest.mark.parametrize("step", [3, 2.5, None, True, "text", b"bytes", [1, 2], {}])
def test_what_comes_before_the_first_array(tmp_path: Path, step: object) -> None:
    """A TrainState begins with the number of its step."""
    needs("msgpack")
    path = tmp_path / "state"
    tree = {"step": step, "params": {"embed": {"embedding": flax_array(W)}, "b": 1}}
    path.write_bytes(flax_bytes(tree))
    np.testing.assert_array_equal(embgeo.load(path).data, W)
    assert not flax_msgpack.sniff(flax_bytes({"step": step, "params": {"a": 1}}))


@pytest.mark.parametrize("size", [1, 7, N * D, 10**6])
def test_flax_chunks(tmp_path: Path, size: int) -> None:
    needs("msgpack")
    path = tmp_path / "chunked"
    path.write_bytes(flax_bytes({"a": {"b": flax_array(W[0])}, "c": flax_chunks(W, size)}))
    np.testing.assert_array_equal(values(open_checkpoint(path))["c"], W)


# TensorFlow


def bundle(
    folder: Path,
    variables: Mapping[str | bytes, np.ndarray],
    *,
    big: bool = False,
    more: Mapping[bytes, bytes] | None = None,
) -> Path:
    """A checkpoint of one data file; `more` are entries without numbers."""
    entries = [(b"", bundle_header(big_endian=big))]
    data = b""
    kinds = {"float32": 1, "float64": 2, "int64": 9, "bfloat16": 14, "float16": 19}
    arrays = {k.encode() if isinstance(k, str) else k: array for k, array in variables.items()}
    for name, array in arrays.items():
        kind = kinds[array.dtype.name]
        entry = variable(array.shape, len(data), array.nbytes, kind=kind)
        entries.append((name, entry))
        data += array.astype(array.dtype.newbyteorder(">")).tobytes() if big else array.tobytes()
    (folder / "model.ckpt.data-00000-of-00001").write_bytes(data)
    path = folder / "model.ckpt.index"
    path.write_bytes(table_of(sorted([*entries, *(more or {}).items()])))
    return path


def test_tensorflow_1(tmp_path: Path) -> None:
    path = bundle(
        tmp_path,
        {
            "bert/embeddings/position_embeddings": W[:9],
            "bert/embeddings/word_embeddings": W,
            "bert/embeddings/word_embeddings/adam_m": W,
            "bert/encoder/layer_0/kernel": W[:8].astype("f8"),
            "global_step": np.array(7),
            "half": W.astype("f2"),
            "brain": W.astype(ml_dtypes.bfloat16),
        },
    )
    checkpoint = open_checkpoint(path)
    found = values(checkpoint)
    assert len(found) == 7
    np.testing.assert_array_equal(found["bert/encoder/layer_0/kernel"], W[:8].astype("f8"))
    np.testing.assert_array_equal(found["brain"], W.astype(ml_dtypes.bfloat16))
    assert int(found["global_step"]) == 7
    assert all(map(is_mapped, found.values()))
    assert [file.suffix for file in checkpoint.files] == [".index", ".data-00000-of-00001"]
    assert embgeo.load(path).origin.tensor == "bert/embeddings/word_embeddings"
    assert embgeo.load(tmp_path).origin.tensor == "bert/embeddings/word_embeddings"
    with pytest.raises(UnreadableFile, match="numbers of a TensorFlow checkpoint; name the file"):
        embgeo.load(tmp_path / "model.ckpt.data-00000-of-00001")


def test_tensorflow_2(tmp_path: Path) -> None:
    ending = "/.ATTRIBUTES/VARIABLE_VALUE"
    slot = f"layer-0/embeddings/.OPTIMIZER_SLOT/optimizer/m{ending}"
    path = bundle(tmp_path, {f"layer-0/embeddings{ending}": W, slot: W, f"d/kernel{ending}": W.T})
    matrix = embgeo.load(path)
    assert matrix.origin.tensor == "layer-0/embeddings"
    np.testing.assert_array_equal(matrix.data, W)


@pytest.mark.parametrize("big", [False, True])
def test_variables_in_slices_are_put_together(tmp_path: Path, big: bool) -> None:
    wide = np.hstack([W, 2 * W])
    rows, columns = [(0, 7), (7, N - 7)], [(0, D), (D, D)]
    parts = {
        slice_name("embedding/part", row, column): wide[row[0] : sum(row), column[0] : sum(column)]
        for row in rows
        for column in columns
    }
    data = {name: np.ascontiguousarray(part) for name, part in parts.items()}
    whole = variable(wide.shape, 0, 0, more=field(7, b""))
    path = bundle(tmp_path, {b"plain": W, **data}, big=big, more={b"embedding/part": whole})
    found = values(open_checkpoint(path))
    assert list(found) == ["embedding/part", "plain"]
    np.testing.assert_array_equal(found["embedding/part"], wide)
    assert not found["embedding/part"].flags.writeable


def test_a_slice_over_all_there_is() -> None:
    # As TensorFlow 2.21 writes them.
    key = b"\0part\0\1\1\2\xc0\xc9\xc0d\x80\x90"
    assert name_and_start(key) == (b"part", (201, 0))
    assert key == slice_name("part", (201, 100), (0, 16))
    assert name_and_start(slice_name("w", (0, -1), (2**40, 2**50))) == (b"w", (0, 2**40))


def test_tensorflow_checkpoints_are_named_without_an_ending(tmp_path: Path) -> None:
    bundle(tmp_path, {"w": W})
    matrix = embgeo.load(tmp_path / "model.ckpt")
    assert matrix.origin.format == "TensorFlow checkpoint"
    np.testing.assert_array_equal(matrix.data, W)


def test_saved_models_and_foreign_folders(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01\x12\x00")
    with pytest.raises(UnreadableFile, match="no model weights"):
        embgeo.load(tmp_path)
    (tmp_path / "variables").mkdir()
    made = bundle(tmp_path / "variables", {"w": W})
    made.rename(made.with_name("variables.index"))
    data = made.with_name("model.ckpt.data-00000-of-00001")
    data.rename(data.with_name("variables.data-00000-of-00001"))
    np.testing.assert_array_equal(embgeo.load(tmp_path).data, W)
    with pytest.raises(UnreadableFile, match=r"SavedModel.*name the folder"):
        embgeo.load(tmp_path / "saved_model.pb")
    orbax = tmp_path / "checkpoint_0"
    orbax.mkdir()
    (orbax / "manifest.ocdbt").write_bytes(b"\x0c\xdb:*s\0")
    with pytest.raises(UnreadableFile, match=r"Orbax checkpoint of JAX.*flax.serialization"):
        embgeo.load(orbax)


def test_tensorflow_of_the_other_byte_order(tmp_path: Path) -> None:
    found = values(open_checkpoint(bundle(tmp_path, {"w": W, "x": W.astype("f8")}, big=True)))
    np.testing.assert_array_equal(found["w"], W)
    np.testing.assert_array_equal(found["x"], W.astype("f8"))
