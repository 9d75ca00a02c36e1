"""Scratch files that stand in for what the user named: standard input, unpacked content."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy.typing as npt

from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.io.bounded import scratch
from embgeo.io.bounded.compressed import MAX_BYTES
from embgeo.io.bounded.guard import reading
from embgeo.io.checkpoint import Checkpoint, Tensor

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
    with reading(CALLED, "pipe"):
        held = scratch.write_scratch(_receive(), "what comes through stdin")
    try:
        checkpoint = open_file(held.path)
    except EmbgeoError as error:
        held.remove()
        raise rename_error(CALLED, error, held) from error
    # Wrapped content has a scratch file of its own: what was piped in is to be hashed.
    return replace(rename_checkpoint(CALLED, checkpoint, held), files=(held.path,))


def _receive() -> Iterator[bytes]:
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


def rename_checkpoint(path: Path, checkpoint: Checkpoint, held: scratch.ScratchFile) -> Checkpoint:
    """A checkpoint read from `held` under the name `path`.

    The scratch file lives as long as the checkpoint's tensors.
    """
    return replace(
        checkpoint,
        path=path,
        tensors=tuple(replace(t, open=partial(_open, t, held, path)) for t in checkpoint.tensors),
        tokens_source=checkpoint.tokens_source.replace(held.path.name, path.name),
        notes=tuple(note.replace(held.path.name, path.name) for note in checkpoint.notes),
    )


def rename_error(path: Path, error: EmbgeoError, held: scratch.ScratchFile) -> UnreadableFile:
    """The same error about the file `path`."""
    text = str(error).replace(str(held.path), str(path))
    return UnreadableFile(text.replace(held.path.name, path.name))


def _open(tensor: Tensor, held: scratch.ScratchFile, path: Path) -> npt.NDArray[Any]:
    try:
        return tensor.open()
    except EmbgeoError as error:
        raise rename_error(path, error, held) from error
