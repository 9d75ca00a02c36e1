"""TensorFlow checkpoints (``….index`` with ``….data-00000-of-00001``), mapped, without TensorFlow.

The index is a table in LevelDB's format, from names to places in the data files.

TensorFlow 1 cut variables into slices (``tf.fixed_size_partitioner``). Each slice has an entry of
its own in the index, under a name that holds the variable's name and where the slice begins,
written in TensorFlow's order-preserving code.
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
from embgeo.io.formats.parts import Box, SideFiles, fill, put_together

#: How such a name begins; the names of whole tensors begin otherwise.
SIGN = b"\0"

_ESCAPED_ZERO, _ESCAPED_LAST = b"\0\xff", b"\xff\0"
_END = b"\0\1"


def name_and_start(key: bytes) -> tuple[bytes, tuple[int, ...]]:
    """Whose slice it is, and its first element.

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
        _, position = _read_signed(key, position)  # the length, -1 for all there is
        first.append(start)
    return name, whole_numbers(first, "the place of a slice")


def _read_signed(key: bytes, position: int) -> tuple[int, int]:
    """A number, and what follows it; as many bytes as it begins with ones, all flipped if < 0."""
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
    "tensors are mapped from the `….data-…` files next to it, those in slices are put together; "
    "compressed tables are refused"
)
EXTRA = ""

_LARGEST_INDEX = 256 * 2**20
_MOST_FIELDS = 2_000_000
_MOST_SHARDS = 100_000
_SUFFIX = ".index"
#: What TensorFlow 2 puts behind the path to a variable.
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
#: Beside them TensorFlow 2 keeps how its objects hang together.
_OBJECT_GRAPH = b"_CHECKPOINTABLE_OBJECT_GRAPH"

#: Number types by their number in TensorFlow; strings, handles and quantized ones are left out.
_DTYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    8: "complex64",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    22: "uint32",
    23: "uint64",
}


def sniff(head: bytes) -> bool:
    """The table's first entry: an empty name, and a header with a count of files and a version."""
    if len(head) < 9 or head[:2] != b"\0\0" or not 4 <= head[2] < 0x80 or head[3] != 1 << 3:
        return False
    return b"\x1a" in head[4 : 3 + head[2]]


def with_ending(path: Path) -> Path:
    """The index of a checkpoint that is named as TensorFlow names it, ``model.ckpt-1000``."""
    index = path.with_name(f"{path.name}{_SUFFIX}") if path.name else path
    return index if not path.exists() and index.is_file() else path


def open_checkpoint(path: Path) -> Checkpoint:
    """The variables of a checkpoint.

    Parameters
    ----------
    path : Path
        The index; the data files are looked for next to it.
    """
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
        if reason := found.reason:
            left_out.add(name, reason)
        elif found.is_sliced:
            tensors.append(_join(found, slices.pop(key, []), files))
        else:
            tensor = _tensor(found, _data_file(path, found.shard, shards), files, swapped)
            if first:
                slices.setdefault(whole, []).append(((first, tensor.shape), tensor))
            else:
                tensors.append(tensor)
    for key in slices:
        left_out.add(key.decode("utf-8", "backslashreplace"), "it is a slice of no variable")
    used = (path, *files.paths.values())
    return Checkpoint(path, NAME, tuple(tensors), used, notes=left_out.notes())


def _header(message: wire.Message, value: memoryview) -> tuple[int, bool]:
    """Number of data files, and whether their byte order is not this machine's."""
    facts = {place: number for place, _, number in message.fields(value)}
    shards = wire.number(facts.get(1, 1))
    if not 0 < shards < _MOST_SHARDS:
        raise Damaged(f"the index promises {shards:,} data files")
    is_big = wire.number(facts.get(2, 0)) == 1
    return shards, is_big != SWAPPED


class _Variable:
    """A BundleEntryProto: where a tensor lies; `reason` says why it is not read."""

    def __init__(self, message: wire.Message, value: memoryview, name: str) -> None:
        self.name = name
        self.type = self.shard = self.start = self.size = 0
        self.shape: tuple[int, ...] = ()
        self.is_sliced = False
        for place, _, content in message.fields(value):
            if place == 1:
                self.type = wire.number(content)
            elif place == 2:
                self.shape = _shape(message, wire.raw(content), name)
            elif place == 3:
                self.shard = wire.number(content)
            elif place == 4:
                self.start = wire.number(content)
            elif place == 5:
                self.size = wire.number(content)
            elif place == 7:
                self.is_sliced = True
        known = self.type in _DTYPES
        self.reason = "" if known else f"it holds no numbers (type {self.type})"


def _shape(message: wire.Message, data: memoryview, name: str) -> tuple[int, ...]:
    sizes = []
    for place, _, dimension in message.fields(data):
        if place == 2:
            facts = {inner: v for inner, _, v in message.fields(wire.raw(dimension))}
            sizes.append(wire.signed(wire.number(facts.get(1, 0))))
    return whole_numbers(sizes, f"the shape of {short(name)}")


def _data_file(path: Path, shard: int, shards: int) -> str:
    if shard >= shards:
        raise Damaged("a tensor lies in a data file beyond the last")
    return f"{path.name.removesuffix(_SUFFIX)}.data-{shard:05d}-of-{shards:05d}"


def _tensor(found: _Variable, file: str, files: SideFiles, swapped: bool) -> Tensor:
    raw = files.read(file, found.start, found.start + found.size, short(found.name))
    return stored_tensor(found.name, raw, _DTYPES[found.type], found.shape, swapped=swapped)


def _join(found: _Variable, slices: list[tuple[Box, Tensor]], files: SideFiles) -> Tensor:
    """A variable that was cut into slices, which are copied side by side."""
    label = short(found.name)
    dtype = _DTYPES[found.type]
    if any(tensor.dtype != dtype for _, tensor in slices):
        raise Damaged(f"the slices of {label} have another type than it has")
    if not fill([box for box, _ in slices], found.shape):
        raise Damaged(f"the slices of {label} do not fill its shape")
    if sum(tensor.nbytes for _, tensor in slices) > files.size:
        raise Damaged(f"the slices of {label} use the same bytes over and over")
    pieces = [(box, tensor.open) for box, tensor in slices]
    opened = partial(put_together, pieces, found.shape, dtype)
    return Tensor(found.name, found.shape, dtype, opened)


_MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")
_FOOTER_BYTES = 48
#: Behind every block: how it is compressed, and a checksum.
_TRAILER_BYTES = 5
_MOST_ENTRIES = 1_000_000
_MOST_BLOCKS = 100_000
_MOST_KEY_BYTES = 256 * 2**20
_LONGEST_KEY = 4096


def entries(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Every name of the table with its bytes, in their order."""
    footer = data[-_FOOTER_BYTES:]
    if len(footer) < _FOOTER_BYTES or bytes(footer[-8:]) != _MAGIC:
        raise Damaged("the table's end is missing")
    # The first of two places is that of an index of another kind, which nobody writes.
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
    """The entries of the block whose offset and length stand at `position` of `place`."""
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
    """Names share their beginnings with the ones before; the block ends with a list of restarts."""
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
