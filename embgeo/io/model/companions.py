"""Stored tensors become parameters: a weight with its scales, zero points, packing or mapping.

What a reader used is not a separate matrix any more.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from embgeo.io.bounded.guard import guard_opening, list_short, reading
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.model import changed, quantized
from embgeo.io.model.candidates import is_real
from embgeo.io.model.facts import ModelFacts
from embgeo.io.model.parameter import BEFORE, Module, unreadable
from embgeo.io.parameter_names import input_rank, layer_of, output_rank

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
#: Fewest bytes of codes of an embedding where the configuration says no sizes.
_FEWEST_BYTES = 4096
_LISTED = 3
_LONGEST_PATH = 1000


def read_parameters(checkpoint: Checkpoint) -> Checkpoint:
    """Read the checkpoint with its parameters in place of the stored tensors; nothing is read."""
    stored = checkpoint.tensors
    by = {tensor.name: tensor for tensor in stored}
    made: dict[str, Tensor] = {}
    has_adapters = any("lora_" in name for name in by)
    for tensor in stored:
        if tensor.dtype in _PLAIN and not has_adapters and tensor.name.endswith("weight"):
            continue  # most tensors of most checkpoints
        at = tensor.name.rfind(".") + 1
        leaf, module = tensor.name[at:], Module(tensor.name[:at], by, checkpoint.facts)
        readers = _READERS.get(leaf, ())
        if leaf.endswith("blocks"):
            readers = (partial(quantized.read_blocks, leaf=leaf),)
        if readers:
            with reading(checkpoint.path, checkpoint.format):
                found = next((one for read in readers if (one := read(module)) is not None), None)
            if found is not None:
                opened = guard_opening(checkpoint.path, checkpoint.format, found.open)
                made[tensor.name] = replace(found, open=opened)
    used = {part for tensor in made.values() for part in tensor.parts} - set(made)
    tensors = _name_unknown([made.get(t.name, t) for t in stored if t.name not in used], checkpoint)
    names = {tensor.name for tensor in tensors}
    tensors += [
        replace(unreadable(name, (), "", f"cannot be read: {reason}", BEFORE), parts=(name,))
        for name, reason in checkpoint.unread
        if name not in names and is_sought(name)
    ]
    return replace(checkpoint, tensors=tuple(_with_ids(by, t) for t in tensors), stored=stored)


def _name_unknown(tensors: list[Tensor], checkpoint: Checkpoint) -> list[Tensor]:
    """Name an embedding or output of which there are only codes, in a form that is not known.

    What is stored beside the codes, such as their scales, may have the rows of the vocabulary, and
    must not take the place of the matrix.
    """
    modules = {
        module
        for t in tensors
        if not t.problem and _has_codes(t, checkpoint.facts) and (module := _module_of(t.name))
    }
    if not modules:
        return tensors
    held: dict[str, list[Tensor]] = {module: [] for module in modules}
    for t in tensors:
        if (module := _module_of(t.name)) in held:
            held[module].append(t)
    method = checkpoint.facts.quantization.get("quant_method")
    by_whom = f" by {method}" if isinstance(method, str) and method.isprintable() else ""
    kept = tensors
    for module, parts in held.items():
        if any(t.problem or t.form or _is_matrix(t) for t in parts):
            continue
        parts.sort(key=lambda t: -t.nbytes)
        listed = list_short([t.name.removeprefix(module).lstrip(".:") for t in parts], _LISTED)
        problem = f"is quantized{by_whom} in a form that is not known ({listed})"
        shape, dtype = parts[0].shape, parts[0].dtype
        named = unreadable(f"{module}.weight", shape, dtype, problem, BEFORE, *parts)
        kept = [*(t for t in kept if t.name not in named.parts), named]
    return kept


def _has_codes(tensor: Tensor, facts: ModelFacts) -> bool:
    """Tell whether integers or FP8 numbers are as many as the codes of an embedding."""
    if tensor.dtype in _PLAIN or layer_of(tensor.name) is not None:
        return False
    fewest = _FEWEST_BYTES
    if facts.vocabulary and facts.columns:  # half a bit for each entry
        fewest = facts.vocabulary * facts.columns // 16
    return tensor.nbytes >= fewest


def _is_matrix(tensor: Tensor) -> bool:
    return len(tensor.shape) == 2 and is_sought(tensor.name) and is_real(tensor.dtype)


def _module_of(name: str) -> str:
    """Get the outermost module on the path of a name that is an embedding or an output
    projection.
    """
    ends = (at for at, sign in enumerate(name[:_LONGEST_PATH]) if sign in ".:/")
    found = (name[:end] for end in ends)
    return next((one for one in found if _is_surely_sought(one)), "")


def _is_surely_sought(name: str) -> bool:
    return input_rank(name) in (0, 1) or output_rank(name) == 0


def is_sought(name: str) -> bool:
    """Tell whether a name is that of an embedding or, surely, of an output projection."""
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
