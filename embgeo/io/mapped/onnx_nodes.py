"""Quantized initializers of ONNX, decoded as the node that reads them says.

The operators are DequantizeLinear of ONNX, and GatherBlockQuantized and MatMulNBits of
com.microsoft (onnxruntime, ContribOperators.md).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from embgeo.io.bounded.maps import Array
from embgeo.io.checkpoint import Tensor
from embgeo.io.model import forms
from embgeo.io.model.parameter import cannot, decoded
from embgeo.io.parameter_names import input_rank, output_rank

OPERATORS = frozenset(
    {"DequantizeLinear", "GatherBlockQuantized", "MatMulNBits", "Gather", "MatMul"}
)
#: What quantizers add to the name of a weight.
_ENDING = re.compile(r"(_(?:q\d\w*|quant\w*|transposed|int[48]|weight_only))+$", re.IGNORECASE)


@dataclass(slots=True)
class Node:
    """An operator with the names of its inputs and outputs, and its whole numbers."""

    operator: str = ""
    name: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Codes:
    """An initializer whose numbers may be packed, two a byte."""

    tensor: Tensor
    bits: int = 8
    signed: bool = False
    shape: tuple[int, ...] = ()

    def read(self, array: Array, rows: slice) -> Array:
        """Read whole numbers of some rows."""
        if self.bits == 8:
            return array[rows]
        codes = forms.unpack(np.ascontiguousarray(array[rows]), self.bits)[:, : self.shape[1]]
        return (codes.astype(np.int32) ^ 8) - 8 if self.signed else codes


def read_weights(
    tensors: Mapping[str, Tensor], packed: Mapping[str, Codes], nodes: Iterable[Node]
) -> tuple[Tensor, ...]:
    """Read all initializers, with decoded matrices in place of the codes that nodes dequantize."""
    made: dict[str, Tensor] = {}
    gathered: dict[str, str] = {}
    codes = {name: Codes(t, 8, shape=t.shape) for name, t in tensors.items()} | dict(packed)
    for node in nodes:
        inputs = [*node.inputs, "", "", "", ""]
        if node.operator == "Gather":
            gathered |= dict.fromkeys(node.outputs, inputs[0])
            continue
        if node.operator == "MatMul":
            name, plain = inputs[1], tensors.get(inputs[1])
            if plain is not None and len(plain.shape) == 2 and name not in made:
                renamed = _name_output(name, node)
                if renamed != name and renamed not in tensors:
                    made[name] = replace(plain, name=renamed, parts=(name,))
            continue
        read = {
            "DequantizeLinear": _linear,
            "GatherBlockQuantized": _blocks,
            "MatMulNBits": _matmul,
        }[node.operator]
        where = {"MatMulNBits": 1}.get(node.operator, 0)
        source = gathered.get(inputs[where], inputs[where])
        held = codes.get(source)
        if held is None or source in made:
            continue
        scale = {"DequantizeLinear": 1}.get(node.operator, 2)
        others = (tensors.get(inputs[scale]), codes.get(inputs[scale + 1]))
        if others[0] is None:
            continue
        if source != inputs[where]:  # an axis of gathered rows
            node.numbers["axis"] = 1
        name = _rename(source, node)
        name = source if name in tensors or name in {one.name for one in made.values()} else name
        made[source] = read(name, held, others[0], others[1], node)
    used = {part for one in made.values() for part in one.parts}
    kept = [t for name, t in tensors.items() if name not in used]
    return (*kept, *made.values())


def _rename(name: str, node: Node) -> str:
    """Get the name of the weight: without what quantizers add, or that of the layer of the node."""
    plain = _ENDING.sub("", name)
    if input_rank(plain) is not None or output_rank(plain) is not None:
        return plain
    layer = node.name.strip("/").rpartition("/")[0].replace("/", ".")
    known = layer and (input_rank(layer) is not None or output_rank(layer) is not None)
    return f"{layer}.weight" if known else plain


def _name_output(name: str, node: Node) -> str:
    """Get the name of the layer for an output matrix that torch calls ``onnx::MatMul_123``."""
    layer = node.name.strip("/").rpartition("/")[0].replace("/", ".")
    is_unnamed = output_rank(name) is None and input_rank(name) is None
    is_output = is_unnamed and layer and output_rank(layer) in (0, 1)
    return f"{layer}.weight" if is_output else name


def _linear(name: str, codes: Codes, scale: Tensor, zero: Codes | None, node: Node) -> Tensor:
    """Return (code − zero point) · scale of the tensor, of an axis or of blocks along it."""
    axis, size = node.numbers.get("axis", 1) % 2, node.numbers.get("block_size", 0)
    parts = (codes.tensor, scale, None if zero is None else zero.tensor)
    if len(codes.shape) != 2:
        return _refuse_scales(name, *parts)
    n, d = codes.shape
    one = (size, 1) if axis == 0 else (1, size)
    block = one if size else {0: (n, d)}.get(len(scale.shape), (1, d) if axis == 0 else (n, 1))
    grid = (-(-n // block[0]), -(-d // block[1]))
    if int(np.prod(scale.shape)) not in {grid[0] * grid[1]}:
        if int(np.prod(scale.shape)) != 1:
            return _refuse_scales(name, *parts)
        block, grid = (n, d), (1, 1)

    def rows_of(c: Array, s: Array, z: Array | None, rows: slice) -> Array:
        made = forms.f32(codes.read(c, rows))
        if z is not None and zero is not None:
            minus = zero.read(z.reshape(grid[0], -1), slice(None)).reshape(grid)
            made = made - forms.spread(minus, (n, d), block, rows)
        return made * forms.spread(s.reshape(grid), (n, d), block, rows)

    return decoded(name, (n, d), "ONNX, (code − zero point) · scale", parts, rows_of)


def _blocks(name: str, codes: Codes, scale: Tensor, zero: Codes | None, node: Node) -> Tensor:
    """Decode GatherBlockQuantized: rows in blocks of columns; bytes may hold two codes."""
    bits, size = node.numbers.get("bits", 4), node.numbers.get("block_size", 128)
    # Without zero points those of bytes are in the middle, those of types of 4 bits are 0.
    default = 2 ** (bits - 1) if codes.tensor.dtype == "uint8" and codes.bits == 8 else 0
    if codes.bits == 8 and bits in (2, 4) and len(codes.shape) == 2:
        codes = replace(codes, bits=bits, shape=(codes.shape[0], 8 // bits * codes.shape[1]))
        if zero is not None and len(zero.shape) == 2:
            zero = replace(zero, bits=bits, shape=(zero.shape[0], 8 // bits * zero.shape[1]))
    parts = (codes.tensor, scale, None if zero is None else zero.tensor)
    axes = (node.numbers.get("gather_axis", 0), node.numbers.get("quantize_axis", 1))
    if axes not in ((0, 1), (0, -1)) or len(codes.shape) != 2 or size < 1:
        return _refuse_scales(name, *parts)
    n, d = codes.shape
    if scale.shape != (n, -(-d // size)):
        return _refuse_scales(name, *parts)

    def rows_of(c: Array, s: Array, z: Array | None, rows: slice) -> Array:
        minus = np.full((rows.stop - rows.start, s.shape[1]), default)
        if z is not None and zero is not None:
            minus = zero.read(z, rows)[:, : s.shape[1]]
        return _of_blocks(codes.read(c, rows), s[rows], minus, size)

    form = f"ONNX GatherBlockQuantized, {bits} bits, (code − zero point) · scale of {size}"
    return decoded(name, (n, d), form, parts, rows_of)


def _matmul(name: str, codes: Codes, scale: Tensor, zero: Codes | None, node: Node) -> Tensor:
    """Decode MatMulNBits: B is (N, blocks, bytes of a block), with N outputs of K inputs."""
    numbers = node.numbers
    n, d, bits = numbers.get("N", 0), numbers.get("K", 0), numbers.get("bits", 4)
    size = numbers.get("block_size", 32)
    parts = (codes.tensor, scale, None if zero is None else zero.tensor)
    blocks = -(-d // size) if size > 0 else 0
    fits = bits in (2, 4, 8) and codes.tensor.shape == (n, blocks, size * bits // 8)
    order = node.inputs[4] if len(node.inputs) > 4 else ""
    if not fits or int(np.prod(scale.shape)) != n * blocks or order:
        return _refuse_scales(name, *parts)

    def rows_of(c: Array, s: Array, z: Array | None, rows: slice) -> Array:
        flat = np.ascontiguousarray(c[rows].reshape(rows.stop - rows.start, -1))
        minus: Array = np.full((len(flat), blocks), 2 ** (bits - 1))
        if z is not None:
            laid = z.reshape(n, -1)[rows]
            packed = z.dtype == np.uint8
            minus = forms.unpack(np.ascontiguousarray(laid), bits)[:, :blocks] if packed else laid
        return _of_blocks(forms.unpack(flat, bits)[:, :d], s.reshape(n, blocks)[rows], minus, size)

    form = f"ONNX MatMulNBits, {bits} bits, (code − zero point) · scale of {size}"
    return decoded(name, (n, d), form, parts, rows_of)


def _of_blocks(codes: Array, scale: Array, zero: Array, size: int) -> forms.Rows:
    columns = np.arange(codes.shape[1]) // size
    return (forms.f32(codes) - forms.f32(zero)[:, columns]) * forms.f32(scale)[:, columns]


def _refuse_scales(name: str, *parts: Tensor | None) -> Tensor:
    codes = next(part for part in parts if part is not None)
    return cannot(name, codes, "is quantized (ONNX), and its scales do not fit", *parts[1:])
