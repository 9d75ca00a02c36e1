"""Members of a tar archive: their names and places.

Python's ``tarfile`` reads extended headers of any length into memory, and can write to disk.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.maps import Bytes

_BLOCK = 512
_CHECKSUM = slice(148, 156)
#: Long names are in a member of their own before the header.
_LONGEST_EXTENSION = 2**20
_MOST_MEMBERS = 100_000
_REGULAR = (b"\0", b"0", b"7")


@dataclass(frozen=True, slots=True)
class TarMember:
    """A regular file in the archive: `size` bytes from byte `start`."""

    name: str
    start: int
    size: int


def is_tar(head: bytes) -> bool:
    """Tell whether `head` is a tar header with a name and a right checksum."""
    return len(head) >= _BLOCK and head[0] != 0 and _checksum_holds(head[:_BLOCK])


def members(data: Bytes) -> Iterator[TarMember]:
    """Yield every regular file; leaves out links, devices, folders and sparse files."""
    position, long_name, wide_size, is_sparse, seen = 0, "", None, False, 0
    while position + _BLOCK <= len(data):
        header = data[position : position + _BLOCK].tobytes()
        if not any(header):
            return
        if not _checksum_holds(header):
            raise Damaged(f"the tar header at byte {position:,} is damaged")
        seen += 1
        if seen > _MOST_MEMBERS:
            raise Damaged("the tar archive has implausibly many members")
        size = _number(header[124:136]) if wide_size is None else wide_size
        start = position + _BLOCK
        position = start + -(-size // _BLOCK) * _BLOCK
        if start + size > len(data):
            raise Damaged("a member of the tar archive is longer than the file")
        kind = header[156:157]
        if kind == b"L":
            long_name = _text(_extension(data, start, size).rstrip(b"\0"))
        elif kind == b"x":
            facts = _pax(_extension(data, start, size))
            long_name = facts.get("path", long_name)
            wide_size = int(facts["size"]) if "size" in facts else None
            is_sparse = any(key.startswith("GNU.sparse.") for key in facts)
        elif kind in (b"K", b"g"):
            continue
        else:
            if kind in _REGULAR and not is_sparse:
                yield TarMember(long_name or _name(header), start, size)
            long_name, wide_size, is_sparse = "", None, False
    if not seen:
        raise Damaged("the tar archive is cut off")


def _checksum_holds(header: bytes) -> bool:
    try:
        stated = _number(header[_CHECKSUM])
    except Damaged:
        return False
    # The checksum counts its own field as spaces.
    return stated == sum(header) - sum(header[_CHECKSUM]) + 8 * ord(" ")


def _number(field: bytes) -> int:
    if field[0] == 0x80:  # GNU's base-256 numbers
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    if not digits.isdigit() or b"8" in digits or b"9" in digits:
        raise Damaged("a number in a tar header is damaged")
    return int(digits, 8)


def _name(header: bytes) -> str:
    name = _text(header[:100].split(b"\0", 1)[0])
    prefix = header[345:500].split(b"\0", 1)[0] if header[257:263] == b"ustar\0" else b""
    return f"{_text(prefix)}/{name}" if prefix else name


def _extension(data: Bytes, start: int, size: int) -> bytes:
    if size > _LONGEST_EXTENSION:
        raise Damaged("an extended header of the tar archive is implausibly long")
    return data[start : start + size].tobytes()


def _pax(records: bytes) -> dict[str, str]:
    """Return the ``length key=value`` records of a POSIX extended header."""
    facts: dict[str, str] = {}
    while records:
        digits, _, _ = records.partition(b" ")
        if not digits.isdigit() or len(digits) > 7 or not 3 < int(digits) <= len(records):
            raise Damaged("an extended header of the tar archive is damaged")
        record, records = records[: int(digits)], records[int(digits) :]
        key, _, value = record[len(digits) + 1 : -1].partition(b"=")
        facts[_text(key)] = _text(value)
    if not facts.get("size", "0").isdecimal() or len(facts.get("size", "0")) > 18:
        raise Damaged("an extended header of the tar archive is damaged")
    return facts


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")
