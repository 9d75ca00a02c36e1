"""Parameters that Flax wrote with msgpack (``flax_model.msgpack``), mapped.

The msgpack data are nested maps of names; arrays are extension values of type 1 that hold a shape,
a type and the bytes. Arrays beyond 1 GiB are in chunks.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.io.bounded.guard import Damaged, plain, short
from embgeo.io.bounded.maps import Array, count, is_numeric, map_file, number_type
from embgeo.io.bounded.maps import whole_numbers as sizes_of
from embgeo.io.bounded.scratch import fill_rows
from embgeo.io.checkpoint import Checkpoint, Omissions, Tensor, stored_tensor

_DEEPEST = 64
_MOST_VALUES = 2_000_000
#: Longer texts stay bytes; shorter ones have a common limit.
_LONGEST_TEXT = 4096
_MOST_TEXT = 128 * 2**20

_ARRAY_TYPE = 1
_FIX_MAP, _FIX_LIST, _FIX_TEXT, _FIX_END = 0x80, 0x90, 0xA0, 0xC0
_LIST16, _LIST32, _MAP16, _MAP32 = 0xDC, 0xDD, 0xDE, 0xDF
_FIX_EXT, _EXT = range(0xD4, 0xD9), range(0xC7, 0xCA)

_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
#: Codes of values with a length, and its format.
_LENGTHS = {
    0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xC7: ">B", 0xC8: ">H", 0xC9: ">I",
    0xD9: ">B", 0xDA: ">H", 0xDB: ">I", _LIST16: ">H", _LIST32: ">I", _MAP16: ">H", _MAP32: ">I",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Extension:
    """A value of an application-defined type."""

    type: int
    raw: memoryview


class ArrayMet(Exception):
    """An array was found while looking ahead."""


class Walker:
    """Reads msgpack values; with `looks_ahead` it stops at the first array."""

    def __init__(self, data: memoryview, *, looks_ahead: bool = False) -> None:
        self.data = data
        self.looks_ahead = looks_ahead
        self.position = 0
        self._left = _MOST_VALUES
        self._text_left = _MOST_TEXT

    def whole(self) -> Any:
        """The value of all bytes; long texts, bytes and extensions are views."""
        value = self._value(0)
        if self.position != len(self.data):
            raise Damaged("data follow the end of the msgpack value")
        return value

    def _value(self, depth: int) -> Any:
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            raise Damaged("its msgpack data are nested too deeply or have implausibly many values")
        code = self._number(">B")
        if code < _FIX_MAP:
            return code
        if code < _FIX_LIST:
            return self._map(code - _FIX_MAP, depth)
        if code < _FIX_TEXT:
            return self._list(code - _FIX_LIST, depth)
        if code < _FIX_END:
            return self._text(code - _FIX_TEXT)
        if code >= 0xE0:
            return code - 0x100
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _NUMBERS:
            return self._number(_NUMBERS[code])
        if code in _LENGTHS or code in _FIX_EXT:
            return self._with_length(code, depth)
        raise Damaged("a byte that no msgpack value begins with")

    def _with_length(self, code: int, depth: int) -> Any:
        length = self._length(code)
        if code in _FIX_EXT or code in _EXT:
            kind = self._number(">b")
            if self.looks_ahead and kind == _ARRAY_TYPE:
                raise ArrayMet
            return Extension(kind, self._take(length))
        if code <= 0xC6:
            return self._take(length)
        if code in (_LIST16, _LIST32):
            return self._list(length, depth)
        return self._map(length, depth) if code in (_MAP16, _MAP32) else self._text(length)

    def _length(self, code: int) -> int:
        if code in _FIX_EXT:
            return 1 << (code - _FIX_EXT.start)
        return int(self._number(_LENGTHS[code]))

    def _map(self, length: int, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for _ in range(length):
            key = self._value(depth + 1)
            if not isinstance(key, str) or key in made:
                raise Damaged("a map has a key twice, or one that is not a name")
            made[key] = self._value(depth + 1)
        return made

    def _list(self, length: int, depth: int) -> list[Any]:
        return [self._value(depth + 1) for _ in range(length)]

    def _text(self, length: int) -> str | memoryview:
        raw = self._take(length)
        if length > _LONGEST_TEXT:
            return raw
        self._text_left -= length
        if self._text_left < 0:
            raise Damaged("its msgpack data hold implausibly much text")
        return bytes(raw).decode("utf-8", "backslashreplace")

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _take(self, size: int) -> memoryview:
        start = self.position
        if size > len(self.data) - start:
            raise Damaged("its msgpack data are cut off")
        self.position += size
        return self.data[start : self.position]


NAME = "Flax msgpack"
RECOGNIZED = "nested msgpack maps of names with an array of Flax"
READ = "arrays are mapped; chunks (of arrays beyond 1 GiB) are joined in a temporary file"
EXTRA = ""

_CHUNKED = "__msgpack_chunked_array__"
_MOST_CHUNKS = 4096


def sniff(head: bytes) -> bool:
    if not head or not (_FIX_MAP <= head[0] < _FIX_LIST or head[0] in (_MAP16, _MAP32)):
        return False
    try:
        Walker(memoryview(head), looks_ahead=True).whole()
    except ArrayMet:
        return True
    except Damaged:  # no array within `head`
        return False
    return False


def open_checkpoint(path: Path) -> Checkpoint:
    """Every array of the tree, named by its keys joined by dots."""
    tree = Walker(map_file(path).data).whole()
    left_out = Omissions()
    tensors = tuple(_tensors(tree, "", left_out))
    return Checkpoint(path, NAME, tensors, (path,), notes=left_out.notes())


def _tensors(tree: object, name: str, left_out: Omissions) -> Iterator[Tensor]:
    if isinstance(tree, Mapping) and _CHUNKED in tree:
        yield _join_chunks(tree, name)
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _tensors(value, f"{name}.{plain(key)}" if name else plain(key), left_out)
    elif isinstance(tree, Extension) and tree.type == _ARRAY_TYPE:
        stored = _read_stored(tree, name)
        if stored is not None:
            yield stored
        else:
            left_out.add(name, "it holds no numbers")


def _read_stored(extension: Extension, name: str) -> Tensor | None:
    """An array, or None if it does not hold numbers."""
    label = short(name)
    described = Walker(extension.raw).whole()
    if not isinstance(described, list) or len(described) != 3:
        raise Damaged(f"{label} has no description")
    shape, kind, raw = described
    if not isinstance(kind, str) or not isinstance(raw, memoryview):
        raise Damaged(f"{label} has a damaged description")
    kind = "bfloat16" if kind == "V2" else kind
    sizes = sizes_of(shape, f"the shape of {label}")
    try:
        dtype = number_type(kind)
    except TypeError:
        dtype = None
    if dtype is None or dtype.name != kind:
        raise Damaged(f"{label} has the unknown type {short(kind)}")
    if not is_numeric(dtype):
        return None
    # Flax stores no byte order; all machines that run JAX are little-endian.
    return stored_tensor(name, np.frombuffer(raw, dtype=np.uint8), kind, sizes)


def _join_chunks(tree: Mapping[Any, Any], name: str) -> Tensor:
    label = short(name)
    chunks = [
        chunk
        for part in _in_order(tree.get("chunks"), f"the chunks of {label}")
        if isinstance(part, Extension) and part.type == _ARRAY_TYPE
        if (chunk := _read_stored(part, name)) is not None
    ]
    shape = sizes_of(_in_order(tree.get("shape"), f"the shape of {label}"), f"the shape of {label}")
    if len({chunk.dtype for chunk in chunks}) != 1:
        raise Damaged(f"{label} has damaged chunks")
    if sum(count(chunk.shape) for chunk in chunks) != count(shape):
        raise Damaged(f"the chunks of {label} do not fill its shape")
    dtype = chunks[0].dtype

    def join() -> Array:
        pieces = (chunk.open().reshape(-1) for chunk in chunks)
        return fill_rows(pieces, (count(shape),), number_type(dtype)).reshape(shape)

    return Tensor(name, shape, dtype, join)


def _in_order(entries: object, what: str) -> list[Any]:
    """The values of a map ``{"0": …, "1": …}`` in order: Flax writes tuples so."""
    if isinstance(entries, list):
        return entries
    if not isinstance(entries, Mapping) or len(entries) > _MOST_CHUNKS:
        raise Damaged(f"{what} are not a list")
    if set(entries) != {str(place) for place in range(len(entries))}:
        raise Damaged(f"{what} are not numbered")
    return [entries[str(place)] for place in range(len(entries))]
