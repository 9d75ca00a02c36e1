"""fastText's binary models, with their words and counts.

fastText keeps one input matrix: a row for each word, then a row for each bucket of hashed
character n-grams. Neither part is the embedding. What the model trains, uses and gives out as a
word's vector (``get_word_vector``, the ``.vec`` file) is the mean of the word's own row and the
rows of its n-grams; the word's row alone is only the remainder that its n-grams do not explain,
near zero for rare words. So ``word_vectors``, the means, are taken for the embedding. They are
computed when opened; everything else is mapped:

- ``words``: the words' own rows (with ``word_vectors`` the same where a model has no n-grams),
- ``ngrams``: the rows of the buckets (a classifier keeps those of word n-grams there too),
- ``output``: the output projection over the same words; ``tree`` in its place holds the inner
  nodes of hierarchical softmax, and ``labels`` the classes of a supervised model. Neither has a
  row for each word.

Quantized models (``.ftz``) are decoded: what they hold is what fastText computes with.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.maps import SWAPPED, Array, Bytes, map_file, view
from embgeo.io.bounded.scratch import fill_rows
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.formats.fasttext_dictionary import (
    ENTRY,
    MAGIC,
    SETTINGS,
    SIZES,
    Dictionary,
    read_dictionary,
    settings_fit,
    sizes_fit,
)
from embgeo.io.formats.subwords import Floats, Integers, mean_vectors
from embgeo.io.labels.word_lists import decode_words

NAME = "fastText binary"
RECOGNIZED = "a magic number, or the settings and the first word of models older than it"
READ = "matrices mapped; dictionary and the words' mean vectors in memory or a temporary file"
EXTRA = ""

_SHAPE = struct.Struct("<qq")


_HEADER = struct.Struct("<?qqi")  # with norms; rows, columns; bytes of codes
_QUANTIZER = struct.Struct("<4i")  # columns, pieces, columns of a piece, of the last one
_CENTROIDS = 256
_BLOCK_ROWS = 4096


@dataclass(frozen=True, slots=True)
class QuantizedMatrix:
    """A product-quantized matrix (``.ftz``), decoded row by row.

    A row is cut into pieces, each piece is the number of one of 256 centroids, and where the model
    was quantized with ``-qnorm`` a further number gives the row's length. Source: Joulin et al.
    (2016), "FastText.zip: Compressing text classification models", section 3.

    Attributes
    ----------
    shape : tuple of two ints
    codes : array of uint8, shape (rows, pieces)
    pieces : list of arrays, shape (256, columns of the piece)
    lengths : tuple of arrays, optional
        The code of each row's length, and the 256 lengths.
    """

    shape: tuple[int, int]
    codes: Bytes
    pieces: list[Floats]
    lengths: tuple[Bytes, Floats] | None

    def rows(self, numbers: Integers) -> Floats:
        """The rows with these numbers."""
        codes = self.codes[numbers]
        out = np.concatenate([piece[codes[:, q]] for q, piece in enumerate(self.pieces)], axis=1)
        if self.lengths is not None:
            row_codes, lengths = self.lengths
            with np.errstate(over="ignore", invalid="ignore"):
                out *= lengths[row_codes[numbers]][:, None]
        return out

    def dense(self, start: int, stop: int) -> Floats:
        """Rows `start` to `stop` decoded, in memory or in a scratch file."""
        blocks = (
            self.rows(np.arange(first, min(first + _BLOCK_ROWS, stop)))
            for first in range(start, stop, _BLOCK_ROWS)
        )
        return fill_rows(blocks, (stop - start, self.shape[1]))


def read_quantized(data: Bytes, at: int) -> tuple[QuantizedMatrix, int]:
    """The quantized matrix at byte `at`, and the byte behind it."""
    with_lengths, rows, columns, size = _HEADER.unpack(data[at : at + _HEADER.size].tobytes())
    at += _HEADER.size
    if rows <= 0 or columns <= 0 or size <= 0 or rows > len(data) or at + size > len(data):
        raise Damaged("a quantized matrix is longer than the file, or empty")
    codes = data[at : at + size]
    pieces, at = _quantizer(data, at + size, columns)
    if size != rows * len(pieces):
        raise Damaged("a quantized matrix has other than the codes that its shape asks for")
    lengths = None
    if with_lengths:
        row_codes = view(data[at:], np.dtype(np.uint8), (rows,))
        ((values,), at) = _quantizer(data, at + rows, 1)
        lengths = row_codes, values[:, 0]
    shape = (rows, columns)
    return QuantizedMatrix(shape, codes.reshape(rows, len(pieces)), pieces, lengths), at


def _quantizer(data: Bytes, at: int, columns: int) -> tuple[list[Floats], int]:
    stated, count, width, last = _QUANTIZER.unpack(data[at : at + _QUANTIZER.size].tobytes())
    at += _QUANTIZER.size
    if stated != columns or width <= 0 or count <= 0 or (count - 1) * width + last != columns:
        raise Damaged("a product quantizer contradicts its matrix")
    if not 0 < last <= width:
        raise Damaged("a product quantizer contradicts itself")
    numbers = view(data[at:], np.dtype(np.float32), (columns * _CENTROIDS,), swapped=SWAPPED)
    pieces, start = [], 0
    for piece in range(count):
        size = width if piece < count - 1 else last
        pieces.append(numbers[start : start + size * _CENTROIDS].reshape(_CENTROIDS, size))
        start += size * _CENTROIDS
    return pieces, at + 4 * columns * _CENTROIDS


@dataclass(frozen=True, slots=True)
class _Dense:
    """A float32 matrix in the mapped file."""

    values: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    def rows(self, numbers: Integers) -> Floats:
        return self.values[numbers]

    def dense(self, start: int, stop: int) -> Floats:
        return self.values[start:stop]


_Stored = _Dense | QuantizedMatrix


def sniff(head: bytes) -> bool:
    """The magic number, or settings, sizes and a first word as they stand in older models."""
    return head.startswith(MAGIC) or _is_old(head)


def open_checkpoint(path: Path) -> Checkpoint:
    """The matrices of a model, the words of its rows and their counts."""
    data = map_file(path)
    dictionary = read_dictionary(path)
    inputs, outputs, end = _matrices(data, dictionary)
    notes = _check_shapes(dictionary, inputs, outputs)
    if end < len(data):
        if not dictionary.has_flags:
            raise Damaged(f"{len(data) - end:,} bytes follow where the model should end")
        notes += (f"{len(data) - end:,} bytes behind the model were not read",)
    tokens, word_notes = decode_words(dictionary.words, path)
    quantized = isinstance(inputs, QuantizedMatrix)
    return Checkpoint(
        path=path,
        format=f"{NAME}, quantized" if quantized else NAME,
        tensors=_tensors(dictionary, inputs, outputs),
        files=(path,),
        tokens=tokens,
        tokens_source="the dictionary of the file itself",
        notes=(*notes, *word_notes),
        counts=dictionary.counts,
        counts_source="counts in the dictionary of the fastText model",
    )


def _is_old(head: bytes) -> bool:
    start = SETTINGS.size + SIZES.size
    if len(head) < start or not settings_fit(SETTINGS.unpack_from(head)):
        return False
    if not sizes_fit(*SIZES.unpack_from(head, SETTINGS.size)):
        return False
    end = head.find(b"\0", start)
    if end < 0 or end + 1 + ENTRY.size > len(head):
        return False
    count, kind = ENTRY.unpack_from(head, end + 1)
    return count >= 0 and kind in (0, 1)


def _matrices(data: Bytes, dictionary: Dictionary) -> tuple[_Stored, _Stored, int]:
    """Input matrix, output matrix, and the byte behind them."""
    at = dictionary.end
    quantized = False
    if dictionary.has_flags:
        quantized, at = _flag(data, at)
    inputs, at = read_quantized(data, at) if quantized else _dense(data, at)
    quantized_output = False
    if dictionary.has_flags:
        quantized_output, at = _flag(data, at)
    if quantized and quantized_output:
        return inputs, *read_quantized(data, at)
    return inputs, *_dense(data, at)


def _flag(data: Bytes, at: int) -> tuple[bool, int]:
    if at >= len(data) or data[at] > 1:
        raise Damaged("the flag before a matrix is damaged or cut off")
    return bool(data[at]), at + 1


def _dense(data: Bytes, at: int) -> tuple[_Dense, int]:
    rows, columns = _SHAPE.unpack(data[at : at + _SHAPE.size].tobytes())
    at += _SHAPE.size
    if rows < 0 or columns <= 0:
        raise Damaged("a matrix has a negative shape or no columns")
    if 4 * rows * columns > len(data) - at:
        raise Damaged(f"a matrix of {rows:,}×{columns:,} numbers is longer than the file")
    values = view(data[at:], np.dtype(np.float32), (rows, columns), swapped=SWAPPED)
    return _Dense(values), at + 4 * rows * columns


def _check_shapes(dictionary: Dictionary, inputs: _Stored, outputs: _Stored) -> tuple[str, ...]:
    """Hold the matrices against the dictionary; a note on what supervised models hold."""
    words, kept = len(dictionary.words), dictionary.subwords.kept
    if kept is not None and not isinstance(inputs, QuantizedMatrix):
        raise Damaged("a pruned model that is not quantized, as only early test versions wrote")
    wanted = words + (dictionary.subwords.buckets if kept is None else len(kept[0]))
    if inputs.shape != (wanted, dictionary.d):
        raise Damaged(
            f"its input matrix has {inputs.shape[0]:,}×{inputs.shape[1]:,} numbers, "
            f"its dictionary asks for {wanted:,}×{dictionary.d:,}"
        )
    wanted = dictionary.labels if dictionary.supervised else words
    if outputs.shape != (wanted, dictionary.d):
        raise Damaged(
            f"its output matrix has {outputs.shape[0]:,}×{outputs.shape[1]:,} numbers, "
            f"its dictionary asks for {wanted:,}×{dictionary.d:,}"
        )
    if dictionary.supervised:
        return (f"a supervised model; its {dictionary.labels:,} labels are not among the rows",)
    return ()


def _tensors(dictionary: Dictionary, inputs: _Stored, outputs: _Stored) -> tuple[Tensor, ...]:
    words, d = len(dictionary.words), dictionary.d
    subwords = dictionary.subwords
    own = partial(inputs.dense, 0, words)

    def means() -> Array:
        return mean_vectors(
            dictionary.words,
            subwords,
            inputs.rows,
            lambda numbers: inputs.rows(words + numbers),
            d,
        )

    def tensor(name: str, stored: _Stored, start: int, stop: int) -> Tensor:
        return Tensor(name, (stop - start, d), "float32", partial(stored.dense, start, stop))

    if subwords.is_none:
        vectors = Tensor("word_vectors", (words, d), "float32", own)
        found = [vectors, Tensor("words", (words, d), "float32", own, alias_of="word_vectors")]
    else:
        found = [Tensor("word_vectors", (words, d), "float32", means)]
        found.append(tensor("words", inputs, 0, words))
    if inputs.shape[0] > words:
        found.append(tensor("ngrams", inputs, words, inputs.shape[0]))
    name = "labels" if dictionary.supervised else "tree" if dictionary.tree else "output"
    if outputs.shape[0]:
        found.append(tensor(name, outputs, 0, outputs.shape[0]))
    return tuple(found)
