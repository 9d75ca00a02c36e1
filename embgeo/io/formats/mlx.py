"""Matrices quantized by MLX: integers in 32-bit words, with a scale and a bias for each group.

Within a row, each group of `group_size` entries is s·q + b with q an integer of `bits` bits; a word
holds 32/bits of them, the first in its lowest bits (mlx.core.quantize).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.io.bounded.guard import refuse, short
from embgeo.io.bounded.scratch import fill_rows
from embgeo.io.checkpoint import Checkpoint, Omissions, Tensor

_WORD = 32
#: Widths that divide a word; MLX has others.
_BITS = (2, 4, 8)
_BLOCK_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Quantized:
    """The three tensors of a quantized matrix."""

    words: Tensor
    scales: Tensor
    biases: Tensor


def read_quantized(checkpoint: Checkpoint, settings: Mapping[str, Any] | None = None) -> Checkpoint:
    """Replace quantized matrices by matrices of numbers.

    `settings` is ``quantization`` of ``config.json``; without it they are left out with a note, or
    refused if the checkpoint has no other matrix.
    """
    found = _find(checkpoint.tensors)
    if not found:
        return checkpoint
    parts = {t.name for q in found.values() for t in (q.scales, q.biases)}
    left_out, notes = Omissions(), []
    tensors = []
    for tensor in checkpoint.tensors:
        if tensor.name in parts:
            continue
        if tensor.name not in found:
            tensors.append(tensor)
            continue
        made = _dequantized(found[tensor.name], settings or {})
        if isinstance(made, str):
            left_out.add(tensor.name, made)
        else:
            tensors.append(made)
            notes.append(f"{short(made.name)} is quantized (MLX) and decoded to float32")
    if left_out.notes() and not any(len(tensor.shape) == 2 for tensor in tensors):
        raise refuse(checkpoint.path, left_out.notes()[0], "use the weights before quantization")
    notes = [*checkpoint.notes, *notes, *left_out.notes()]
    return replace(checkpoint, tensors=tuple(tensors), notes=tuple(notes))


def _find(tensors: tuple[Tensor, ...]) -> dict[str, Quantized]:
    by_name = {tensor.name: tensor for tensor in tensors}
    found = {}
    for tensor in tensors:
        stem = tensor.name.removesuffix("weight")
        scales, biases = by_name.get(f"{stem}scales"), by_name.get(f"{stem}biases")
        if tensor.dtype != "uint32" or len(tensor.shape) != 2 or scales is None or biases is None:
            continue
        if scales.shape == biases.shape and scales.shape[:1] == tensor.shape[:1]:
            found[tensor.name] = Quantized(tensor, scales, biases)
    return found


def _dequantized(parts: Quantized, settings: Mapping[str, Any]) -> Tensor | str:
    """The matrix, or the reason why it is not read."""
    own = settings.get(parts.words.name.removesuffix(".weight"))
    chosen = own if isinstance(own, dict) else settings
    bits, group = chosen.get("bits"), chosen.get("group_size")
    if bits is None or group is None:
        return "it is quantized (MLX); name its folder, where config.json says how"
    if bits not in _BITS:
        return f"it is quantized (MLX, {short(str(bits))} bits)"
    n, columns = parts.words.shape[0], parts.words.shape[1] * (_WORD // bits)
    if len(parts.scales.shape) != 2 or not isinstance(group, int):
        return "its scales are not a matrix (MLX)"
    if parts.scales.shape[1] * group != columns:
        return f"its scales do not fit groups of {short(str(group))} (MLX)"
    opened = partial(_open, parts, bits, group, (n, columns))
    return Tensor(parts.words.name, (n, columns), "float32", opened)


def _open(
    parts: Quantized, bits: int, group: int, shape: tuple[int, int]
) -> npt.NDArray[np.float32]:
    words, scales, biases = (t.open() for t in (parts.words, parts.scales, parts.biases))
    shifts = np.arange(0, _WORD, bits, dtype=np.uint32)

    def expand(start: int) -> npt.NDArray[np.float32]:
        rows = slice(start, start + _BLOCK_ROWS)
        integers = (words[rows, :, None] >> shifts) & np.uint32(2**bits - 1)
        groups = integers.reshape(len(integers), -1, group).astype(np.float32)
        groups *= np.asarray(scales[rows], dtype=np.float32)[:, :, None]
        groups += np.asarray(biases[rows], dtype=np.float32)[:, :, None]
        return groups.reshape(len(groups), -1)

    return fill_rows(map(expand, range(0, shape[0], _BLOCK_ROWS)), shape)
