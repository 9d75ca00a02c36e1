"""Quantized weights: integers, FP8, four-bit floats and packed words with their scales.

Each reader returns the weight of a module, decoded or with the reason why it cannot be read; None
if the module is of another form.
"""

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

import ml_dtypes
import numpy as np

from embgeo.core.errors import EmbgeoError
from embgeo.files.guard import list_short, short
from embgeo.files.maps import Array
from embgeo.io.model import forms
from embgeo.io.model.checkpoint import Tensor
from embgeo.io.model.facts import ModelFacts
from embgeo.io.model.names import is_sought
from embgeo.io.model.parameter import Module, cannot, decoded, matrix_shape

_E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
#: Side of the blocks of FP8 weights where the configuration does not say it.
_FP8_BLOCK = 128
#: Endings of factors of 8-bit codes, below the module of the weight.
_SCALES = (
    "weight_scale", "weight_scale_inv", "scale_weight", "weights_scaling_factor", "scale",
    "qscale_weight",
)  # fmt: skip
#: Names of factors in forms that are not known; those of activations are none of a weight.
_FACTOR = re.compile(r"(?!.*(?:input|output|act|embed_scale|[kqv]_scale)).*(?:scale|amax|absmax)")
#: Names of what else may change such codes: offsets, orders of columns, second scales.
_CHANGES = re.compile(r"(?!input|output|act|[kqv]_)(?:weight_.*|.*(?:zero|offset).*)")
#: Last parts of a name in which a name that the configuration lists is sought.
_DEEPEST = 32
#: Groups of compressed-tensors that are looked at; there are a few.
_MOST_GROUPS = 1000
_EIGHT_BITS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "int8")


