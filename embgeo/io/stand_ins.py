"""A checkpoint that comes through a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.io.bounded import scratch
from embgeo.io.bounded.compressed import MAX_BYTES
from embgeo.io.bounded.stand_in import error_named_as, named_as
from embgeo.io.checkpoint import Checkpoint

#: What stands for it on the command line …
SIGN = "-"
#: … and in messages.
CALLED = Path("stdin")

_PIECE = 2**20


def open_checkpoint(open_file: Callable[[Path], Checkpoint]) -> Checkpoint:
    """Whatever stdin gives, copied into a scratch file that `open_file` then opens.

    Raises
    ------
    UnreadableFile
        A terminal, more bytes than any checkpoint has, or what `open_file` refuses.
    """
    held = scratch.filled(_received(), CALLED, "what comes through stdin")
    try:
        checkpoint = open_file(held.path)
    except EmbgeoError as error:
        held.remove()
        raise error_named_as(CALLED, error, held) from error
    # Wrapped content has a scratch file of its own: what was piped in is to be hashed.
    return replace(named_as(CALLED, checkpoint, held), files=(held.path,))


def _received() -> Iterator[bytes]:
    if sys.stdin is None or sys.stdin.isatty():
        raise UnreadableFile(
            "is no pipe", where=CALLED, way_out="give a file name, or pipe a file into it"
        )
    total = 0
    while piece := sys.stdin.buffer.read(_PIECE):
        total += len(piece)
        if total > MAX_BYTES:
            raise UnreadableFile(
                f"gives more than {MAX_BYTES // 2**30} GiB",
                where=CALLED,
                way_out="save it as a file first",
            )
        yield piece
