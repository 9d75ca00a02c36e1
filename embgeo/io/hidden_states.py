"""Hidden states of a model: a matrix, or an array of more axes whose last one is the width."""

from __future__ import annotations

from dataclasses import replace

from embgeo.core.errors import AmbiguousTensor, BadOption
from embgeo.core.matrix import Matrix
from embgeo.io.bounded.guard import short
from embgeo.io.bounded.maps import Array, count
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.loading import Options, build

#: What errors about a checkpoint say, and what is meant here.
_WORDS = (
    ("--tensor", "--hidden-tensor"),
    ("the embedding matrix", "the hidden states"),
    (
        "an embedding is a matrix with a row for each token",
        "hidden states are an array whose last axis is as wide as the embedding",
    ),
)


def load_hidden(
    checkpoint: Checkpoint, given: str, tensor: str | None, *, hash_file: bool
) -> tuple[Matrix, tuple[str, ...]]:
    """The states as a matrix with one a row, and notes on how they lay in the file.

    Parameters
    ----------
    checkpoint : Checkpoint
    given : str
        The path as the user wrote it.
    tensor : str, optional
        Name of the array, where the file holds several.
    hash_file : bool

    Raises
    ------
    EmbgeoError
        As :func:`embgeo.io.loading.build`, in words about hidden states.
    """
    flat = replace(checkpoint, tensors=tuple(map(_flattened, checkpoint.tensors)))
    try:
        options = Options(tensor=tensor, output="none", hash_file=hash_file)
        states = build(flat, given, options)
    except (AmbiguousTensor, BadOption) as error:
        said = _about_states(error.cause), _about_states(error.way_out)
        raise type(error)(said[0], where=error.where, way_out=said[1]) from error
    stored = next(t for t in checkpoint.tensors if t.name == states.origin.tensor)
    if len(stored.shape) == 2:
        return states, ()
    shape = "×".join(f"{size:,}" for size in stored.shape)
    named = f" of {short(stored.name)}" if stored.name else ""
    return states, (f"the {shape} hidden states{named} are read as {states.n:,} rows",)


def _flattened(tensor: Tensor) -> Tensor:
    """All axes but the last one in one."""
    if len(tensor.shape) < 3:
        return tensor
    shape = (count(tensor.shape[:-1]), tensor.shape[-1])

    def opened() -> Array:
        return tensor.open().reshape(shape)

    return replace(tensor, shape=shape, open=opened)


def _about_states(text: str) -> str:
    for general, meant in _WORDS:
        text = text.replace(general, meant)
    return text
