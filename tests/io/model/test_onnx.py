"""ONNX models: what quantized nodes read is refused by the name of the node; others are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.io.load import open_checkpoint
from tests.support.refusals import refusal

onnx: Any = pytest.importorskip("onnx")
N, D, BLOCK = 48, 64, 16
G = np.random.default_rng(0)
NAME = "model.embed_tokens.weight"


def write(path: Path, initializers: list[Any], *nodes: Any) -> Path:
    graph = onnx.helper.make_graph(list(nodes), "g", [], [], initializers)
    onnx.save(onnx.helper.make_model(graph), path)
    return path


def array(name: str, values: np.ndarray) -> Any:
    return onnx.numpy_helper.from_array(values, name)


def node(operator: str, inputs: list[str], output: str, name: str = "", **numbers: int) -> Any:
    domain = "" if operator in ("Gather", "DequantizeLinear", "MatMul") else "com.microsoft"
    return onnx.helper.make_node(operator, inputs, [output], name, domain=domain, **numbers)


HEAD = array("lm_head.weight", np.ones((N, D), np.float32))
CODES = array(f"{NAME}_quantized", G.integers(0, 200, (N, D)).astype(np.uint8))
#: Of the shape of a matrix with the rows of the vocabulary: it must not take the place.
SCALES = array("s", G.uniform(0.1, 1, (N, D // BLOCK)).astype(np.float32))
QUANTIZED = {
    "GatherBlockQuantized": [
        node("GatherBlockQuantized", [f"{NAME}_quantized", "ids", "s"], "y", block_size=BLOCK)
    ],
    "DequantizeLinear": [node("DequantizeLinear", [f"{NAME}_quantized", "s"], "y")],
    "DequantizeLinear after Gather": [
        node("Gather", [f"{NAME}_quantized", "ids"], "g"),
        node("DequantizeLinear", ["g", "s"], "y"),
    ],
}


@pytest.mark.parametrize("case", QUANTIZED)
def test_a_quantized_embedding_stops_the_choice(case: str, tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", [CODES, SCALES, HEAD], *QUANTIZED[case])
    with refusal():
        embgeo.load(path)
    found = {tensor.name: tensor for tensor in open_checkpoint(path).tensors}
    assert found.keys() == {NAME, "lm_head.weight"}
    assert found[NAME].shape == (N, D)


def test_a_quantized_output_is_left_out(tmp_path: Path) -> None:
    """Its codes are those of all outputs, whose layer the node names."""
    codes = G.integers(0, 255, (N, D // 32, 16)).astype(np.uint8)
    tensors = [
        array(NAME, G.standard_normal((N, D)).astype(np.float32)),
        array("onnx::MatMul_12_Q4", codes),
        array("s", G.uniform(0.1, 1, N * D // 32).astype(np.float32)),
    ]
    nodes = [node("MatMulNBits", ["x", "onnx::MatMul_12_Q4", "s"], "y", "/lm_head/MatMul_Q4")]
    matrix = embgeo.load(write(tmp_path / "m.onnx", tensors, *nodes))
    assert matrix.origin.tensor == NAME
    assert matrix.output is None
    assert any("lm_head is quantized" in note for note in matrix.origin.notes)


def test_types_and_forms_that_are_not_read_stop_the_choice(tmp_path: Path) -> None:
    codes = onnx.helper.make_tensor(NAME, onnx.TensorProto.UINT4, (N, D), bytes(N * D // 2), True)
    with refusal():
        embgeo.load(write(tmp_path / "m.onnx", [codes, HEAD]))
    values = array(NAME, np.ones(3, np.float32))
    places = array("places", np.array([1, 5, 9]))
    sparse = onnx.helper.make_sparse_tensor(values, places, [N, D])
    graph = onnx.helper.make_graph([], "g", [], [], [HEAD], sparse_initializer=[sparse])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "m.onnx")
    with refusal():
        embgeo.load(tmp_path / "m.onnx")


def test_the_node_names_the_output_of_torch(tmp_path: Path) -> None:
    """Its exporter calls a transposed weight ``onnx::MatMul_12``."""
    embedding, head = G.standard_normal((2, N, D)).astype(np.float32)
    tensors = [array(NAME, embedding), array("onnx::MatMul_12", np.ascontiguousarray(head.T))]
    tensors.append(array("onnx::MatMul_9", np.ones((D, N), np.float32)))
    nodes = [
        onnx.helper.make_node("MatMul", ["x", f"onnx::MatMul_{k}"], ["y"], f"/{layer}/MatMul")
        for k, layer in ((9, "layers.0/up_proj"), (12, "lm_head"))
    ]
    matrix = embgeo.load(write(tmp_path / "m.onnx", tensors, *nodes))
    np.testing.assert_array_equal(matrix.data, embedding)
    assert matrix.output is not None
    np.testing.assert_array_equal(matrix.output.data, head)
    stored = embgeo.load(tmp_path / "m.onnx", tensor="onnx::MatMul_12", transpose=True)
    np.testing.assert_array_equal(stored.data, head)