def read_eight_bits(m: Module) -> Tensor | None:
    """Read FP8 and INT8 codes with scales of the tensor, of rows, of groups or of blocks."""
    codes = m["weight"]
    if codes.dtype not in _EIGHT_BITS or len(codes.shape) != 2 or m.get("weight_scale_2"):
        return None
    if 0 in codes.shape:
        return None
    if codes.dtype == "int8" and (scb := m.get("SCB")) is not None:
        return _int8_rows(codes, scb, m.get("weight_format"))
    kind = "INT8" if codes.dtype == "int8" else "FP8"
    scales = ((end, one) for end in _SCALES if (one := m.get(end)) is not None)
    end, scale = next(scales, ("", None))
    if scale is None:
        return None
    zero, shape = m.get("weight_zero_point"), matrix_shape(codes)
    block = _find_block(shape, scale.shape, m.facts)
    if block is None or (zero is not None and zero.shape != scale.shape):
        sizes = "×".join(map(str, scale.shape))
        problem = f"is quantized ({kind}), and its {end} {sizes} fits no blocks of it"
        return cannot(codes.name, codes, problem, scale, zero)
    known = {"weight", "weight_zero_point", "weight_format", "weight_shape", *_SCALES}
    beside = {t.name.removeprefix(m.prefix): t for t in _list_beside(m, codes)}
    others = [name for name in beside if _CHANGES.match(name) and name not in known]
    if others:
        problem = f"is quantized ({kind}) with {list_short(others)}, in a form that is not known"
        return cannot(codes.name, codes, problem, scale, zero, *(beside[name] for name in others))
    grid = (-(-shape[0] // block[0]), -(-shape[1] // block[1]))

    def rows_of(c: Array, s: Array, z: Array | None, rows: slice) -> Array:
        zeros = None if z is None else z.reshape(grid)
        factors = forms.powers(s) if s.dtype == np.uint8 else s
        return forms.scaled(c, factors.reshape(grid), block, rows, zeros)

    of = {shape: "tensor", (1, shape[1]): "row"}.get(block, f"block of {block[0]}×{block[1]}")
    minus = "code" if zero is None else "(code − zero point)"
    form = f"{kind}, {minus} · {end} of the {of}"
    return decoded(codes.name, shape, form, (codes, scale, zero), rows_of)


def _int8_rows(codes: Tensor, scb: Tensor, marker: Tensor | None) -> Tensor:
    """Read LLM.int8 of bitsandbytes."""
    if scb.shape != codes.shape[:1]:
        return cannot(codes.name, codes, "is quantized (INT8), and its SCB does not fit", scb)
    shape = matrix_shape(codes)

    def rows_of(c: Array, s: Array, _: object, rows: slice) -> Array:
        return forms.scaled(c, forms.f32(s)[:, None] / 127, (1, shape[1]), rows)

    form = "INT8, code · SCB / 127 of the row"
    return decoded(codes.name, shape, form, (codes, scb, marker), rows_of)


def _find_block(
    shape: tuple[int, ...], scale: tuple[int, ...], facts: ModelFacts
) -> tuple[int, int] | None:
    """Find rows and columns that share a factor; None if the shapes do not fit."""
    n, d = shape
    if scale in ((), (1,), (1, 1)):
        return n, d
    if scale in ((n,), (n, 1)):
        return 1, d
    if scale == (d,):
        return n, 1
    if len(scale) != 2 or 0 in scale:
        return None
    stated = facts.quantization.get("weight_block_size")
    for weights in _weights_settings(facts):  # compressed-tensors
        stated = stated or weights.get("block_structure")
    sizes = []
    for axis in (0, 1):
        own = stated[axis] if isinstance(stated, list) and len(stated) == 2 else None
        size = _block_side(shape[axis], scale[axis], own)
        if size is None:
            return None
        sizes.append(size)
    return sizes[0], sizes[1]


def _block_side(size: int, blocks: int, stated: object) -> int | None:
    if type(stated) is int and stated > 0:
        return stated if -(-size // stated) == blocks else None
    for side in (1, _FP8_BLOCK):
        if -(-size // side) == blocks:
            return side
    return size // blocks if size % blocks == 0 else None


def read_nvfp4(m: Module) -> Tensor | None:
    """Read NVFP4 of ModelOpt: two E2M1 codes a byte, an FP8 scale for 16 entries, a factor."""
    codes = m["weight"]
    if codes.dtype != "uint8" or len(codes.shape) != 2:
        return None
    scale, factor = m.get("weight_scale"), m.get("weight_scale_2")
    return None if scale is None else _four_bits(codes.name, codes, scale, factor, inverse=False)


def _four_bits(
    name: str, codes: Tensor, scale: Tensor, factor: Tensor | None, *, inverse: bool
) -> Tensor:
    n, d = codes.shape[0], codes.shape[1] * 2
    kind = "NVFP4" if scale.dtype.startswith("float8_e4m3") else "MXFP4"
    fits = len(scale.shape) == 2 and scale.shape[0] == n and scale.shape[1] > 0
    fits = fits and (kind == "NVFP4" or scale.dtype in ("uint8", "float8_e8m0fnu"))
    if not fits or d % scale.shape[1] or (factor is None and kind == "NVFP4"):
        return cannot(name, codes, "is quantized (4 bit), and its scales do not fit", scale, factor)
    group = d // scale.shape[1]
    more = "" if factor is None else (" / global scale" if inverse else " · second scale")

    def rows_of(c: Array, s: Array, f: Array | None, rows: slice) -> Array:
        of_groups = forms.powers(s[rows]) if s.dtype == np.uint8 else forms.f32(s[rows])
        by_all = 1.0 if f is None else float(forms.f32(f).reshape(-1)[0])
        return forms.e2m1(c[rows], of_groups, group, 1 / by_all if inverse else by_all)

    form = f"{kind}, E2M1 · scale of {group}{more}"
    return decoded(name, (n, d), form, (codes, scale, factor), rows_of)


def read_compressed(m: Module) -> Tensor | None:
    """Read ``weight_packed`` of compressed-tensors: integers in 32-bit words, or NVFP4 in bytes."""
    name, codes = m.name("weight"), m["weight_packed"]
    scale, shape = m.get("weight_scale"), m.get("weight_shape")
    zero, order = m.get("weight_zero_point"), m.get("weight_g_idx")
    if scale is None or not scale.shape or len(codes.shape) != 2 or 0 in codes.shape:
        return cannot(name, codes, "is quantized, and its weight_scale is not in the file", shape)
    if codes.dtype == "uint8":
        return _four_bits(name, codes, scale, m.get("weight_global_scale"), inverse=True)
    bits, columns = _packed_sizes(codes, m.facts, shape)
    if not bits or codes.dtype not in ("int32", "uint32"):
        problem = "is quantized (packed integers), and its width in bits is not known"
        return cannot(name, codes, problem, scale, shape, zero, order)
    n, groups = codes.shape[0], scale.shape[1] if len(scale.shape) == 2 else 1
    size = _group_size(m.facts, columns, groups, is_ordered=order is not None)
    if scale.shape[0] not in (1, n) or (-(-columns // size) != groups and order is None):
        return cannot(name, codes, "is quantized, and its scales do not fit", scale, shape, zero)

    def rows_of(
        c: Array, s: Array, z: Array | None, g: Array | None, _: object, rows: slice
    ) -> Array:
        group = np.arange(columns) // size if g is None else np.asarray(g, dtype=np.int64)
        laid = np.broadcast_to(s.reshape(s.shape[0], -1), (n, groups))
        return forms.packed_int(c, laid, bits, columns, group, rows, z)

    form = (
        f"INT{bits}, packed, (code − {2 ** (bits - 1)}{' − zero' * bool(zero)}) · scale of {size}"
    )
    return decoded(name, (n, columns), form, (codes, scale, zero, order, shape), rows_of)


def _packed_sizes(codes: Tensor, facts: ModelFacts, shape: Tensor | None) -> tuple[int, int]:
    """Return the bits of a code and the number of columns; zeros where they are not known."""
    words, columns = codes.shape[1], facts.columns
    if shape is not None and shape.shape == (2,):
        try:
            columns = int(np.asarray(shape.open())[1])
        except EmbgeoError:  # of a remote file, whose content is not fetched yet
            columns = facts.columns
    stated = [weights.get("num_bits") for weights in _weights_settings(facts)]
    own = [bits for bits in stated if type(bits) is int and 0 < bits <= 8]
    for bits in (*own, 4, 8, 2, 3, 5, 6, 7):
        if columns and -(-columns // (32 // bits)) == words:
            return bits, columns
    return (own[0], words * (32 // own[0])) if len(own) == 1 and not columns else (0, 0)


def _weights_settings(facts: ModelFacts) -> list[Mapping[str, Any]]:
    """Return what the groups of compressed-tensors say of weights.

    One may be of the embedding alone.
    """
    groups = facts.quantization.get("config_groups")
    every = islice(groups.values(), _MOST_GROUPS) if isinstance(groups, dict) else ()
    found = [group.get("weights") for group in every if isinstance(group, dict)]
    return [weights for weights in found if isinstance(weights, dict)]


def _group_size(facts: ModelFacts, columns: int, groups: int, *, is_ordered: bool) -> int:
    """Return the stated size that gives this number of groups, else the computed one."""
    stated = [weights.get("group_size") for weights in _weights_settings(facts)]
    sizes = [size for size in stated if type(size) is int and size > 0]
    fitting = [size for size in sizes if is_ordered or -(-columns // size) == groups]
    return next(iter(fitting), -(-columns // groups))


def read_blocks(m: Module, leaf: str) -> Tensor | None:
    """Read ``X_blocks`` and ``X_scales``: MXFP4 as gpt-oss stores it; `leaf` ends in ``blocks``."""
    stem, codes = leaf.removesuffix("blocks"), m[leaf]
    name, scale = m.name(stem).rstrip("._"), m.get(f"{stem}scales")
    if scale is None or codes.dtype != "uint8" or len(codes.shape) != 3:
        return None
    n, groups, half = codes.shape
    if scale.shape != (n, groups) or scale.dtype != "uint8":
        return cannot(name, codes, "is quantized (MXFP4), and its scales do not fit", scale)

    def rows_of(c: Array, s: Array, rows: slice) -> Array:
        flat = c[rows].reshape(rows.stop - rows.start, -1)
        return forms.e2m1(flat, forms.powers(s[rows]), 2 * half)

    form = f"MXFP4, E2M1 · 2^(scale − 127) of {2 * half}"
    return decoded(name, (n, 2 * half * groups), form, (codes, scale), rows_of)


def read_mlx(m: Module) -> Tensor | None:
    """Read the words of MLX: affine with biases, else mxfp4, nvfp4 or mxfp8."""
    words = m["weight"]
    if words.dtype != "uint32" or len(words.shape) != 2:
        return None
    scales, biases = m.get("scales"), m.get("biases")
    if scales is None:
        return None
    n, w = words.shape
    if len(scales.shape) != 2 or scales.shape[0] != n or not scales.shape[1]:
        return cannot(words.name, words, "is quantized (MLX), and its scales do not fit", scales)
    if biases is None:
        return _mlx_float(words, scales)
    own = m.facts.quantization.get(m.prefix.removesuffix("."))
    settings = own if isinstance(own, dict) else m.facts.quantization
    bits, group = settings.get("bits"), settings.get("group_size")
    if bits is None and m.facts.columns:
        bits = 32 * w // m.facts.columns
    if bits not in (2, 3, 4, 5, 6, 8) or biases.shape != scales.shape:
        problem = (
            "is quantized (MLX); name its folder, where config.json says how"
            if bits is None
            else f"is quantized (MLX, {short(str(bits))} bits)"
        )
        return cannot(words.name, words, problem, scales, biases)
    columns, groups = 32 * w // bits, scales.shape[1]
    size = columns // groups if group is None else group
    if type(size) is not int or size * groups != columns:
        problem = f"is quantized (MLX), and its scales do not fit groups of {short(str(group))}"
        return cannot(words.name, words, problem, scales, biases)
    form = f"MLX affine, {bits} bits, scale · code + bias of {size}"

    def rows_of(w: Array, s: Array, b: Array, rows: slice) -> Array:
        return forms.affine(w, s, b, bits, rows)

    return decoded(words.name, (n, columns), form, (words, scales, biases), rows_of)


def _mlx_float(words: Tensor, scales: Tensor) -> Tensor:
    """Read E2M1 or FP8 codes; words and scales tell which, as the sizes of groups are fixed."""
    n, w = words.shape
    kinds = {(8 * w, 32): "mxfp4", (8 * w, 16): "nvfp4", (4 * w, 32): "mxfp8"}
    fits = [(d, g, kind) for (d, g), kind in kinds.items() if d == g * scales.shape[1]]
    if len(fits) != 1 or scales.dtype != "uint8":
        return cannot(words.name, words, "is quantized (MLX), and its scales do not fit", scales)
    d, group, kind = fits[0]

    def rows_of(c: Array, s: Array, rows: slice) -> Array:
        of_groups = forms.f32(s[rows].view(_E4M3)) if kind == "nvfp4" else forms.powers(s[rows])
        if kind != "mxfp8":
            return forms.e2m1(c[rows], of_groups, group)
        codes = np.ascontiguousarray(c[rows]).view(np.uint8).view(_E4M3)
        return forms.f32(codes) * np.repeat(of_groups, group, axis=1)

    code = "E4M3" if kind == "mxfp8" else "E2M1"
    form = f"MLX {kind}, {code} · scale of {group}"
    return decoded(words.name, (n, d), form, (words, scales), rows_of)


def read_codes_alone(m: Module) -> Tensor | None:
    """Refuse FP8 codes whose scales are in another file, or in a form that is not known.

    Without either, FP8 numbers are the matrix themselves.
    """
    codes = m["weight"]
    if len(codes.shape) != 2 or codes.dtype not in _EIGHT_BITS or codes.dtype == "int8":
        return None
    has_scales = bool(m.facts.quantization) or m.facts.pieces > 1  # perhaps in another shard
    if has_scales and not _is_ignored(m):
        return cannot(codes.name, codes, "is quantized (FP8), and its scales are not in the file")
    factors = [t for t in _list_beside(m, codes) if _FACTOR.match(t.name[len(m.prefix) :])]
    if factors:
        ends = list_short([t.name.removeprefix(m.prefix) for t in factors])
        problem = f"is quantized (FP8) with factors of a form that is not known ({ends})"
        return cannot(codes.name, codes, problem, *factors)
    return None


def _list_beside(m: Module, codes: Tensor) -> list[Tensor]:
    """List the tensors of the module of an embedding or output."""
    return m.below() if is_sought(codes.name) else []


def _is_ignored(m: Module) -> bool:
    parts = m.prefix.strip(".").split(".")[-_DEEPEST:]
    ends = range(1, len(parts) + 1)
    # Whole parts of the name: a letter would be in every name.
    runs = (".".join(parts[first:last]) for last in ends for first in range(last))
    return any(run in m.facts.unquantized for run in runs)
