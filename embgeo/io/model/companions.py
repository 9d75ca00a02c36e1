"""Stored tensors become parameters: a weight with its scales, zero points, packing or mapping.

What a reader used is not a separate matrix any more. What could be the embedding and is in no form
that is read becomes a parameter with a problem, which stops the choice.
"""

import re
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.files.guard import guard_opening, list_short, reading
from embgeo.io.model import changed, names, quantized
from embgeo.io.model.candidates import find_fault, is_real
from embgeo.io.model.checkpoint import Checkpoint, Tensor, replace_open, unreadable
from embgeo.io.model.facts import ModelFacts
from embgeo.io.model.parameter import BEFORE, Module, Reader

#: Readers of the modules that hold a tensor of this name, in the order in which they are asked.
_READERS: dict[str, tuple[Reader, ...]] = {
    "weight": (
        quantized.read_nvfp4,
        quantized.read_eight_bits,
        quantized.read_mlx,
        changed.read_static,
        changed.read_trained_copy,
        quantized.read_codes_alone,
    ),
    "weight_packed": (quantized.read_compressed,),
    "embeddings": (changed.read_static,),
    "embed_sum": (changed.read_codebook,),
}
#: Names of quantizers by the end of a tensor that they store; patterns of whole names.
_QUANTIZERS = (
    (r"qweight", "GPTQ or AWQ"),
    (r"q_weight", "EXL2"),
    (r"trellis", "EXL3"),
    (r"W_q", "HQQ"),
    (r"weight\.absmax|weight\.quant_state\..*", "bitsandbytes, 4 bit"),
    (r"_?weight_qdata|weight:_?qdata", "torchao"),
    (r"codebooks", "AQLM"),
    (r"Qidxs", "QuIP#"),
    (r"centroids(\.weight)?", "VPTQ"),
    (r"bitmask", "compressed-tensors (sparse)"),
)
#: Spellings of ``quant_method`` in config.json.
_METHODS = {
    "gptq": "GPTQ", "awq": "AWQ", "exl2": "EXL2", "exl3": "EXL3", "hqq": "HQQ",
    "auto-round": "AutoRound", "aqlm": "AQLM", "vptq": "VPTQ", "quip": "QuIP#",
    "bitsandbytes": "bitsandbytes",
}  # fmt: skip
#: Types of weights that are stored as they are.
_PLAIN = frozenset({"float16", "bfloat16", "float32", "float64"})
#: Names of tensors that change a weight of a plain type.
_CHANGES = re.compile(r"(^|\.)mapping$")
#: How names of tensors of adapters go on behind the module that they change.
_OF_ADAPTER = re.compile(
    r"(?<![^.])(lora_)|trainable_tokens_delta|(?<![^.])modules_to_save\.(?=.*\.weight$)"
)
#: Quantized modules of torch keep their weight among packed parameters.
_PACKED = re.compile(r"\._packed_params.*$")
#: Fewest bytes of codes of an embedding where the configuration says no sizes.
_FEWEST_BYTES = 4096


def read_parameters(checkpoint: Checkpoint) -> Checkpoint:
    """Read the checkpoint with its parameters in place of the stored tensors; nothing is read."""
    stored, facts = checkpoint.tensors, checkpoint.facts
    by = {tensor.name: tensor for tensor in stored if not tensor.problem}
    made: dict[str, Tensor] = {}
    ordered = sorted(by)
    adapters = _find_adapters(stored)
    is_changed = bool(adapters) or any(_CHANGES.search(name) for name in by)
    with reading(checkpoint.path, checkpoint.format):
        for tensor in by.values():
            if tensor.dtype in _PLAIN and not is_changed and tensor.name.endswith("weight"):
                continue  # most tensors of most checkpoints
            prefix, leaf = _split(tensor.name)
            found = _read(Module(prefix, by, ordered, facts, adapters), tensor, leaf)
            if found is not None:
                opened = guard_opening(checkpoint.path, checkpoint.format, found.open)
                made[tensor.name] = replace_open(found, opened)
    used = {part for tensor in made.values() for part in tensor.parts} - set(made)
    tensors = [made.get(t.name, t) for t in stored if t.name not in used]
    tensors = [_with_problem(_name_packed(tensor)) for tensor in _name_codes(tensors, facts)]
    if any(name.endswith("d2t") for name in by):
        tensors = [_with_ids(by, tensor) for tensor in tensors]
    return replace(checkpoint, tensors=tuple(tensors), stored=stored)


def _name_packed(tensor: Tensor) -> Tensor:
    """Name the weight of a quantized module of torch, which is among its packed parameters."""
    name = _PACKED.sub(".weight", tensor.name) if tensor.problem else tensor.name
    return tensor if name == tensor.name else replace(tensor, name=name, parts=(tensor.name,))


def _split(name: str) -> tuple[str, str]:
    """Split a name into module and last part, without the name of an adapter behind it."""
    at = name.find("trainable_tokens_delta")
    if at < 0:
        at = name.rfind(".") + 1
    return name[:at], name[at:]


def _find_adapters(stored: tuple[Tensor, ...]) -> dict[str, list[Tensor]]:
    """Find the tensors of adapters by the beginning of their names; see :class:`Module`."""
    found: dict[str, list[Tensor]] = {}
    for tensor in stored:
        place = _OF_ADAPTER.search(tensor.name)
        if place and (place[1] or not tensor.problem):
            at = place.start() if place[1] else place.end()
            found.setdefault(tensor.name[:at], []).append(tensor)
    return found


