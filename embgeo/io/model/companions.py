"""Stored tensors become parameters: a weight with its scales, zero points, packing or mapping.

What a reader used is not a separate matrix any more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.io.bounded.guard import guard_opening, reading
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.model import changed, quantized
from embgeo.io.model.parameter import BEFORE, Module, unreadable
from embgeo.io.parameter_names import input_rank, output_rank

_READERS = {
    leaf: (
        *quantized.READERS.get(leaf, ()),
        *changed.READERS.get(leaf, ()),
        *quantized.LAST.get(leaf, ()),
    )
    for leaf in {**quantized.READERS, **changed.READERS}
}
#: Types of weights that are stored as they are.
_PLAIN = frozenset({"float16", "bfloat16", "float32", "float64"})


def read_parameters(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint with its parameters in place of the stored tensors; nothing is read."""
    stored = checkpoint.tensors
    by = {tensor.name: tensor for tensor in stored}
    made: dict[str, Tensor] = {}
    has_adapters = any("lora_" in name for name in by)
    for tensor in stored:
        if tensor.dtype in _PLAIN and not has_adapters and tensor.name.endswith("weight"):
            continue  # most tensors of most checkpoints
        at = tensor.name.rfind(".") + 1
        readers = _READERS.get(tensor.name[at:], ())
        if readers:
            module = Module(tensor.name[:at], by, checkpoint.facts)
            with reading(checkpoint.path, checkpoint.format):
                found = next((one for read in readers if (one := read(module)) is not None), None)
            if found is not None:
                opened = guard_opening(checkpoint.path, checkpoint.format, found.open)
                made[tensor.name] = replace(found, open=opened)
    used = {part for tensor in made.values() for part in tensor.parts} - set(made)
    tensors = [made.get(t.name, t) for t in stored if t.name not in used]
    names = {tensor.name for tensor in tensors}
    tensors += [
        replace(unreadable(name, (), "", f"cannot be read: {reason}", BEFORE), parts=(name,))
        for name, reason in checkpoint.unread
        if name not in names and is_sought(name)
    ]
    return replace(checkpoint, tensors=tuple(_with_ids(by, t) for t in tensors), stored=stored)


def is_sought(name: str) -> bool:
    """Whether a name is that of an embedding or, surely, of an output projection."""
    return input_rank(name) is not None or output_rank(name) == 0


def _with_ids(by: dict[str, Tensor], tensor: Tensor) -> Tensor:
    """Add the ids of a draft head's rows: row i is token i + d2t[i] (EAGLE-3)."""
    outer = tensor.name.rpartition("lm_head")[0]
    offsets = by.get(f"{outer}d2t")
    if offsets is None or offsets.shape != tensor.shape[:1] or len(tensor.shape) != 2:
        return tensor

    def ids() -> Any:
        return np.arange(tensor.shape[0]) + np.asarray(offsets.open(), dtype=np.int64)

    return replace(tensor, row_ids=ids)
