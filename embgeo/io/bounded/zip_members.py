"""Members of a zip archive as memory: stored ones mapped, others inflated within bounds."""

import errno
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embgeo.io.bounded.guard import Damaged, short
from embgeo.io.bounded.maps import Bytes, map_file
from embgeo.io.bounded.scratch import MEMORY_BYTES, write_scratch

MAGICS = (b"PK\x03\x04", b"PK\x05\x06")

#: About a hundred thousand members; zipfile takes ten times as much memory, and a second.
LARGEST_DIRECTORY = 8 * 2**20

#: A member beyond this size may not grow by more than this factor when it is inflated. Trained
#: weights compress by less than 2, only constant ones and bombs by more.
LARGE = 16 * 2**20
MOST_RATIO = 100

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
#: Length of a member's own header, without its name.
LOCAL_HEADER_BYTES = _LOCAL_HEADER.size
_CHUNK = 2**20

_ENCRYPTED = 1
_METHODS = {1: "shrink", 6: "implode", 9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstandard"}


@dataclass(frozen=True, slots=True)
class ZipMember:
    """One member: where its bytes lie in the file, and what the directory says of them."""

    name: str
    start: int
    stored: int
    size: int
    compressed: bool
    crc: int


@dataclass(frozen=True, slots=True)
class Archive:
    """A zip archive whose members have been checked against the file."""

    data: Bytes
    members: dict[str, ZipMember]

    def bytes_of(self, name: str, *, whole: bool = False) -> Bytes:
        """Return the member's bytes: a view of the map if they are stored uncompressed.

        The checksum of inflated members is always verified; `whole` verifies that of a stored one,
        too, which reads all of it.
        """
        member = self.members.get(name)
        if member is None:
            raise Damaged(f"{short(name)} is missing in the archive")
        if not member.compressed:
            raw = self._stored(member)
            # A checksum reads every byte of the map into memory.
            if whole and member.size <= MEMORY_BYTES and zlib.crc32(raw.data) != member.crc:
                raise Damaged(f"{short(name)} does not match its checksum")
            return raw
        if member.size <= MEMORY_BYTES:
            return _join(self.pieces_of(name), member.size)
        # Too large for memory: mapped from a file without a name.
        content = write_scratch(self.pieces_of(name), "the content of the archive")
        data = map_file(content.path)
        content.remove()
        return data

    def _stored(self, member: ZipMember) -> Bytes:
        return self.data[member.start : member.start + member.stored]

    def start_of(self, name: str, size: int) -> Bytes:
        """Return the member's first `size` bytes at most; no more is inflated."""
        member = self.members[name]
        if not member.compressed:
            return self._stored(member)[:size]
        return _join(self.pieces_of(name), min(size, member.size))

    def pieces_of(self, name: str) -> Iterator[bytes]:
        """Yield the member's bytes in pieces; the last step verifies size and checksum."""
        member = self.members[name]
        raw = self._stored(member)
        size, checksum = 0, 0
        for piece in _inflate_pieces(member, raw) if member.compressed else _copy_pieces(raw):
            size += len(piece)
            if size > member.size:
                raise Damaged(f"{short(name)} is longer than the directory says")
            checksum = zlib.crc32(piece, checksum)
            yield piece
        if size < member.size:
            raise Damaged(f"{short(name)} is shorter than the directory says")
        if checksum != member.crc:
            raise Damaged(f"{short(name)} does not match its checksum")


def open_archive(path: Path) -> Archive:
    """Map the file and read its directory.

    Raises
    ------
    Damaged
        Members that overlap, repeat a name, leave the file, are encrypted, or would grow
        implausibly.
    OSError, zipfile.BadZipFile
    """
    return archive_in(map_file(path))


def archive_in(data: Bytes) -> Archive:
    """Read the directory of an archive in memory, which may be part of a larger file."""
    # `io.BytesIO` would copy the archive.
    file = DirectoryFile(len(data), lambda start, stop: data[start:stop].tobytes())
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
    members: dict[str, ZipMember] = {}
    for info in infos:
        if info.filename in members:
            raise Damaged(f"the archive has two members named {short(info.filename)}")
        members[info.filename] = _member(data, info)
    _refuse_overlap(members)
    return Archive(data, members)


def first_name(head: bytes) -> str:
    """Name of the first member in the first bytes of an archive; empty if there is none."""
    name, _ = _name_and_data(head)
    return head[LOCAL_HEADER_BYTES:name].decode("utf-8", "replace")


def first_start(data: Bytes) -> int:
    """Start of the bytes of the member whose header is at the start of `data`; −1 without one."""
    return _name_and_data(data[:LOCAL_HEADER_BYTES].tobytes())[1]


def _name_and_data(head: bytes) -> tuple[int, int]:
    """End of a member's name and start of its bytes by its own header; (0, −1) without one."""
    if len(head) < LOCAL_HEADER_BYTES or head[:4] != MAGICS[0]:
        return 0, -1
    *_, name, extra = _LOCAL_HEADER.unpack_from(head)
    return LOCAL_HEADER_BYTES + name, LOCAL_HEADER_BYTES + name + extra


class DirectoryFile:
    """A file whose directory zipfile reads; ``read(start, stop)`` gives its bytes.

    The directory is one read, whichever of the records at the end states its size.
    """

    def __init__(self, size: int, read: Callable[[int, int], bytes]) -> None:
        self._size, self._read, self._at = size, read, 0

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, "Invalid argument")  # what zipfile expects of a file
        self._at = start + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        start = self._at
        length = self._size - start if size is None or size < 0 else size
        if length > LARGEST_DIRECTORY:
            raise Damaged("the archive has implausibly many members")
        self._at = max(start, min(start + length, self._size))
        return self._read(start, self._at) if start < self._at else b""


