"""Hidden states of a model: a matrix, or an array of more axes whose last one is the width."""

from __future__ import annotations

from dataclasses import replace

from embgeo.core.matrix import Matrix
from embgeo.io.bounded.guard import short
from embgeo.io.bounded.maps import Array, count
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.choosing import TensorRole

HIDDEN_STATES = TensorRole(
    "hidden_tensor",
    "the hidden states",
    "hidden states are an array whose last axis is as wide as the embedding",
)


def flatten(checkpoint: Checkpoint) -> Checkpoint:
    """The same tensors as matrices: all axes but the last one in one."""
    return replace(checkpoint, tensors=tuple(map(_flatten_tensor, checkpoint.tensors)))


def shape_note(checkpoint: Checkpoint, states: Matrix) -> tuple[str, ...]:
    """A note where the states are stored in more than two axes."""
    stored = next(t for t in checkpoint.tensors if t.name == states.origin.tensor)
    if len(stored.shape) == 2:
        return ()
    shape = "×".join(f"{size:,}" for size in stored.shape)
    named = f" of {short(stored.name)}" if stored.name else ""
    return (f"the {shape} hidden states{named} are read as {states.n:,} rows",)


def _flatten_tensor(tensor: Tensor) -> Tensor:
    if len(tensor.shape) < 3:
        return tensor
    shape = (count(tensor.shape[:-1]), tensor.shape[-1])

    def open_flat() -> Array:
        return tensor.open().reshape(shape)

    return replace(tensor, shape=shape, open=open_flat)
