"""Compressed files as streams with a budget: a small file must not unfold into a disk of zeros."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from embgeo.io.bounded.guard import refuse

#: Never unfold more than this,
MAX_BYTES = 64 * 2**30
#: nor more than this many times the compressed size …
MAX_RATIO = 100
#: … once the content is larger than this (it is read to its end in a few seconds, whatever it is).
RATIO_FREE_BYTES = 64 * 2**20

#: What a decompressor may need: xz -9 takes 65 MiB, zstd refuses larger windows by default too.
_MEMORY = 128 * 2**20
_PIECE = 256 * 2**10
# A zstd block of 4 bytes may stand for 128 KiB, and zstandard's decompressor has no limit to what
# one call gives: 1 KiB of input bounds it by 32 MiB.
_ZSTD_PIECE = 2**10


class ByteStream(Protocol):
    """A stream of bytes; ``read`` gives nothing only at the end."""

    def read(self, size: int) -> bytes: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Codec:
    """A way to compress a file: its name, how it is recognized, what opens it, the extra needed."""

    name: str
    start: re.Pattern[bytes]
    open: Callable[[Path], ByteStream]
    extra: str = ""


def codec_of(head: bytes) -> Codec | None:
    """How a file that begins with `head` is compressed; None if it is not."""
    return next((codec for codec in CODECS if codec.start.match(head)), None)


class BoundedStream:
    """The content of a compressed file as a stream that refuses to grow beyond a budget.

    Parameters
    ----------
    path : Path
    codec : Codec
    packed : int, optional
        Compressed size that the budget is counted from: the file's own, unless it was itself
        unfolded from a smaller one.

    Raises
    ------
    UnreadableFile
        From `read`: a damaged or truncated file, or one that unfolds beyond the budget. From the
        constructor: zstd without the package that reads it.
    """

    def __init__(self, path: Path, codec: Codec, packed: int | None = None) -> None:
        self._path = path
        self._codec = codec
        self._packed = path.stat().st_size if packed is None else packed
        self._budget = min(MAX_BYTES, max(RATIO_FREE_BYTES, self._packed * MAX_RATIO))
        self._given = 0
        self._left = b""
        self._source = codec.open(path)

    def __enter__(self) -> BoundedStream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._source.close()

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, fewer only at the end."""
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
                "download or compress it again",
            ) from error
        self._given += len(piece)
        if self._given > self._budget:
            raise refuse(
                self._path,
                f"its {self._codec.name} data unfold to more than {self._budget // 2**20:,} MiB "
                f"from {self._packed:,} bytes, as a decompression bomb does",
                "if you trust it, decompress it yourself and give the plain file",
            )
        return piece


class _Frames:
    """One stream of compressed data after the other, as bzip2, xz and zstd files hold them.

    Parameters
    ----------
    path : Path
    fresh : callable
        Gives a decompressor in the manner of the standard library's ``bz2.BZ2Decompressor``.
    error : type of exception
        What it raises on bad data.
    piece : int
        Bytes of input for one call of it.
    """

    def __init__(
        self,
        path: Path,
        fresh: Callable[[], Any],
        error: type[Exception],
        piece: int = _PIECE,
    ) -> None:
        self._file = path.open("rb")
        self._error = error
        self._fresh = fresh
        self._machine = fresh()
        self._piece = piece
        self._pending = b""

    def read(self, size: int) -> bytes:
        while True:
            if self._machine.eof:
                # xz pads its streams with zeros.
                rest = self._machine.unused_data.lstrip(b"\0")
                while not rest and (more := self._file.read(self._piece)):
                    rest = more.lstrip(b"\0")
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
                return piece

    def _decompress(self, data: bytes, size: int) -> bytes:
        try:
            piece: bytes = self._machine.decompress(data, size)
        except self._error as error:
            raise ValueError(str(error)) from error
        return piece

    def close(self) -> None:
        self._file.close()


class _Zstandard:
    """zstandard's decompressor in the manner of the standard library's."""

    needs_input = True

    def __init__(self, machine: Any) -> None:
        self._machine = machine

    @property
    def eof(self) -> bool:
        return bool(self._machine.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._machine.unused_data)

    def decompress(self, data: bytes, _size: int) -> bytes:
        """All that `data` unfold to: this package cannot give a part of it."""
        return bytes(self._machine.decompress(data))


def _open_bzip2(path: Path) -> ByteStream:
    # It reports bad data as OSError, as if the disk had failed.
    return _Frames(path, bz2.BZ2Decompressor, OSError)


def _open_xz(path: Path) -> ByteStream:
    def fresh() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)

    return _Frames(path, fresh, lzma.LZMAError)


def _open_zstd(path: Path) -> ByteStream:
    if sys.version_info >= (3, 14):
        from compression import zstd

        return _Frames(path, zstd.ZstdDecompressor, zstd.ZstdError)
    try:
        import zstandard
    except ImportError as error:
        raise refuse(
            path,
            "is compressed with zstd, which needs an extra package",
            "pip install 'embgeo[zstd]', or decompress it first",
        ) from error

    def fresh() -> _Zstandard:
        machine = zstandard.ZstdDecompressor(max_window_size=_MEMORY)
        return _Zstandard(machine.decompressobj())

    return _Frames(path, fresh, zstandard.ZstdError, _ZSTD_PIECE)


#: Every way of compression that is read.
CODECS = (
    Codec("gzip", re.compile(rb"\x1f\x8b"), gzip.GzipFile),
    Codec("bzip2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), _open_bzip2),
    Codec("xz", re.compile(rb"\xfd7zXZ\0"), _open_xz),
    Codec("zstd", re.compile(rb"\x28\xb5\x2f\xfd"), _open_zstd, "zstd"),
)
