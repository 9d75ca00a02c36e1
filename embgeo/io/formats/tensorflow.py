"""TensorFlow checkpoints (``….index`` with ``….data-00000-of-00001``), mapped, without TensorFlow.

The index is a LevelDB table of names and places in the data files.

TensorFlow 1 cuts variables into slices (``tf.fixed_size_partitioner``). Each slice has an entry in
the index, whose name encodes the variable and the start of the slice in TensorFlow's
order-preserving code.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from embgeo.io.bounded import protobuf as wire
from embgeo.io.bounded.guard import Damaged, plain, short
from embgeo.io.bounded.maps import MOST_DIMENSIONS, SWAPPED, map_file, whole_numbers
from embgeo.io.bounded.protobuf import varint
from embgeo.io.checkpoint import Checkpoint, Omissions, Tensor, stored_tensor
from embgeo.io.formats.parts import Box, SideFiles, is_grid, put_together

#: The first byte of the name of a slice.
SIGN = b"\0"

_ESCAPED_ZERO, _ESCAPED_LAST = b"\0\xff", b"\xff\0"
_END = b"\0\1"


def name_and_start(key: bytes) -> tuple[bytes, tuple[int, ...]]:
    """The variable and the first element of a slice.

    >>> name_and_start(b"\\0part\\0\\1\\1\\2\\xc0\\x65\\xc0\\x64\\x80\\x7f")
    (b'part', (101, 0))
    """
    end = key.find(_END, 1)
    if not key.startswith(SIGN) or end < 0:
        raise Damaged("the name of a slice is damaged")
    name = key[1:end].replace(_ESCAPED_ZERO, b"\0").replace(_ESCAPED_LAST, b"\xff")
    position = end + len(_END)
    length = _byte(key, position)
    dimensions = int.from_bytes(key[position + 1 : position + 1 + length])
    if length > 2 or dimensions > MOST_DIMENSIONS:
        raise Damaged("a slice has implausibly many dimensions")
    position += 1 + length
    first = []
    for _ in range(dimensions):
        start, position = _read_signed(key, position)
        _, position = _read_signed(key, position)  # the length, or -1
        first.append(start)
    return name, whole_numbers(first, "the place of a slice")


def _read_signed(key: bytes, position: int) -> tuple[int, int]:
    """A number and its end; it has as many bytes as leading ones, and is inverted if negative."""
    flip = 0 if _byte(key, position) & 0x80 else 0xFF
    size = 1
    while size < 9 and (_byte(key, position + size // 8) ^ flip) & 0x80 >> size % 8:
        size += 1
    if position + size > len(key) or size > 8:
        raise Damaged("the name of a slice is damaged")
    number = int.from_bytes(byte ^ flip for byte in key[position : position + size])
    number &= (1 << (7 * size - 1)) - 1
    return (-number - 1 if flip else number), position + size


def _byte(key: bytes, position: int) -> int:
    if position >= len(key):
        raise Damaged("the name of a slice is damaged")
    return key[position]


NAME = "TensorFlow checkpoint"
RECOGNIZED = "a LevelDB table that begins with TensorFlow's header (`….index`)"
READ = (
    "tensors are mapped from the `….data-…` files next to it, slices are joined; compressed tables "
    "are refused"
)
EXTRA = ""

_LARGEST_INDEX = 256 * 2**20
_MOST_FIELDS = 2_000_000
_MOST_SHARDS = 100_000
_SUFFIX = ".index"
#: What TensorFlow 2 appends to the path of a variable.
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
#: The description of the objects of TensorFlow 2.
_OBJECT_GRAPH = b"_CHECKPOINTABLE_OBJECT_GRAPH"

#: Types by their number in TensorFlow; strings, handles and quantized types are left out.
_DTYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8",
    8: "complex64", 9: "int64", 10: "bool", 14: "bfloat16", 17: "uint16",
    18: "complex128", 19: "float16", 22: "uint32", 23: "uint64",
}  # fmt: skip


def sniff(head: bytes) -> bool:
    """The first entry: an empty name, and a header with a number of files and a version."""
    if len(head) < 9 or head[:2] != b"\0\0" or not 4 <= head[2] < 0x80 or head[3] != 1 << 3:
        return False
    return b"\x1a" in head[4 : 3 + head[2]]


def with_ending(path: Path) -> Path:
    """The index of a checkpoint that is named without its ending, ``model.ckpt-1000``."""
    index = path.with_name(f"{path.name}{_SUFFIX}") if path.name else path
    return index if not path.exists() and index.is_file() else path


def open_checkpoint(path: Path) -> Checkpoint:
    """The variables of a checkpoint; its data files are next to the index."""
    index = map_file(path)
    if len(index) > _LARGEST_INDEX:
        raise Damaged(f"an index of {len(index):,} bytes is not an index")
    message = wire.Message(_MOST_FIELDS)
    files = SideFiles(path.parent, "data file")
    tensors: list[Tensor] = []
    slices: dict[bytes, list[tuple[Box, Tensor]]] = {}
    left_out = Omissions()
    shards, swapped = 1, False
    for key, value in entries(index.data):
        if not key:
            shards, swapped = _header(message, value)
            continue
        if key == _OBJECT_GRAPH:
            continue
        whole, first = name_and_start(key) if key.startswith(SIGN) else (key, ())
        name = plain(whole.decode("utf-8", "backslashreplace").removesuffix(_VALUE))
        found = _Variable(message, value, name)
        if found.type not in _DTYPES:
            left_out.add(name, f"it holds no numbers (type {found.type})")
        elif found.is_sliced:
            tensors.append(_join(found, slices.pop(key, []), files))
        else:
            raw = files.read(
                _data_file(path, found.shard, shards),
                found.start,
                found.start + found.size,
                short(name),
            )
            dtype = _DTYPES[found.type]
            tensor = stored_tensor(name, raw, dtype, found.shape, swapped=swapped)
            if first:
                slices.setdefault(whole, []).append(((first, tensor.shape), tensor))
            else:
                tensors.append(tensor)
    for key in slices:
        left_out.add(key.decode("utf-8", "backslashreplace"), "its variable is missing")
    used = (path, *files.paths.values())
    return Checkpoint(path, NAME, tuple(tensors), used, notes=left_out.notes())


def _header(message: wire.Message, value: memoryview) -> tuple[int, bool]:
    """The number of data files, and whether their byte order is not native."""
    facts = {place: number for place, _, number in message.fields(value) if place <= 2}
    shards = wire.number(facts.get(1, 1))
    if not 0 < shards < _MOST_SHARDS:
        raise Damaged(f"the index promises {shards:,} data files")
    is_big = wire.number(facts.get(2, 0)) == 1
    return shards, is_big != SWAPPED


class _Variable:
    """A BundleEntryProto, the place of a tensor."""

    def __init__(self, message: wire.Message, value: memoryview, name: str) -> None:
        facts = {place: content for place, _, content in message.fields(value) if place <= 7}
        self.name = name
        self.type, self.shard, self.start, self.size = (
            wire.number(facts.get(place, 0)) for place in (1, 3, 4, 5)
        )
        self.shape = _shape(message, wire.raw(facts[2]), name) if 2 in facts else ()
        self.is_sliced = 7 in facts


def _shape(message: wire.Message, data: memoryview, name: str) -> tuple[int, ...]:
    sizes = []
    for place, _, dimension in message.fields(data):
        if place == 2:
            fields = message.fields(wire.raw(dimension))
            facts = {inner: size for inner, _, size in fields if inner == 1}
            sizes.append(wire.signed(wire.number(facts.get(1, 0))))
    return whole_numbers(sizes, f"the shape of {short(name)}")


def _data_file(path: Path, shard: int, shards: int) -> str:
    if shard >= shards:
        raise Damaged("a tensor lies in a data file beyond the last")
    return f"{path.name.removesuffix(_SUFFIX)}.data-{shard:05d}-of-{shards:05d}"


def _join(found: _Variable, slices: list[tuple[Box, Tensor]], files: SideFiles) -> Tensor:
    label = short(found.name)
    dtype = _DTYPES[found.type]
    if any(tensor.dtype != dtype for _, tensor in slices):
        raise Damaged(f"the slices of {label} have another type than it has")
    if not is_grid([box for box, _ in slices], found.shape):
        raise Damaged(f"the slices of {label} do not fill its shape")
    if sum(tensor.nbytes for _, tensor in slices) > files.size:
        raise Damaged(f"the slices of {label} use the same bytes over and over")
    pieces = [(box, tensor.open) for box, tensor in slices]
    opened = partial(put_together, pieces, found.shape, dtype)
    return Tensor(found.name, found.shape, dtype, opened)


_MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")
_FOOTER_BYTES = 48
#: After every block: its compression and a checksum.
_TRAILER_BYTES = 5
_MOST_ENTRIES = 1_000_000
_MOST_BLOCKS = 100_000
_MOST_KEY_BYTES = 256 * 2**20
_LONGEST_KEY = 4096


def entries(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """The names and values of the table in order."""
    footer = data[-_FOOTER_BYTES:]
    if len(footer) < _FOOTER_BYTES or bytes(footer[-8:]) != _MAGIC:
        raise Damaged("the table's end is missing")
    # The first of two places is that of the meta index, which is empty.
    _, position = varint(footer, 0)
    _, position = varint(footer, position)
    seen = key_bytes = 0
    for blocks, (_, place) in enumerate(_block(data, footer, position)):
        if blocks > _MOST_BLOCKS:
            raise Damaged("the table has implausibly many blocks")
        for key, value in _block(data, place, 0):
            seen += 1
            key_bytes += len(key)
            if seen > _MOST_ENTRIES or key_bytes > _MOST_KEY_BYTES:
                raise Damaged("the table has implausibly many entries")
            yield key, value


def _block(
    data: memoryview, place: memoryview, position: int
) -> Iterator[tuple[bytes, memoryview]]:
    """The entries of the block whose offset and length are at `position` of `place`."""
    start, position = varint(place, position)
    length, _ = varint(place, position)
    if start + length + _TRAILER_BYTES > len(data):
        raise Damaged("a block of the table reaches beyond the end of the file")
    compression = data[start + length]
    if compression:
        kind = "snappy" if compression == 1 else f"method {compression}"
        raise Damaged(
            f"the table is compressed ({kind}), which is not read",
            "save the checkpoint with TensorFlow's own writer, which does not compress",
        )
    return _entries_of(data[start : start + length])


def _entries_of(block: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Names share prefixes with the name before; the block ends with a list of restarts."""
    if len(block) < 4:
        raise Damaged("a block of the table is cut off")
    end = len(block) - 4 - 4 * int.from_bytes(block[-4:], "little")
    if end < 0:
        raise Damaged("a block of the table is damaged")
    key, position = b"", 0
    while position < end:
        shared, position = varint(block, position)
        fresh, position = varint(block, position)
        length, position = varint(block, position)
        if shared > len(key) or fresh > _LONGEST_KEY or position + fresh + length > end:
            raise Damaged("an entry of the table is damaged")
        key = key[:shared] + bytes(block[position : position + fresh])
        if len(key) > _LONGEST_KEY:
            raise Damaged("a name in the table is implausibly long")
        position += fresh
        yield key, block[position : position + length]
        position += length