def _read(module: Module, tensor: Tensor, leaf: str) -> Tensor | None:
    """Read the weight that a tensor is part of; a low-rank change comes after its decoding."""
    if leaf.endswith("blocks"):
        return quantized.read_blocks(module, leaf)
    if leaf.startswith("trainable_tokens_delta"):
        return changed.read_trainable_tokens(module)
    readers = _READERS.get(leaf, ())
    found = next((one for read in readers if (one := read(module)) is not None), None)
    if leaf != "weight" or module.prefix.removesuffix("base_layer.") not in module.adapters:
        return found
    if found is not None and found.problem:
        return found
    of_base = replace(module, by=ChainMap({tensor.name: found or tensor}, module.by))
    merged = changed.read_lora(of_base)
    if found is None or merged is None:
        return merged or found
    parts = tuple(dict.fromkeys((*found.parts, *merged.parts)))
    return replace(merged, form=f"{found.form}; {merged.form}", parts=parts)


def _name_codes(tensors: list[Tensor], facts: ModelFacts) -> list[Tensor]:
    """Name each embedding or output that is stored as codes, in a form that is not read.

    Its scales, which may have the rows of the vocabulary, must not take its place. The name of the
    quantizer is said where the configuration, or the name of a tensor, tells it.
    """
    modules = {names.module_of(t.name) for t in tensors if _may_be_codes(t, facts)} - {""}
    held: dict[str, list[Tensor]] = {module: [] for module in modules}
    if not held:
        return tensors
    for t in tensors:
        if (module := names.module_of(t.name)) in held:
            held[module].append(t)
    made = []
    for module, parts in held.items():
        matrices = [t for t in parts if len(t.shape) == 2 and is_real(t.dtype)]
        if any(t.problem or t.form for t in parts) or any(
            names.is_sought(t.name) for t in matrices
        ):
            continue
        if len(parts) == 1 and names.is_sought(parts[0].name):
            continue  # whole numbers without anything beside them
        parts.sort(key=lambda t: -t.nbytes)
        ends = [t.name.removeprefix(module).lstrip(".:") for t in parts]
        by = next(_find_quantizers(ends, facts), "")
        problem = f"is quantized by {by}" if by else "is quantized"
        if not any(_matches_quantizer(end) for end in ends):
            problem += f" in a form that is not known ({list_short(ends)})"
        shape, dtype = parts[0].shape, parts[0].dtype
        named = unreadable(f"{module}.weight", shape, dtype, problem, BEFORE, *parts)
        made.append(named)
    used = {part for named in made for part in named.parts}
    return [*(t for t in tensors if t.name not in used), *made]


def _may_be_codes(tensor: Tensor, facts: ModelFacts) -> bool:
    """Tell whether integers or FP8 numbers are as many as the codes of an embedding."""
    if tensor.dtype in _PLAIN or tensor.problem or names.layer_of(tensor.name) is not None:
        return False
    fewest = _FEWEST_BYTES
    if facts.vocabulary and facts.columns:  # half a bit for each entry
        fewest = facts.vocabulary * facts.columns // 16
    return tensor.nbytes >= fewest or _matches_quantizer(tensor.name.rpartition(".")[2])


def _matches_quantizer(end: str) -> bool:
    return any(re.fullmatch(pattern, end) for pattern, _ in _QUANTIZERS)


def _find_quantizers(ends: list[str], facts: ModelFacts) -> Iterator[str]:
    """Yield the name of the quantizer as the configuration says it, then as the tensors do."""
    method, bits = (facts.quantization.get(key) for key in ("quant_method", "bits"))
    width = f", {bits} bit" if type(bits) is int and 0 < bits < 9 else ""
    of_tensors = [name for pattern, name in _QUANTIZERS
                  if any(re.fullmatch(pattern, end) for end in ends)]  # fmt: skip
    if isinstance(method, str) and method.isprintable():
        known = _METHODS.get(method.lower(), method)
        yield next((name for name in of_tensors if name.startswith(f"{known},")), known) + width
    yield from (name + width for name in of_tensors)


def _with_problem(tensor: Tensor) -> Tensor:
    """Say why a tensor that is named as an embedding is no matrix of real numbers, if it is none.

    Tensors of one layer, of optimizers and of averages are none of the model's embedding. Of an
    output only codes are named.
    """
    name, shape = tensor.name, tensor.shape
    is_coded = not is_real(tensor.dtype)
    if tensor.problem or (len(shape) == 2 and not is_coded):
        return tensor
    if not (names.is_sought(name) if is_coded else names.input_rank(name) is not None):
        return tensor
    if names.layer_of(name) is not None or names.is_other_embedding(name) or names.copy_kind(name):
        return tensor
    if is_coded and (len(shape) < 2 or tensor.dtype == "bool"):
        return tensor  # numbers of rows, masks
    problem, way_out = find_fault(tensor)
    return unreadable(name, shape, tensor.dtype, problem, way_out, tensor)


def _with_ids(by: dict[str, Tensor], tensor: Tensor) -> Tensor:
    """Add the ids of a draft head's rows: row i is token i + d2t[i] (EAGLE-3)."""
    outer = tensor.name.rpartition("lm_head")[0]
    offsets = by.get(f"{outer}d2t")
    if offsets is None or offsets.shape != tensor.shape[:1] or len(tensor.shape) != 2:
        return tensor

    def ids() -> Any:
        return np.arange(tensor.shape[0]) + np.asarray(offsets.open(), dtype=np.int64)

    return replace(tensor, row_ids=ids)
