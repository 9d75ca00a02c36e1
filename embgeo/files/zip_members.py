"""Members of a zip archive as memory: stored ones mapped, others inflated within bounds."""

import errno
import os
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embgeo.files.guard import Damaged, short
from embgeo.files.maps import Bytes, map_file
from embgeo.files.scratch import MEMORY_BYTES, write_scratch

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
# Inflated pieces are checked and written one by one: a bomb is noticed after the first.
_CHUNK = 2**20
#: The end of an archive that is read at once: the longest comment, and directories of few members.
_TAIL = 2**16 + 2**10

_ENCRYPTED = 1
_METHODS = {1: "shrink", 6: "implode", 9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstandard"}


@dataclass(frozen=True, slots=True)
class ZipMember:
    """One member by the directory: its own header begins at `header`, its bytes end by `limit`."""

    name: str
    header: int
    limit: int
    stored: int
    size: int
    compressed: bool
    crc: int


@dataclass(frozen=True, slots=True)
class Archive:
    """A zip archive whose directory has been checked against the file.

    A member's own header is read when the member is: listing an archive of a remote file takes one
    read of its end.
    """

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
        head = self.data[member.header : member.header + LOCAL_HEADER_BYTES].tobytes()
        length = _header_length(head)
        if not length:
            raise Damaged(f"{short(member.name)} does not start where the directory says")
        start = member.header + length
        if start + member.stored > member.limit:
            raise Damaged(f"{short(member.name)} overlaps what follows it in the archive")
        return self.data[start : start + member.stored]

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
    file = DirectoryFile(data)
    with zipfile.ZipFile(file) as archive:
        infos, directory = archive.infolist(), archive.start_dir
    names = {info.filename for info in infos}
    if len(names) < len(infos):
        repeated = next(name for name, n in Counter(i.filename for i in infos).items() if n > 1)
        raise Damaged(f"the archive has two members named {short(repeated)}")
    ends = _ends(infos, directory)
    members = {i.filename: _member(i, end, len(data)) for i, end in zip(infos, ends, strict=True)}
    return Archive(data, members)


def _ends(infos: list[zipfile.ZipInfo], directory: int) -> list[int]:
    """Bytes at which the members end at the latest: where the next one or the directory begins.

    An empty member may lie anywhere.
    """
    filled = [i for i, info in enumerate(infos) if info.compress_size]
    filled.sort(key=lambda i: (infos[i].header_offset, infos[i].compress_size))
    ends, end = [directory] * len(infos), directory
    for i in reversed(filled):
        ends[i], end = end, infos[i].header_offset
    return ends


def first_name(head: bytes) -> str:
    """Name of the first member in the first bytes of an archive; empty if there is none."""
    if not _header_length(head):
        return ""
    stop = LOCAL_HEADER_BYTES + _LOCAL_HEADER.unpack_from(head)[-2]
    return head[LOCAL_HEADER_BYTES:stop].decode("utf-8", "replace")


def _header_length(head: bytes) -> int:
    """Length of a member's own header with its name, by its first bytes; 0 without one."""
    if len(head) < LOCAL_HEADER_BYTES or head[:4] != MAGICS[0]:
        return 0
    *_, name, extra = _LOCAL_HEADER.unpack_from(head)
    return int(LOCAL_HEADER_BYTES + name + extra)


class DirectoryFile:
    """A file whose directory zipfile reads.

    The end of the file is read once: zipfile asks for its records and the directory in turn.
    """

    def __init__(self, data: Bytes) -> None:
        self._data, self._at = data, 0
        self._tail_at = max(0, len(data) - _TAIL)
        self._tail = data[self._tail_at :].tobytes()

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._data)}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, "Invalid argument")  # what zipfile expects of a file
        self._at = start + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        start = self._at
        length = len(self._data) - start if size is None or size < 0 else size
        if length > LARGEST_DIRECTORY:
            raise Damaged("the archive has implausibly many members")
        self._at = max(start, min(start + length, len(self._data)))
        if start >= self._tail_at:
            return self._tail[start - self._tail_at : self._at - self._tail_at]
        return self._data[start : self._at].tobytes()


def _member(info: zipfile.ZipInfo, end: int, size: int) -> ZipMember:
    name = short(info.filename)
    if info.flag_bits & _ENCRYPTED:
        raise Damaged(f"{name} is encrypted", "unzip it and name the file inside")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        method = _METHODS.get(info.compress_type, str(info.compress_type))
        raise Damaged(f"{name} is compressed by {method}", "unzip it, and zip it with -0")
    compressed = info.compress_type == zipfile.ZIP_DEFLATED
    # Of its own header the length is not yet known; it has at least these bytes and the name.
    least = info.header_offset + LOCAL_HEADER_BYTES + info.compress_size
    if info.header_offset < 0 or least > size:
        raise Damaged(f"{name} lies outside of the file")
    if info.compress_size and least > end:
        raise Damaged(f"{name} overlaps another member of the archive")
    if not compressed and info.compress_size != info.file_size:
        raise Damaged(f"{name} has two different sizes")
    if info.file_size > max(LARGE, MOST_RATIO * info.compress_size):
        raise Damaged(
            f"{name} would grow from {info.compress_size:,} to {info.file_size:,} bytes",
            "if this is not an attack, unzip it, and zip it with -0",
        )
    return ZipMember(
        info.filename, info.header_offset, end, info.compress_size, info.file_size, compressed,
        info.CRC,
    )  # fmt: skip


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
    """Inflate a member's bytes, a piece at a time."""
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
