"""Fields of protocol buffers, without a schema and within bounds."""

from collections.abc import Iterator
from typing import TypeAlias

from embgeo.files.guard import Damaged

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_LONGEST_TEXT = 4096
_OTHER_KIND = "a field is of another kind than its format says"

Value: TypeAlias = int | memoryview
#: Number of the field, kind of its value, and the value: a number or a view of bytes.
Field: TypeAlias = tuple[int, int, Value]


class Message:
    """Splits messages into fields, and limits their number over all messages."""

    def __init__(self, most_fields: int) -> None:
        self._left = most_fields

    def fields(self, data: memoryview) -> Iterator[Field]:
        position, size = 0, len(data)
        while position < size:
            self._left -= 1
            if self._left < 0:
                raise Damaged("it has implausibly many fields")
            tag, position = varint(data, position)
            kind = tag & 7
            if kind == VARINT:
                value, position = varint(data, position)
                yield tag >> 3, kind, value
                continue
            if kind == BYTES:
                length, position = varint(data, position)
            elif kind in (FIXED64, FIXED32):
                length = 8 if kind == FIXED64 else 4
            else:
                raise Damaged(f"a field has the unknown kind {kind}")
            if length > size - position:
                raise Damaged("a field reaches beyond its message")
            yield tag >> 3, kind, data[position : position + length]
            position += length


def varint(data: memoryview, position: int) -> tuple[int, int]:
    """Read a number of variable length; returns it and the position behind it."""
    value = 0
    for place in range(_LONGEST_VARINT):
        if position + place >= len(data):
            raise Damaged("a number is cut off")
        byte = data[position + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position + place + 1
    raise Damaged("a number is longer than any")


def varints(data: memoryview, most: int) -> list[int]:
    """Read packed numbers."""
    values: list[int] = []
    position = 0
    while position < len(data):
        if len(values) == most:
            raise Damaged(f"a list has more than {most:,} numbers")
        value, position = varint(data, position)
        values.append(value)
    return values


def signed(value: int) -> int:
    """Return a varint of 64 bits as a signed number."""
    return value - 2**64 if value >= 2**63 else value


def text(value: Value) -> str:
    """Return a short string field; bytes that are not UTF-8 are escaped."""
    content = raw(value)
    if len(content) > _LONGEST_TEXT:
        raise Damaged("a name is implausibly long")
    return bytes(content).decode("utf-8", "backslashreplace")


def raw(value: Value) -> memoryview:
    """Return a field of bytes; refuses a number."""
    if not isinstance(value, memoryview):
        raise Damaged(_OTHER_KIND)
    return value


def number(value: Value) -> int:
    """Return a field of a number; refuses bytes."""
    if not isinstance(value, int):
        raise Damaged(_OTHER_KIND)
    return value
