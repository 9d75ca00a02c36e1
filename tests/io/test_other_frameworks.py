"""HDF5 and ONNX: the numbers that each format's own library reads."""

from __future__ import annotations

import importlib.util
import io
import zipfile
from itertools import product
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.files.maps import TEXT
from embgeo.io.load import open_checkpoint
from tests.support.binary_files import arrays, is_mapped
from tests.support.framework_files import D, N, W, needs
from tests.support.refusals import refusal
from tests.support.sampling import sample_cases

# HDF5


@pytest.mark.slow
def test_keras_h5(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    with needs("h5py").File(path, "w") as file:
        file["model_weights/embedding/model/embedding/embeddings:0"] = W
        file["model_weights/dense/model/dense/kernel:0"] = W.T * 2
        file["model_weights/dense/model/dense/bias:0"] = W[:, 0]
        file["optimizer_weights/Adam/m/embedding/embeddings:0"] = W
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.origin.tensor == "model_weights/embedding/model/embedding/embeddings:0"
    assert "not read: optimizer_weights (is the optimizer's state)" in matrix.origin.notes
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
    assert (matrix.origin.tensor, matrix.origin.format) == ("layers/embedding/vars/0", "HDF5")


STORED = {
    "contiguous": {},
    "chunked": {"chunks": (7, 3)},
    "gzip": {"chunks": (7, 3), "compression": "gzip", "shuffle": True, "fletcher32": True},
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
    array = arrays(open_checkpoint(path))["w"]
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
    found = arrays(checkpoint)
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


def test_hdf5_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.h5"
    path.write_bytes(b"\x89HDF\r\n\x1a\n")
    present = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "h5py" else present(name)
    )
    with refusal(UnreadableFile):
        open_checkpoint(path)


# ONNX


def onnx_model(path: Path, **saving: Any) -> dict[str, np.ndarray]:
    """A model saved by the onnx package, and its initializers as that package reads them."""
    onnx = needs("onnx")
    from onnx import TensorProto, helper, numpy_helper

    small = W.astype(ml_dtypes.bfloat16)
    whole = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
    initializers = [
        numpy_helper.from_array(W, "model.embed_tokens.weight"),
        numpy_helper.from_array(2 * W.astype("f8"), "lm_head.weight"),
        numpy_helper.from_array(W.astype("f2"), "half"),
        numpy_helper.from_array(small, "brain"),
        *(numpy_helper.from_array(np.arange(3).astype(kind), kind) for kind in whole),
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
    found = arrays(checkpoint)
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name].astype("f8"), array.astype("f8"))
        assert found[name].dtype.name == array.dtype.name
        assert is_mapped(found[name])
    assert [file.name for file in checkpoint.files] == [
        "model.onnx",
        *(["model.data"] if external else []),
    ]
    unread = {tensor.name: tensor.dtype for tensor in checkpoint.tensors if tensor.problem}
    assert unread == {"words": TEXT, "listed": ""}
    matrix = embgeo.load(path)
    assert matrix.origin.tensor == "model.embed_tokens.weight"
    assert matrix.output is not None


def test_onnx_with_weights_in_nodes(tmp_path: Path) -> None:
    """As exporters of other frameworks write: matrices in nodes, named by their outputs."""
    onnx = needs("onnx")
    from onnx import helper, numpy_helper

    constants = {"tok_embeddings.weight": W, "axes": np.arange(3), "row": W[0]}
    nodes = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))
        for name, array in constants.items()
    ]
    nodes.append(helper.make_node("Constant", [], ["number"], value_float=1.0))
    nodes.append(helper.make_node("Gather", ["tok_embeddings.weight", "ids"], ["found"]))
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [], [])), tmp_path / "model.onnx")
    checkpoint = open_checkpoint(tmp_path / "model.onnx")
    found = arrays(checkpoint)
    assert list(found) == ["tok_embeddings.weight"]
    np.testing.assert_array_equal(found["tok_embeddings.weight"], W)
    assert is_mapped(found["tok_embeddings.weight"])
    assert embgeo.load(tmp_path / "model.onnx").n == N
