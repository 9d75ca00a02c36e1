"""Compressed files as streams with a budget: a small file must not fill the disk with zeros."""

from __future__ import annotations

import gzip
import os
import re
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from embgeo.files.guard import explain, refuse

#: Most bytes of content.
MAX_BYTES = 64 * 2**30
#: Most bytes of content per compressed byte, beyond `RATIO_FREE_BYTES`, which are read in seconds.
MAX_RATIO = 100
RATIO_FREE_BYTES = 64 * 2**20

#: Memory of a decompressor; zstd refuses larger windows by default, too.
_MEMORY = 128 * 2**20
_PIECE = 256 * 2**10
# A zstd block of 4 bytes may hold 128 KiB, and zstandard's output per call has no limit: 1 KiB of
# input bounds it by 32 MiB.
_ZSTD_PIECE = 2**10
#: Frames without content, of a few bytes each, take time and hold nothing.
_MOST_EMPTY_FRAMES = 10_000


class ByteStream(Protocol):
    """A stream of bytes; ``read`` returns nothing only at the end."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Codec:
    """A compression format: name, first bytes, how to open it, and the extra that it needs."""

    name: str
    start: re.Pattern[bytes]
    open: Callable[[BinaryIO, Path], ByteStream]
    extra: str = ""


def codec_of(head: bytes) -> Codec | None:
    """Return the compression of a file that starts with `head`; None for a plain file."""
    return next((codec for codec in CODECS if codec.start.match(head)), None)


class BoundedStream:
    """The content of an open compressed file as a stream with a budget.

    `read` raises UnreadableFile for a damaged or truncated file, or one beyond the budget; the
    constructor for a missing package.
    """

    def __init__(self, path: Path, file: BinaryIO, codec: Codec) -> None:
        self._path = path
        self._codec = codec
        self._packed = os.fstat(file.fileno()).st_size
        self._budget = min(MAX_BYTES, max(RATIO_FREE_BYTES, self._packed * MAX_RATIO))
        self._given = 0
        self._left = b""
        self._source = codec.open(file, path)

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer only at the end."""
        pieces = [self._left]
        held = len(self._left)
        while held < size and (piece := self._next(size - held)):
            pieces.append(piece)
            held += len(piece)
        data = b"".join(pieces)
        self._left = data[size:]
        return data[:size]

    def _next(self, size: int) -> bytes:
        try:
            piece = self._source.read(min(size, _PIECE))
        except (EOFError, ValueError, zlib.error, gzip.BadGzipFile) as error:
            raise refuse(
                self._path,
                f"its {self._codec.name} data are damaged or cut off ({error})",
            ) from error
        self._given += len(piece)
        if self._given > self._budget:
            raise refuse(
                self._path,
                f"its {self._codec.name} data unfold to more than {self._budget // 2**20:,} MiB "
                f"from {self._packed:,} bytes, as a decompression bomb does",
                "if you trust it, unpack it with gzip -d or zstd -d",
            )
        return piece


class _Frames:
    """Consecutive frames of zstd.

    `fresh` makes a decompressor with the interface of the standard library's, which raises `error`
    for bad data and gets `piece` bytes per call.
    """

    def __init__(
        self,
        file: BinaryIO,
        fresh: Callable[[], Any],
        error: type[Exception],
        piece: int = _PIECE,
    ) -> None:
        self._file = file
        self._error = error
        self._fresh = fresh
        self._machine = fresh()
        self._piece = piece
        self._pending = b""
        self._empty = 0

    def read(self, size: int) -> bytes:
        while True:
            if self._machine.eof:
                self._empty += 1
                if self._empty > _MOST_EMPTY_FRAMES:
                    raise ValueError("implausibly many frames are empty")
                rest = self._machine.unused_data or self._file.read(self._piece)
                if not rest:
                    return b""
                self._machine, self._pending = self._fresh(), rest
            if self._pending or self._machine.needs_input:
                data = self._pending or self._file.read(self._piece)
                self._pending = b""
                if not data:
                    raise EOFError("it ends inside its compressed data")
            else:
                data = b""
            if piece := self._decompress(data, size):
                self._empty = 0
                return piece

    def _decompress(self, data: bytes, size: int) -> bytes:
        try:
            piece: bytes = self._machine.decompress(data, size)
        except self._error as error:
            raise ValueError(str(error)) from error
        return piece


class _Zstandard:
    """zstandard's decompressor in the manner of the standard library's."""

    needs_input = True

    def __init__(self, machine: Any) -> None:
        self._machine = machine

    def __getattr__(self, name: str) -> Any:  # eof, unused_data
        return getattr(self._machine, name)

    def decompress(self, data: bytes, _size: int) -> bytes:
        """Return all content of `data`: this package cannot give a part of it."""
        return bytes(self._machine.decompress(data))


def _open_zstd(file: BinaryIO, path: Path) -> ByteStream:
    if sys.version_info >= (3, 14):
        from compression import zstd

        return _Frames(file, zstd.ZstdDecompressor, zstd.ZstdError)
    try:
        import zstandard
    except ImportError as error:
        raise refuse(path, *explain(error, extra="zstd")) from error

    def fresh() -> _Zstandard:
        machine = zstandard.ZstdDecompressor(max_window_size=_MEMORY)
        return _Zstandard(machine.decompressobj())

    return _Frames(file, fresh, zstandard.ZstdError, _ZSTD_PIECE)


CODECS = (
    Codec("gzip", re.compile(rb"\x1f\x8b"), lambda file, _: gzip.GzipFile(fileobj=file)),
    Codec("zstd", re.compile(rb"\x28\xb5\x2f\xfd"), _open_zstd, "zstd"),
)
