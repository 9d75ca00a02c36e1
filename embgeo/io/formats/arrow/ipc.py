"""Arrow's own files: IPC files (Feather version 2) and streams, read by pyarrow."""

from __future__ import annotations

from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.small_files import read_head
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.formats.arrow.tables import open_table

NAME = "Arrow"
RECOGNIZED = "the magic string ARROW1 or FEA1, or the start of a stream"
READ = "mapped where a file holds one uncompressed piece, else decoded by pyarrow"
EXTRA = "arrow"

_FILE = b"ARROW1"
_OLD_FEATHER = b"FEA1"
_CONTINUATION = b"\xff\xff\xff\xff"
_LONGEST_SCHEMA = 16 * 2**20


def sniff(head: bytes) -> bool:
    """One of the magic strings, or the mark and a sensible length before a stream's schema."""
    if head.startswith((_FILE, _OLD_FEATHER)):
        return True
    length = int.from_bytes(head[4:8], "little")
    return head.startswith(_CONTINUATION) and length % 8 == 0 and 0 < length < _LONGEST_SCHEMA


def open_checkpoint(path: Path) -> Checkpoint:
    """The columns of vectors, with the words of the only column of text.

    Raises
    ------
    UnreadableFile
        Also where pyarrow is not installed, and for Feather version 1.
    """
    if path.is_file() and read_head(path).startswith(_OLD_FEATHER):
        raise UnreadableFile(
            "a file of Feather version 1, which is not read",
            where=path,
            way_out="read it with pandas and write it as Parquet",
        )
    return open_table(path, NAME)
