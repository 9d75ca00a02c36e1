"""Parquet files with a column of vectors, read by pyarrow."""

from __future__ import annotations

from pathlib import Path

from embgeo.io.checkpoint import Checkpoint
from embgeo.io.formats.arrow.tables import open_table

NAME = "Parquet"
RECOGNIZED = "the magic string PAR1"
READ = "decoded by pyarrow into memory or a temporary file"
EXTRA = "arrow"

_MAGIC = b"PAR1"


def sniff(head: bytes) -> bool:
    """The magic string."""
    return head.startswith(_MAGIC)


def open_checkpoint(path: Path) -> Checkpoint:
    """The columns of vectors, with the words of the only column of text.

    Raises
    ------
    UnreadableFile
        Also where pyarrow is not installed.
    """
    return open_table(path, NAME)
