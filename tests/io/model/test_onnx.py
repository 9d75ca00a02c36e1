"""Quantized initializers of ONNX, decoded as the node that reads them says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import EmbgeoError

onnx: Any = pytest.importorskip("onnx")
N, D, BLOCK = 48, 64, 16
G = np.random.default_rng(0)
F = onnx.TensorProto
NAME = "model.embed_tokens.weight"


def write(path: Path, initializers: list[Any], *nodes: Any) -> Path:
    graph = onnx.helper.make_graph(list(nodes), "g", [], [], initializers)
    onnx.save(onnx.helper.make_model(graph), path)
    return path


def array(name: str, values: np.ndarray) -> Any:
    return onnx.numpy_helper.from_array(values, name)


def nibbles(name: str, values: np.ndarray, kind: int) -> Any:
    """Numbers of 4 bits, two a byte with the low one first."""
    low, high = (values[:, k::2].astype(np.int64) & 15 for k in (0, 1))
    raw = (low | high << 4).astype(np.uint8).tobytes()
    return onnx.helper.make_tensor(name, kind, values.shape, raw, raw=True)


HEAD = array("lm_head.weight", np.ones((N, D), np.float32))


def check(path: Path, expected: np.ndarray, form: str) -> None:
    matrix = embgeo.load(path)
    assert matrix.origin.tensor == NAME
    assert form in matrix.origin.form
    np.testing.assert_allclose(matrix.data, expected, rtol=1e-6)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("with_zero", [False, True])
def test_gather_block_quantized_of_bytes(bits: int, with_zero: bool, tmp_path: Path) -> None:
    """Bytes hold one to four codes; the zero point is in the middle where none is given."""
    codes = G.integers(0, 2**bits, (N, D))
    zero = G.integers(0, 2**bits, (N, D // BLOCK))
    scale = G.uniform(0.1, 1, (N, D // BLOCK)).astype(np.float32)

    def stored(values: np.ndarray) -> np.ndarray:
        per_byte = 8 // bits
        parts = [values[:, k::per_byte] << bits * k for k in range(per_byte)]
        return np.bitwise_or.reduce(parts).astype(np.uint8)

    tensors = [array(f"{NAME}_quant", stored(codes)), array(f"{NAME}_scales", scale), HEAD]
    inputs = [f"{NAME}_quant", "ids", f"{NAME}_scales"]
    if with_zero:
        tensors.append(array(f"{NAME}_zp", stored(zero)))
        inputs.append(f"{NAME}_zp")
    node = onnx.helper.make_node(
        "GatherBlockQuantized", inputs, ["y"], domain="com.microsoft", bits=bits,
        block_size=BLOCK, gather_axis=0, quantize_axis=1,
    )  # fmt: skip
    minus = zero if with_zero else np.full_like(zero, 2 ** (bits - 1))
    expected = (codes - minus.repeat(BLOCK, 1)) * scale.repeat(BLOCK, 1)
    check(write(tmp_path / "m.onnx", tensors, node), expected, f"GatherBlockQuantized, {bits} bits")


@pytest.mark.parametrize("kind", ["UINT4", "INT4"])
def test_gather_block_quantized_of_four_bits(kind: str, tmp_path: Path) -> None:
    low = -8 if kind == "INT4" else 0
    codes = G.integers(low, low + 16, (N, D))
    scale = G.uniform(0.1, 1, (N, D // BLOCK)).astype(np.float32)
    tensors = [nibbles(f"{NAME}_Q4", codes, getattr(F, kind)), array("s", scale), HEAD]
    node = onnx.helper.make_node(
        "GatherBlockQuantized", [f"{NAME}_Q4", "ids", "s"], ["y"], domain="com.microsoft",
        block_size=BLOCK, quantize_axis=1,
    )  # fmt: skip
    check(write(tmp_path / "m.onnx", tensors, node), codes * scale.repeat(BLOCK, 1), "4 bits")


@pytest.mark.parametrize("with_zero", [False, True])
def test_mat_mul_n_bits_is_the_output(with_zero: bool, tmp_path: Path) -> None:
    """Its codes are those of all outputs, whose layer the node names."""
    bits, size = 4, 32
    codes, zero = G.integers(0, 16, (N, D)), G.integers(0, 16, (N, D // size))
    scale = G.uniform(0.1, 1, (N, D // size)).astype(np.float32)
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
    tensors = [array(NAME, np.ones((N, D), np.float32) * np.arange(D, dtype=np.float32))]
    tensors += [array("onnx::MatMul_12_Q4", packed.reshape(N, D // size, size // 2))]
    tensors += [array("s", scale.ravel())]
    inputs = ["x", "onnx::MatMul_12_Q4", "s"]
    if with_zero:
        tensors.append(array("z", (zero[:, ::2] | zero[:, 1::2] << 4).astype(np.uint8).ravel()))
        inputs.append("z")
    node = onnx.helper.make_node(
        "MatMulNBits", inputs, ["y"], "/lm_head/MatMul_Q4", domain="com.microsoft",
        K=D, N=N, bits=bits, block_size=size,
    )  # fmt: skip
    matrix = embgeo.load(write(tmp_path / "m.onnx", tensors, node))
    minus = zero.repeat(size, 1) if with_zero else 8
    assert matrix.output is not None
    assert matrix.output.origin.tensor == "lm_head.weight"
    np.testing.assert_allclose(
        matrix.output.data, (codes - minus) * scale.repeat(size, 1), rtol=1e-6
    )


CASES = {
    "tensor": ((), {}), "rows": ((N,), {"axis": 0}), "columns": ((D,), {"axis": 1}),
    "blocks of rows": ((N // BLOCK, D), {"axis": 0, "block_size": BLOCK}),
    "blocks of columns": ((N, D // BLOCK), {"axis": 1, "block_size": BLOCK}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_dequantize_linear_is_that_of_the_reference(case: str, dtype: str, tmp_path: Path) -> None:
    from onnx.reference import ReferenceEvaluator

    shape, numbers = CASES[case]
    codes = G.integers(-100 if dtype == "int8" else 0, 100, (N, D)).astype(dtype)
    scale = np.asarray(G.uniform(0.1, 1, shape), np.float32)
    zero = np.asarray(G.integers(0, 9, shape)).astype(dtype)
    tensors = [array(f"{NAME}_quantized", codes), array("s", scale)]
    # A zero point as quantizers write it, number by number.
    tensors.append(onnx.helper.make_tensor("z", getattr(F, dtype.upper()), shape, zero.ravel()))
    node = onnx.helper.make_node(
        "DequantizeLinear", [f"{NAME}_quantized", "s", "z"], ["y"], **numbers
    )
    y = onnx.helper.make_tensor_value_info("y", F.FLOAT, (N, D))
    opset = [onnx.helper.make_opsetid("", 21)]
    graph = onnx.helper.make_graph([node], "g", [], [y], tensors)
    model = onnx.helper.make_model(graph, opset_imports=opset)
    (expected,) = ReferenceEvaluator(model).run(None, {})
    check(write(tmp_path / "m.onnx", [*tensors, HEAD], node), expected, "ONNX, (code")


def test_rows_that_are_gathered_before_they_are_dequantized(tmp_path: Path) -> None:
    """Dynamic quantization of onnxruntime: one scale for all."""
    codes = G.integers(0, 200, (N, D)).astype(np.uint8)
    tensors = [array(f"{NAME}_quantized", codes), array("s", np.float32(0.02)), HEAD]
    tensors.append(array("z", np.uint8(128)))
    gather = onnx.helper.make_node("Gather", [f"{NAME}_quantized", "ids"], ["g"])
    linear = onnx.helper.make_node("DequantizeLinear", ["g", "s", "z"], ["y"])
    expected = (codes.astype(np.float32) - 128) * np.float32(0.02)
    check(write(tmp_path / "m.onnx", tensors, gather, linear), expected, "ONNX, (code")


def test_four_bits_that_no_node_reads_stop_the_choice(tmp_path: Path) -> None:
    codes = nibbles(NAME, G.integers(0, 16, (N, D)), F.UINT4)
    with pytest.raises(EmbgeoError, match=r"embed_tokens cannot be read: it holds numbers of 4 bi"):
        embgeo.load(write(tmp_path / "m.onnx", [codes, HEAD]))


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
