"""Stored tensors become parameters: a weight with its scales, zero points, packing or mapping.

What a reader used is not a separate matrix any more.
"""

import re
from collections import ChainMap
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.io.bounded.guard import guard_opening, list_short, reading
from embgeo.io.checkpoint import Checkpoint, Tensor, replace_open
from embgeo.io.model import changed, quantized
from embgeo.io.model.candidates import is_real
from embgeo.io.model.decoders import DECODERS
from embgeo.io.model.facts import ModelFacts
from embgeo.io.model.parameter import BEFORE, Module, Reader, unreadable
from embgeo.io.parameter_names import (
    input_rank,
    is_averaged_copy,
    is_optimizer_state,
    is_other_embedding,
    is_sought,
    layer_of,
    module_of,
)

_READERS: dict[str, list[Reader]] = {}
for _decoder in DECODERS:
    if _decoder.read is not None:
        for _end in _decoder.ends:
            _READERS.setdefault(_end, []).append(_decoder.read)
#: Types of weights that are stored as they are.
_PLAIN = frozenset({"float16", "bfloat16", "float32", "float64"})
#: Names of tensors that change a weight of a plain type.
_PACKED = re.compile(r"\._packed_params.*$")
_CHANGES = re.compile(r"(^|\.)(modules_to_save\.|mapping$)")
#: Fewest bytes of codes of an embedding where the configuration says no sizes.
_FEWEST_BYTES = 4096
_LISTED = 3


def read_parameters(checkpoint: Checkpoint) -> Checkpoint:
    """Read the checkpoint with its parameters in place of the stored tensors; nothing is read."""
    stored = checkpoint.tensors
    by = {tensor.name: tensor for tensor in stored}
    made: dict[str, Tensor] = {}
    adapters = _find_adapters(stored)
    is_changed = bool(adapters) or any(_CHANGES.search(name) for name in by)
    with reading(checkpoint.path, checkpoint.format):
        for tensor in stored:
            if tensor.dtype in _PLAIN and not is_changed and tensor.name.endswith("weight"):
                continue  # most tensors of most checkpoints
            prefix, leaf = _split(tensor.name)
            if not _is_read(leaf):
                continue
            found = _read(Module(prefix, by, checkpoint.facts, adapters), tensor, leaf)
            if found is not None:
                opened = guard_opening(checkpoint.path, checkpoint.format, found.open)
                made[tensor.name] = replace_open(found, opened)
    used = {part for tensor in made.values() for part in tensor.parts} - set(made)
    tensors = _name_unknown([made.get(t.name, t) for t in stored if t.name not in used], checkpoint)
    tensors = [_name_axes(tensor) for tensor in tensors]
    names = {tensor.name for tensor in tensors}
    tensors += [
        replace(unreadable(name, (), "", f"cannot be read: {reason}", BEFORE), parts=(name,))
        for stored_name, reason in checkpoint.unread
        # Quantized modules of torch keep their weight among packed parameters.
        if is_sought(name := _PACKED.sub(".weight", stored_name)) and name not in names
    ]
    if any(name.endswith("d2t") for name in by):
        tensors = [_with_ids(by, tensor) for tensor in tensors]
    return replace(checkpoint, tensors=tuple(tensors), stored=stored)


def _is_read(leaf: str) -> bool:
    """Tell whether a last part of a name is that of codes or factors."""
    if leaf in _READERS or leaf in quantized.NAMED:
        return True
    return leaf.endswith("blocks") or leaf.startswith("trainable_tokens_delta")


def _split(name: str) -> tuple[str, str]:
    """Split a name into module and last part, without the name of an adapter behind it."""
    at = name.find("trainable_tokens_delta")
    if at < 0:
        at = name.rfind(".") + 1
    return name[:at], name[at:]


def _find_adapters(stored: tuple[Tensor, ...]) -> dict[str, list[Tensor]]:
    """Find the tensors of low-rank adapters by the module that they change."""
    found: dict[str, list[Tensor]] = {}
    for tensor in stored:
        at = tensor.name.find("lora_")
        if at >= 0 and (not at or tensor.name[at - 1] == "."):
            found.setdefault(tensor.name[:at], []).append(tensor)
    return found


def _read(module: Module, tensor: Tensor, leaf: str) -> Tensor | None:
    """Read the weight that a tensor is part of; a low-rank change comes after its decoding."""
    if leaf.endswith("blocks"):
        return quantized.read_blocks(module, leaf)
    if leaf in quantized.NAMED:
        return quantized.name_form(module, leaf)
    if leaf.startswith("trainable_tokens_delta"):
        return changed.read_trainable_tokens(module)
    readers = _READERS.get(leaf, ())
    found = next((one for read in readers if (one := read(module)) is not None), None)
    if leaf != "weight" or module.prefix.removesuffix("base_layer.") not in module.adapters:
        return found
    if found is not None and found.problem:
        return found
    of_base = replace(module, by=ChainMap({tensor.name: found or tensor}, dict(module.by)))
    merged = changed.read_lora(of_base)
    if found is None or merged is None:
        return merged or found
    parts = tuple(dict.fromkeys((*found.parts, *merged.parts)))
    return replace(merged, form=f"{found.form}; {merged.form}", parts=parts)


def _name_unknown(tensors: list[Tensor], checkpoint: Checkpoint) -> list[Tensor]:
    """Name an embedding or output of which there are only codes, in a form that is not known.

    What is stored beside the codes, such as their scales, may have the rows of the vocabulary, and
    must not take the place of the matrix.
    """
    modules = {
        module
        for t in tensors
        if not t.problem and _has_codes(t, checkpoint.facts) and (module := module_of(t.name))
    }
    if not modules:
        return tensors
    held: dict[str, list[Tensor]] = {module: [] for module in modules}
    for t in tensors:
        if (module := module_of(t.name)) in held:
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


def _name_axes(tensor: Tensor) -> Tensor:
    """Name an embedding that is stored with other than two axes: nothing takes its place."""
    if len(tensor.shape) == 2 or tensor.problem or not is_real(tensor.dtype):
        return tensor
    name = tensor.name
    if input_rank(name) not in (0, 1) or layer_of(name) is not None:
        return tensor
    if is_other_embedding(name) or is_optimizer_state(name) or is_averaged_copy(name):
        return tensor
    sizes = "×".join(f"{size:,}" for size in tensor.shape) or "one number"
    problem = f"is stored as {sizes}, not as a matrix"
    way_out = "save the matrix that is meant in a file of its own"
    return unreadable(name, tensor.shape, tensor.dtype, problem, way_out, tensor)


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


def _with_ids(by: dict[str, Tensor], tensor: Tensor) -> Tensor:
    """Add the ids of a draft head's rows: row i is token i + d2t[i] (EAGLE-3)."""
    outer = tensor.name.rpartition("lm_head")[0]
    offsets = by.get(f"{outer}d2t")
    if offsets is None or offsets.shape != tensor.shape[:1] or len(tensor.shape) != 2:
        return tensor

    def ids() -> Any:
        return np.arange(tensor.shape[0]) + np.asarray(offsets.open(), dtype=np.int64)

    return replace(tensor, row_ids=ids)
