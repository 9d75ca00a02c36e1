"""torch checkpoints from before torch 1.6: recognised, and refused by name."""

from __future__ import annotations

from pathlib import Path

from embgeo.errors import UnreadableFile
from embgeo.sources.base import Checkpoint

NAME = "legacy torch checkpoint"

#: The first of several pickles in the file is this number, as an integer of ten bytes.
_MAGIC = b"\x8a\x0a" + 0x1950A86A20F9469CFC6C.to_bytes(10, "little") + b"."


def sniff(head: bytes) -> bool:
    """The magic number, behind the byte that says which pickle protocol follows."""
    return head[:1] == b"\x80" and head[2 : 2 + len(_MAGIC)] == _MAGIC


def open_checkpoint(path: Path) -> Checkpoint:
    """Always refuse.

    Raises
    ------
    UnreadableFile
    """
    raise UnreadableFile(
        "a torch checkpoint in the format from before torch 1.6, which is not read yet",
        where=path,
        way_out="load it once with torch and save it again with torch.save",
    )
