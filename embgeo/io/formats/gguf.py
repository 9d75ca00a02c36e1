"""GGUF files of llama.cpp: plain numbers are mapped, quantized ones decoded block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.io.bounded.guard import Damaged, list_short, plain, short
from embgeo.io.bounded.maps import SWAPPED, Array, Bytes, count, map_file
from embgeo.io.bounded.scratch import fill_rows
from embgeo.io.bounded.small_files import safe_text
from embgeo.io.checkpoint import Checkpoint, Omissions, Tensor, stored_tensor
from embgeo.io.formats.gguf_header import (
    MAGIC,
    TOKEN_MODEL,
    TOKEN_TYPES,
    TOKENS,
    TYPES,
    GGUFHeader,
    TensorInfo,
    read_header,
)
from embgeo.io.labels.vocabulary import READERS, Scheme, guess_scheme

NAME = "GGUF"
RECOGNIZED = "begins with `GGUF`"
READ = (
    "F32, F16, BF16, F64 and integers are mapped; quantized tensors are decoded when opened; the "
    "vocabulary and token types are read"
)
EXTRA = "gguf"

#: Types that are mapped; all others are dequantized.
PLAIN = {
    "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64",
    "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
}  # fmt: skip
#: Quantized bytes that are dequantized at a time.
_BLOCK_BYTES = 2 * 2**20

#: Kinds of tokens in llama.cpp other than normal ones.
_TOKEN_TYPES = {2: "unknown", 3: "control", 4: "user-defined", 5: "unused", 6: "byte"}
#: How tokenizers write spaces; for others it is inferred from the tokens.
_SCHEMES: dict[str, Scheme] = {
    "gpt2": "byte-level",
    "llama": "sentencepiece",
    "t5": "sentencepiece",
    "bert": "sentencepiece",
}
_NORMAL = 1
_OF_TOKENS = ("token_embd.weight", "output.weight")
_LISTED = 6


def sniff(head: bytes) -> bool:
    return head.startswith(MAGIC)


def open_checkpoint(path: Path) -> Checkpoint:
    data = map_file(path)
    header = read_header(data)
    tensors = tuple(_tensor(data, info, header.big_endian) for info in header.tensors)
    left_out = Omissions()
    for name in header.unknown:
        left_out.add(name, "its type is not known")
    tokens, token_notes = _tokens(header)
    notes = (*left_out.notes(), *_quantized_note(header), *token_notes)
    return Checkpoint(path, NAME, tensors, (path,), tokens, f"{TOKENS} in the file", notes=notes)


def _tensor(data: Bytes, info: TensorInfo, big_endian: bool) -> Tensor:
    kind = TYPES[info.type][0]
    raw, name = data[info.start : info.end], plain(info.name)
    if kind in PLAIN:
        return stored_tensor(name, raw, PLAIN[kind], info.shape, swapped=big_endian != SWAPPED)
    opened = partial(_dequantize, raw, info, big_endian)
    return Tensor(name, info.shape, "float32", opened)


def _dequantize(raw: Bytes, info: TensorInfo, big_endian: bool) -> Array:
    kind, _, length = TYPES[info.type]
    if big_endian:
        raise Damaged(
            f"{short(info.name)} is quantized ({kind}) in a file of big-endian byte order",
            "use the little-endian file",
        )
    expand = _dequantizer(info)
    step = max(1, _BLOCK_BYTES // length)
    blocks = raw.reshape(-1, length)
    pieces = (
        expand(np.ascontiguousarray(blocks[start : start + step])).reshape(-1)
        for start in range(0, len(blocks), step)
    )
    # Hostile half-precision scales give infinities, which the analysis masks.
    with np.errstate(all="ignore"):
        return fill_rows(pieces, (count(info.shape),)).reshape(info.shape)


def _dequantizer(info: TensorInfo) -> Callable[[Bytes], Array]:
    kind = TYPES[info.type][0]
    try:
        from gguf.constants import GGMLQuantizationType
        from gguf.quants import dequantize
    except ImportError as error:
        raise Damaged(
            f"{short(info.name)} is quantized ({kind}), which needs an extra package",
            "pip install 'embgeo[gguf]'",
        ) from error
    no_way = Damaged(
        f"{short(info.name)} is of type {kind}, which this gguf package does not dequantize",
        "update the package, or use another quantization of the model",
    )
    if not hasattr(GGMLQuantizationType, kind):
        raise no_way

    def expand(blocks: Bytes) -> Array:
        try:
            return np.asarray(dequantize(blocks, GGMLQuantizationType[kind]))
        except NotImplementedError:
            raise no_way from None

    return expand


def _quantized_note(header: GGUFHeader) -> list[str]:
    kinds = {info.name: TYPES[info.type][0] for info in header.tensors}
    kinds = {name: kind for name, kind in kinds.items() if kind not in PLAIN}
    if not kinds:
        return []
    of_tokens = [f"{name} in {kind}" for name, kind in kinds.items() if name in _OF_TOKENS]
    by_kind = Counter(kinds.values()).most_common()
    counted = ", ".join(f"{number:,} in {kind}" for kind, number in by_kind)
    which = f", {' and '.join(of_tokens)}" if of_tokens else ""
    return [f"quantized tensors ({counted}{which}) are decoded to float32"]


def _tokens(header: GGUFHeader) -> tuple[tuple[str, ...] | None, list[str]]:
    """The decoded vocabulary, and notes on tokens that are not text."""
    stored = header.metadata.get(TOKENS)
    if not isinstance(stored, list) or not stored or not isinstance(stored[0], str):
        return None, []
    types = _token_types(header.metadata.get(TOKEN_TYPES), len(stored))
    scheme = _SCHEMES.get(str(header.metadata.get(TOKEN_MODEL))) or guess_scheme(stored)
    read = READERS[scheme]
    # Control tokens and the like are not encoded.
    tokens = tuple(
        safe_text(read(token) if kind == _NORMAL else token)
        for token, kind in zip(stored, types, strict=True)
    )
    notes = []
    for number, name in _TOKEN_TYPES.items():
        named = [token for token, kind in zip(tokens, types, strict=True) if kind == number]
        if named:
            notes.append(f"{name} tokens: {list_short(named, _LISTED)}")
    return tokens, notes


def _token_types(stored: Any, length: int) -> list[int]:
    if isinstance(stored, list) and len(stored) == length and isinstance(stored[0], int):
        return stored
    return [_NORMAL] * length