def _member(data: Bytes, info: zipfile.ZipInfo) -> ZipMember:
    name = short(info.filename)
    if info.flag_bits & _ENCRYPTED:
        raise Damaged(f"{name} is encrypted", "unpack the archive and name the file inside")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        method = _METHODS.get(info.compress_type, str(info.compress_type))
        raise Damaged(f"{name} is compressed by {method}", "save it without compression")
    compressed = info.compress_type == zipfile.ZIP_DEFLATED
    if info.header_offset < 0 or info.header_offset + LOCAL_HEADER_BYTES > len(data):
        raise Damaged(f"{name} lies outside of the file")
    header = first_start(data[info.header_offset :])
    if header < 0:
        raise Damaged(f"{name} does not start where the directory says")
    start = info.header_offset + header
    if start + info.compress_size > len(data):
        raise Damaged(f"{name} is longer than the file")
    if not compressed and info.compress_size != info.file_size:
        raise Damaged(f"{name} has two different sizes")
    if info.file_size > max(LARGE, MOST_RATIO * info.compress_size):
        raise Damaged(
            f"{name} would grow from {info.compress_size:,} to {info.file_size:,} bytes",
            "if this is not an attack, save it without compression",
        )
    return ZipMember(info.filename, start, info.compress_size, info.file_size, compressed, info.CRC)


def _refuse_overlap(members: dict[str, ZipMember]) -> None:
    end = 0
    for member in sorted(members.values(), key=lambda m: (m.start, m.stored)):
        # An empty member may lie where the next header does.
        if member.stored and member.start < end:
            raise Damaged(f"{short(member.name)} overlaps another member of the archive")
        end = max(end, member.start + member.stored)


def _join(pieces: Iterator[bytes], size: int) -> Bytes:
    """Join the first `size` bytes of `pieces`, whose last step may check them."""
    # np.empty commits memory only as it is filled: a false size costs nothing.
    out = np.empty(size, dtype=np.uint8)
    filled = 0
    for piece in pieces:
        kept = piece[: size - filled]
        out[filled : filled + len(kept)] = np.frombuffer(kept, dtype=np.uint8)
        filled += len(kept)
        if filled == size and len(kept) < len(piece):
            break
    out.flags.writeable = False
    return out


def _inflate_pieces(member: ZipMember, raw: Bytes) -> Iterator[bytes]:
    """Yield inflate a member's bytes, a piece at a time."""
    machine = zlib.decompressobj(-zlib.MAX_WBITS)
    fed, pending = 0, b""
    while not machine.eof:
        if not pending:
            pending = raw[fed : fed + _CHUNK].tobytes()
            fed += len(pending)
        if not pending:
            raise Damaged(f"{short(member.name)} ends early")
        yield machine.decompress(pending, _CHUNK)
        pending = machine.unconsumed_tail


def _copy_pieces(raw: Bytes) -> Iterator[bytes]:
    for start in range(0, len(raw), _CHUNK):
        yield raw[start : start + _CHUNK].tobytes()
