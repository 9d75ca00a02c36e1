"""fastText's binary models: recognised, and refused by name."""

from __future__ import annotations

import struct
from pathlib import Path

from embgeo.errors import UnreadableFile
from embgeo.sources.base import Checkpoint

NAME = "fastText binary"

_MAGIC = struct.pack("<i", 793712314)

# Models from before the magic number begin with twelve settings (dim, ws, epoch, minCount, neg,
# wordNgrams, loss, model, bucket, minn, maxn, lrUpdateRate), the sampling threshold, and the
# sizes of the dictionary (all, words, labels).
_OLD_HEADER = struct.Struct("<12id3i")
_LOSSES = _MODELS = (1, 2, 3)


def sniff(head: bytes) -> bool:
    """The magic number, or the settings at the start of models that are older than it."""
    return head.startswith(_MAGIC) or _is_old(head)


def open_checkpoint(path: Path) -> Checkpoint:
    """Always refuse.

    Raises
    ------
    UnreadableFile
    """
    raise UnreadableFile(
        "a binary fastText model, a format that is not read yet",
        where=path,
        way_out="give the .vec file that fastText writes beside it",
    )


def _is_old(head: bytes) -> bool:
    if len(head) < _OLD_HEADER.size:
        return False
    fields = _OLD_HEADER.unpack_from(head)
    dim, loss, model, threshold = fields[0], fields[6], fields[7], fields[12]
    entries, words, labels = fields[13:]
    return (
        0 < dim <= 65536
        and loss in _LOSSES
        and model in _MODELS
        and 0 <= threshold <= 1
        and words >= 0
        and labels >= 0
        and entries == words + labels > 0
    )
