"""gzip, read with a budget: a small file must not unfold into a disk full of zeros."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from types import TracebackType

from embgeo.errors import UnreadableFile

MAGIC = b"\x1f\x8b"
#: Never unfold more than this,
MAX_BYTES = 64 * 2**30
#: nor more than this many times the compressed size …
MAX_RATIO = 100
#: … once the content is larger than this (small files of zeros are harmless).
RATIO_FREE_BYTES = 256 * 2**20


def is_gzip(head: bytes) -> bool:
    """Whether a file that begins with `head` is gzipped."""
    return head.startswith(MAGIC)


class BoundedGzip:
    """The content of a gzipped file as a stream that refuses to grow beyond a budget.

    Raises
    ------
    UnreadableFile
        From `read`: a damaged or truncated file, or one that unfolds beyond the budget.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        packed = path.stat().st_size
        self._budget = min(MAX_BYTES, max(RATIO_FREE_BYTES, packed * MAX_RATIO))
        self._given = 0
        self._file = gzip.GzipFile(path, "rb")

    def __enter__(self) -> BoundedGzip:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, fewer only at the end."""
        try:
            data = self._file.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UnreadableFile(
                f"its gzip data are damaged or cut off ({error})",
                where=self._path,
                way_out="download or compress it once more",
            ) from error
        self._given += len(data)
        if self._given > self._budget:
            raise UnreadableFile(
                f"its gzip data unfold to more than {self._budget // 2**20:,} MiB "
                f"from {self._path.stat().st_size / 2**20:,.1f} MiB, as a decompression bomb does",
                where=self._path,
                way_out="if you trust it, decompress it yourself and give the plain file",
            )
        return data
