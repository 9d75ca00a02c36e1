"""ONNX models: initializers and constant matrices of the graph, mapped, without the onnx package.

Field numbers are those of ``onnx.proto``. Graphs inside nodes are not read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from embgeo.files import maps
from embgeo.files import protobuf as wire
from embgeo.files.guard import Damaged, plain, short
from embgeo.io.formats.format import Beside
from embgeo.io.model.checkpoint import (
    MOST_TENSORS,
    SAVE_FLOATS,
    Checkpoint,
    Tensor,
    stored_tensor,
    unreadable,
)
from embgeo.io.model.names import input_rank, output_rank
from embgeo.io.model.parameter import BEFORE

NAME = "ONNX"
RECOGNIZED = "a protocol buffer with the first fields of an ONNX model"
READ = "initializers and constant matrices are mapped, also from files of external data"
EXTRA = ""

# A model of 100,000 nodes has fewer; two million are split in about two seconds.
_MOST_FIELDS = 2_000_000

_NODE = 1
#: The operator of a node that holds a tensor, and the tensor among the fields of an attribute.
_CONSTANT, _TENSOR = "Constant", 5
_IR_VERSION, _PRODUCER, _GRAPH = 1, 2, 7
# 14 in 2026. Other protocol buffers may begin with the same byte, and any number after it.
_LARGEST_IR_VERSION = 64
_INITIALIZER, _SPARSE_INITIALIZER = 5, 15
_SPARSE_VALUES, _SPARSE_DIMS = 1, 3
_DIMS, _TYPE, _FLOATS, _NAME, _RAW, _DOUBLES, _EXTERNAL, _LOCATION = 1, 2, 4, 8, 9, 10, 13, 14
_FLOAT, _DOUBLE, _STRING = 1, 11, 8

#: Keys of external data: the file, and a place in it.
_KEYS = frozenset({"location", "offset", "length"})

#: Types by their number in the format; 4-bit types are packed and not read.
_DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64",
    14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8_e4m3fn",
    18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
}  # fmt: skip


#: Operators that compute with codes: the place of the codes among their inputs, and how many inputs
#: from there on belong to the codes, such as their scales and zero points.
_QUANTIZED = {
    "DequantizeLinear": (0, 3),
    "GatherBlockQuantized": (0, 4),
    "MatMulNBits": (1, 3),
    "MatMulBnb4": (1, 2),
    "MatMulInteger": (1, 1),
    "MatMulIntegerToFloat": (1, 1),
    "DynamicQuantizeMatMul": (1, 3),
    "QLinearMatMul": (3, 3),
}
_OPERATORS = frozenset({*_QUANTIZED, "Gather", "MatMul"})
#: What quantizers add to the name of a weight.
_ENDING = re.compile(r"(_(?:q\d\w*|quant\w*|transposed|int[48]|weight_only))+$", re.IGNORECASE)


@dataclass(slots=True)
class _Initializer:
    """A TensorProto."""

    name: str = ""
    type: int = 0
    dims: list[int] = field(default_factory=list)
    raw: memoryview | None = None
    raw_type: int = 0
    is_external: bool = False
    external: dict[str, str] = field(default_factory=dict)
    is_sparse: bool = False


@dataclass(slots=True)
class _Node:
    """An operator with the names of its inputs and outputs."""

    operator: str = ""
    name: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


#: Opened files of external data by name.
Files = dict[str, maps.Bytes]


def sniff(head: bytes) -> bool:
    """Recognize a version number, then the graph or the printable name of the producer."""
    if len(head) < 6 or head[0] != _IR_VERSION << 3 or not 0 < head[1] < _LARGEST_IR_VERSION:
        return False
    if head[2] == _GRAPH << 3 | wire.BYTES or head[2] == 8 << 3 | wire.BYTES:
        return True
    length = head[3]
    name = head[4 : 4 + length]
    return (
        head[2] == _PRODUCER << 3 | wire.BYTES
        and 0 < length < 0x80
        and len(name) == length
        and name.isascii()
        and name.decode().isprintable()
    )


def open_checkpoint(data: maps.Bytes, beside: Beside) -> Checkpoint:
    """Open the initializers of the graph; files of external data are next to the model."""
    tensors: dict[str, Tensor] = {}
    nodes: list[_Node] = []
    files: Files = {}
    for found in _initializers(data.data, nodes):
        tensor = _tensor(found, files, beside)
        if tensor.name in tensors:
            raise Damaged(f"the model has two initializers named {short(tensor.name)}")
        tensors[tensor.name] = tensor
    return Checkpoint(NAME, _name_weights(tensors, nodes), holders=("", *files))


def _initializers(data: memoryview, nodes: list[_Node]) -> Iterator[_Initializer]:
    message = wire.Message(_MOST_FIELDS)
    seen = 0
    for place, _, graph in message.fields(data):
        if place != _GRAPH:
            continue
        for inner, _, value in message.fields(wire.raw(graph)):
            found = None
            if inner == _INITIALIZER:
                found = _initializer(message, wire.raw(value))
            elif inner == _SPARSE_INITIALIZER:
                found = _sparse(message, wire.raw(value))
            elif inner == _NODE:
                node, attributes = _node(message, wire.raw(value))
                if node.operator in _OPERATORS:
                    nodes.append(node)
                elif node.operator == _CONSTANT and node.outputs:
                    found = _constant(message, attributes, node.outputs[0])
            if found is not None:
                seen += 1
                if seen > MOST_TENSORS:
                    raise Damaged("the model has implausibly many initializers")
                yield found


def _node(message: wire.Message, data: memoryview) -> tuple[_Node, list[memoryview]]:
    """Return a node, and its attributes as they are stored."""
    made = _Node()
    attributes = []
    for place, _, value in message.fields(data):
        if place in (1, 2):
            (made.inputs if place == 1 else made.outputs).append(plain(wire.text(value)))
        elif place == 3:
            made.name = plain(wire.text(value))
        elif place == 4:
            made.operator = wire.text(value)
        elif place == 5:
            attributes.append(wire.raw(value))
    return made, attributes


def _constant(
    message: wire.Message, attributes: list[memoryview], name: str
) -> _Initializer | None:
    """Return the matrix of a node that holds one, under the name of its output; None for others."""
    for attribute in attributes:
        for place, kind, value in message.fields(attribute):
            if place == _TENSOR and kind == wire.BYTES:
                found = _initializer(message, wire.raw(value))
                found.name = name
                return found if len(found.dims) == 2 else None
    return None


def _sparse(message: wire.Message, data: memoryview) -> _Initializer:
    """Return a sparse initializer, whose name is that of its values."""
    made = _Initializer(is_sparse=True)
    for place, kind, value in message.fields(data):
        if place == _SPARSE_VALUES and kind == wire.BYTES:
            made.name = _initializer(message, wire.raw(value)).name
        elif place == _SPARSE_DIMS:
            _add_dims(made, kind, value)
    return made


def _initializer(message: wire.Message, data: memoryview) -> _Initializer:
    made = _Initializer()
    for place, kind, value in message.fields(data):
        if place == _NAME:
            made.name = plain(wire.text(value))
        elif place == _TYPE:
            made.type = wire.number(value)
        elif place == _DIMS:
            _add_dims(made, kind, value)
        elif place in (_RAW, _FLOATS, _DOUBLES) and len(raw := wire.raw(value)):
            if made.raw is not None:
                raise Damaged(f"{short(made.name)} has its numbers in several pieces")
            made.raw, made.raw_type = raw, {_FLOATS: _FLOAT, _DOUBLES: _DOUBLE}.get(place, 0)
        elif place == _EXTERNAL:
            made.external |= _entry(message, wire.raw(value))
        elif place == _LOCATION:
            made.is_external = wire.number(value) == 1
    return made


def _add_dims(made: _Initializer, kind: int, value: wire.Value) -> None:
    packed = kind == wire.BYTES
    sizes = wire.varints(wire.raw(value), maps.MOST_DIMENSIONS) if packed else [wire.number(value)]
    made.dims += map(wire.signed, sizes)


def _entry(message: wire.Message, data: memoryview) -> dict[str, str]:
    pair = {place: wire.text(value) for place, _, value in message.fields(data)}
    return {pair[1]: pair.get(2, "")} if pair.get(1) in _KEYS else {}


def _tensor(found: _Initializer, files: Files, beside: Beside) -> Tensor:
    label = short(found.name)
    shape = maps.whole_numbers(found.dims, f"the shape of {label}")
    if found.is_sparse or found.type not in _DTYPES:
        kind = "strings" if found.type == _STRING else f"numbers of type {found.type}"
        problem = "is a sparse initializer" if found.is_sparse else f"holds {kind}"
        dtype = maps.TEXT if found.type == _STRING else ""
        return unreadable(found.name, shape, dtype, problem, SAVE_FLOATS)
    dtype = _DTYPES[found.type]
    size = maps.count(shape) * maps.number_type(dtype).itemsize
    raw: maps.Bytes = np.frombuffer(found.raw or b"", dtype=np.uint8)
    if found.is_external:
        raw = _external(found, files, beside, size)
    elif found.raw is None and size:
        problem = "has its numbers one by one, as integers"
        return unreadable(found.name, shape, "", problem, SAVE_FLOATS)
    elif found.raw_type not in (0, found.type):
        raise Damaged(f"{label} holds numbers of another type than it says")
    return stored_tensor(found.name, raw, dtype, shape)


def _external(found: _Initializer, files: Files, beside: Beside, size: int) -> maps.Bytes:
    label = short(found.name)
    location = found.external.get("location", "")
    offset = found.external.get("offset", "0")
    length = found.external.get("length", str(size))
    if not all(text.isascii() and text.isdigit() and len(text) < 19 for text in (offset, length)):
        raise Damaged(f"{label} has a damaged place in {short(location)}")
    if location not in files:
        files[location] = beside.open(location, "file of external data")
    start, end = int(offset), int(offset) + int(length)
    if end > len(files[location]):
        raise Damaged(f"{label} reaches beyond the end of {short(location)}")
    return files[location][start:end]


def _name_weights(tensors: Mapping[str, Tensor], nodes: Iterable[_Node]) -> tuple[Tensor, ...]:
    """Return all initializers; quantized ones, with their scales, as one that cannot be read."""
    made: dict[str, Tensor] = {}
    gathered: dict[str, str] = {}
    for node in nodes:
        if node.operator == "Gather":
            gathered |= dict.fromkeys(node.outputs, node.inputs[0] if node.inputs else "")
            continue
        place, more = _QUANTIZED.get(node.operator, (1, 1))
        inputs = node.inputs[place : place + more]
        parts = [t for name in inputs if (t := tensors.get(gathered.get(name, name))) is not None]
        if not inputs or not parts or parts[0].name != gathered.get(inputs[0], inputs[0]):
            continue
        weight = parts[0]
        if len(weight.shape) < 2 or weight.name in made:
            continue
        name = _name_of(weight.name, node)
        if name in tensors:
            name = weight.name
        if node.operator in _QUANTIZED:
            problem = f"is quantized (a node {node.operator} of ONNX reads its codes)"
            made[weight.name] = unreadable(name, weight.shape, "", problem, BEFORE, *parts)
        elif name != weight.name and output_rank(name) in (0, 1):
            made[weight.name] = replace(weight, name=name, parts=(weight.name,))
    used = {part for one in made.values() for part in one.parts}
    return (*(t for name, t in tensors.items() if name not in used), *made.values())


def _name_of(name: str, node: _Node) -> str:
    """Name a weight without what quantizers add; by the layer of its node if that says nothing."""
    name = _ENDING.sub("", name)
    if input_rank(name) is not None or output_rank(name) is not None:
        return name
    layer = node.name.strip("/").rpartition("/")[0].replace("/", ".")
    is_known = layer and (input_rank(layer) is not None or output_rank(layer) is not None)
    return f"{layer}.weight" if is_known else name
