"""ONNX models: initializers and constant matrices of the graph, mapped, without the onnx package.

Field numbers are those of ``onnx.proto``. Graphs inside nodes are not read.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from embgeo.io.bounded import maps
from embgeo.io.bounded import protobuf as wire
from embgeo.io.bounded.guard import Damaged, plain, short
from embgeo.io.checkpoint import MOST_TENSORS, Checkpoint, Omissions, Tensor, stored_tensor
from embgeo.io.formats.format import SideFiles
from embgeo.io.mapped.onnx_nodes import OPERATORS, Codes, Node, read_weights

NAME = "ONNX"
RECOGNIZED = "a protocol buffer with the first fields of an ONNX model"
READ = "initializers and constant matrices are mapped, also from files of external data"
EXTRA = ""

_MOST_FIELDS = 2_000_000


#: Types of 4 bits: unsigned and signed.
_UINT4, _INT4 = 21, 22
_PACKED = (_UINT4, _INT4)
_NODE = 1
#: The operator of a node that holds a tensor, and the tensor among the fields of an attribute.
_CONSTANT, _TENSOR = "Constant", 5
#: Fields of numbers that are stored one by one; zero points often are.
_INTEGERS, _MOST_INTEGERS = (5, 7), 1_000_000
_WHOLE = ("uint8", "int8", "uint16", "int16", "int32", "int64")

_IR_VERSION, _PRODUCER, _GRAPH = 1, 2, 7
_LARGEST_IR_VERSION = 64
_INITIALIZER, _SPARSE_INITIALIZER = 5, 15
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


@dataclass(slots=True)
class _Initializer:
    """A TensorProto."""

    name: str = ""
    type: int = 0
    dims: list[int] = field(default_factory=list)
    raw: memoryview | None = None
    raw_type: int = 0
    integers: list[int] = field(default_factory=list)
    is_external: bool = False
    external: dict[str, str] = field(default_factory=dict)


def sniff(head: bytes) -> bool:
    """Get a version number, then the graph or the name of the producer in printable characters."""
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


def open_checkpoint(path: Path) -> Checkpoint:
    """Open the initializers of the graph; files of external data are next to the model."""
    left_out = Omissions()
    tensors: dict[str, Tensor] = {}
    packed: dict[str, Codes] = {}
    nodes: list[Node] = []
    files = SideFiles(path.parent, "file of external data")
    for found in _initializers(maps.map_file(path).data, left_out, nodes):
        if found.type in _PACKED:
            codes = _packed_codes(found, files)
            if codes is not None:
                packed[found.name] = codes
            continue
        tensor = _tensor(found, files, left_out)
        if tensor is None:
            continue
        if tensor.name in tensors:
            raise Damaged(f"the model has two initializers named {short(tensor.name)}")
        tensors[tensor.name] = tensor
    weights = read_weights(tensors, packed, nodes)
    used = {part for weight in weights for part in weight.parts}
    for name in packed:
        if name not in used:
            left_out.add(name, "it holds numbers of 4 bits", is_tensor=True)
    return Checkpoint(
        path,
        NAME,
        weights,
        (path, *files.paths.values()),
        notes=left_out.notes(),
        unread=tuple(left_out.unread),
    )


def _initializers(
    data: memoryview, left_out: Omissions, nodes: list[Node]
) -> Iterator[_Initializer]:
    message = wire.Message(_MOST_FIELDS)
    seen = 0
    for place, _, graph in message.fields(data):
        if place != _GRAPH:
            continue
        for inner, _, value in message.fields(wire.raw(graph)):
            found = None
            if inner == _INITIALIZER:
                found = _initializer(message, wire.raw(value))
            elif inner == _NODE:
                node, attributes = _node(message, wire.raw(value))
                if node.operator in OPERATORS:
                    node.numbers = _numbers(message, attributes)
                    nodes.append(node)
                elif node.operator == _CONSTANT and node.outputs:
                    found = _constant(message, attributes, node.outputs[0])
            elif inner == _SPARSE_INITIALIZER:
                left_out.add("an initializer", "it is sparse")
            if found is not None:
                seen += 1
                if seen > MOST_TENSORS:
                    raise Damaged("the model has implausibly many initializers")
                yield found


def _node(message: wire.Message, data: memoryview) -> tuple[Node, list[memoryview]]:
    """Return a node, and its attributes as they are stored."""
    made = Node()
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


def _numbers(message: wire.Message, attributes: list[memoryview]) -> dict[str, int]:
    """Return the attributes that are whole numbers."""
    numbers = {}
    for attribute in attributes:
        name, number = "", None
        for place, kind, value in message.fields(attribute):
            if place == 1:
                name = wire.text(value)
            elif place == 3 and kind == wire.VARINT:
                number = wire.signed(wire.number(value))
        if number is not None:
            numbers[name] = number
    return numbers


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


def _packed_codes(found: _Initializer, files: SideFiles) -> Codes | None:
    """Get numbers of 4 bits, two a byte with the low one first; None if rows do not fill bytes."""
    shape = maps.whole_numbers(found.dims, f"the shape of {short(found.name)}")
    if len(shape) != 2 or shape[1] % 2:
        return None
    stored = (shape[0], shape[1] // 2)
    raw: maps.Bytes = np.frombuffer(found.raw or b"", dtype=np.uint8)
    if found.is_external:
        raw = _external(found, files, maps.count(stored))
    tensor = stored_tensor(found.name, raw, "uint8", stored)
    return Codes(tensor, 4, found.type == _INT4, shape)


def _initializer(message: wire.Message, data: memoryview) -> _Initializer:
    made = _Initializer()
    for place, kind, value in message.fields(data):
        if place == _NAME:
            made.name = plain(wire.text(value))
        elif place == _TYPE:
            made.type = wire.number(value)
        elif place == _DIMS:
            sizes = (
                wire.varints(wire.raw(value), maps.MOST_DIMENSIONS)
                if kind == wire.BYTES
                else [wire.number(value)]
            )
            made.dims += map(wire.signed, sizes)
        elif place in _INTEGERS and kind == wire.BYTES and len(wire.raw(value)) <= _MOST_INTEGERS:
            made.integers = wire.varints(wire.raw(value), _MOST_INTEGERS)
        elif place in (_RAW, _FLOATS, _DOUBLES) and len(raw := wire.raw(value)):
            if made.raw is not None:
                raise Damaged(f"{short(made.name)} has its numbers in several pieces")
            made.raw, made.raw_type = raw, {_FLOATS: _FLOAT, _DOUBLES: _DOUBLE}.get(place, 0)
        elif place == _EXTERNAL:
            made.external |= _entry(message, wire.raw(value))
        elif place == _LOCATION:
            made.is_external = wire.number(value) == 1
    return made


def _entry(message: wire.Message, data: memoryview) -> dict[str, str]:
    pair = {place: wire.text(value) for place, _, value in message.fields(data)}
    return {pair[1]: pair.get(2, "")} if pair.get(1) in _KEYS else {}


def _tensor(found: _Initializer, files: SideFiles, left_out: Omissions) -> Tensor | None:
    """Return the tensor, or None and a note for a kind that is not read."""
    label = short(found.name)
    if found.type not in _DTYPES:
        kind = "strings" if found.type == _STRING else f"numbers of type {found.type}"
        left_out.add(found.name, f"it holds {kind}", is_tensor=found.type != _STRING)
        return None
    dtype = _DTYPES[found.type]
    shape = maps.whole_numbers(found.dims, f"the shape of {label}")
    size = maps.count(shape) * maps.number_type(dtype).itemsize
    raw: maps.Bytes = np.frombuffer(found.raw or b"", dtype=np.uint8)
    if found.is_external:
        raw = _external(found, files, size)
    elif found.raw is None and len(found.integers) == maps.count(shape) > 0 and dtype in _WHOLE:
        numbers = np.array(list(map(wire.signed, found.integers)), np.int64)
        raw = numbers.astype(dtype).view(np.uint8)
    elif found.raw is None and size:
        left_out.add(found.name, "its numbers are stored one by one as integers")
        return None
    elif found.raw_type not in (0, found.type):
        raise Damaged(f"{label} holds numbers of another type than it says")
    return stored_tensor(found.name, raw, dtype, shape)


def _external(found: _Initializer, files: SideFiles, size: int) -> maps.Bytes:
    label = short(found.name)
    location = found.external.get("location", "")
    offset = found.external.get("offset", "0")
    length = found.external.get("length", str(size))
    if not all(text.isascii() and text.isdigit() and len(text) < 19 for text in (offset, length)):
        raise Damaged(f"{label} has a damaged place in {short(location)}")
    return files.read(location, int(offset), int(offset) + int(length), label)
