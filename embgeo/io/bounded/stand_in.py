"""A scratch file that stands in for what the user named: it must not show its own name."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy.typing as npt

from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.io.bounded.scratch import ScratchFile
from embgeo.io.checkpoint import Checkpoint, Tensor


def named_as(path: Path, checkpoint: Checkpoint, held: ScratchFile) -> Checkpoint:
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


def error_named_as(path: Path, error: EmbgeoError, held: ScratchFile) -> UnreadableFile:
    """The same error about the file `path`."""
    text = str(error).replace(str(held.path), str(path))
    return UnreadableFile(text.replace(held.path.name, path.name))


def _open(tensor: Tensor, held: ScratchFile, path: Path) -> npt.NDArray[Any]:
    try:
        return tensor.open()
    except EmbgeoError as error:
        raise error_named_as(path, error, held) from error
