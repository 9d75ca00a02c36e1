"""Stored forms of a matrix: each function gives rows of W from codes, scales and mappings.

`rows` is a slice of W; codes are arrays whose rows are those of W, and scales are indexed by them.
Results are float32. Formulas are those of the libraries that write the form.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.float32]

#: The 16 values of E2M1 (OCP Microscaling Formats 1.0, section 5.3.3): sign, two exponent bits
#: with bias 1, one mantissa bit.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def f32(values: Array) -> Rows:
    return np.asarray(values, dtype=np.float32)


def spread(scale: Array, shape: tuple[int, int], block: tuple[int, int], rows: slice) -> Rows:
    """Return the entries of `scale` (⌈N/b₀⌉, ⌈d/b₁⌉) for rows of an N×d matrix in blocks b₀×b₁."""
    of_rows = f32(scale[np.arange(rows.start, rows.stop) // block[0]])
    if block[1] == 1:
        return of_rows
    return np.repeat(of_rows, block[1], axis=1)[:, : shape[1]]


def scaled(
    codes: Array,
    scale: Array,
    block: tuple[int, int],
    rows: slice,
    zero: Array | None = None,
) -> Rows:
    """W = (code − zero) · scale of its block: FP8 and INT8 of compressed-tensors, DeepSeek, vLLM.

    DeepSeek names its factor ``weight_scale_inv`` and multiplies, too (kernel.weight_dequant).
    """
    shape = (codes.shape[0], codes.shape[1])
    made = f32(codes[rows])
    if zero is not None:
        made = made - spread(zero, shape, block, rows)
    return made * spread(scale, shape, block, rows)


def unpack(words: Array, bits: int, per_word: int | None = None) -> npt.NDArray[np.uint32]:
    """Unpack codes of `bits` bits from rows of words, lowest bits first: (n, k) of (n, m) words.

    With `per_word` codes a word, as compressed-tensors packs them, upper bits may be unused; else
    the words of a row are one stream of bits, as MLX packs 3, 5 and 6 bits.
    """
    width = words.dtype.itemsize * 8
    if per_word is None and width % bits:
        stream = np.ascontiguousarray(words).view(np.uint8)
        ones = np.unpackbits(stream, axis=1, bitorder="little")
        ones = ones[:, : ones.shape[1] // bits * bits].reshape(len(words), -1, bits)
        return ones.astype(np.uint32) @ (1 << np.arange(bits, dtype=np.uint32))
    shifts = np.arange(per_word or width // bits, dtype=np.uint32) * np.uint32(bits)
    wide = np.ascontiguousarray(words).view(f"u{words.dtype.itemsize}").astype(np.uint32)
    codes = (wide[:, :, None] >> shifts) & np.uint32(2**bits - 1)
    return codes.reshape(len(words), -1)


def packed_int(
    words: Array,
    scale: Array,
    bits: int,
    columns: int,
    group: npt.NDArray[np.int64],
    rows: slice,
    zero: Array | None = None,
) -> Rows:
    """Return W = (code − 2^(bits−1) − zero) · scale of the column's group: compressed-tensors.

    compressors/pack_quantized: signed codes are stored with this offset, those of zero points too,
    which are packed along the rows.
    """
    offset = 2 ** (bits - 1)
    codes = f32(unpack(words[rows], bits, 32 // bits)[:, :columns]) - offset
    if zero is not None:
        first = rows.start // (32 // bits)
        last = -(-rows.stop // (32 // bits))
        of_columns = unpack(np.ascontiguousarray(zero[first:last].T), bits, 32 // bits).T
        within = np.arange(rows.start, rows.stop) - first * (32 // bits)
        codes -= (f32(of_columns[within]) - offset)[:, group]
    return f32(codes * f32(scale[rows])[:, group])


def e2m1(codes: Array, scale: Rows, group: int, factor: float = 1.0) -> Rows:
    """Return W = E2M1 · scale of each `group` entries · factor; the low nibble comes first.

    NVFP4 of ModelOpt (factor is ``weight_scale_2``) and compressed-tensors (its inverse is
    ``weight_global_scale``), and MXFP4, whose scales are powers of two.
    """
    made = E2M1[unpack(codes, 4)]
    return f32(made * np.repeat(scale * np.float32(factor), group, axis=1)[:, : made.shape[1]])


def powers(exponents: Array) -> Rows:
    """Decode E8M0: 2^(code − 127) (OCP Microscaling Formats 1.0, section 5.4.1)."""
    return np.ldexp(np.float32(1), exponents.astype(np.int32) - 127)


def affine(words: Array, scales: Array, biases: Array, bits: int, rows: slice) -> Rows:
    """Return W = scale · code + bias of each group (mlx.core.quantize)."""
    codes = unpack(words[rows], bits)
    groups = f32(codes).reshape(len(codes), scales.shape[1], -1)
    groups *= f32(scales[rows])[:, :, None]
    groups += f32(biases[rows])[:, :, None]
    return groups.reshape(len(codes), -1)


def mapped(vectors: Array, mapping: Array | None, weights: Array | None, rows: slice) -> Rows:
    """Return W with the rows vectors[mapping[i]] · weights[i] (model2vec.StaticModel)."""
    made = f32(vectors[rows] if mapping is None else vectors[mapping[rows]])
    return made if weights is None else made * f32(weights[rows])[:, None]


def low_rank(base: Array, left: Array, right: Array, factor: float, rows: slice) -> Rows:
    """Return W = base + factor · left · right, left (N, r) and right (r, d): LoRA of PEFT."""
    return f32(base[rows]) + np.float32(factor) * (f32(left[rows]) @ f32(right))


def replaced(base: Array, new: Array, ids: npt.NDArray[np.int64], rows: slice) -> Rows:
    """Return W = base with the rows of `ids` replaced: trainable tokens of PEFT."""
    made = np.array(base[rows], dtype=np.float32)
    inside = (ids >= rows.start) & (ids < rows.stop)
    made[ids[inside] - rows.start] = f32(new)[inside]
    return made


def codebook(sums: Array, usage: Array, rows: slice) -> Rows:
    """Return W = embed_sum / max(cluster_usage, 1e-5): the codebooks of Mimi and EnCodec."""
    return f32(f32(sums[rows]) / np.maximum(f32(usage[rows]), np.float32(1e-5))[:, None])
