"""Binary models of fastText, with their words and counts.

The input matrix has a row for each word, then a row for each bucket of hashed character n-grams.
The vector of a word (``get_word_vector``, the ``.vec`` file) is the mean of its row and the rows of
its n-grams; its row alone is the remainder that the n-grams do not explain, near zero for rare
words. So the means, ``word_vectors``, are taken for the embedding. They are computed when opened;
everything else is mapped:

- ``words``: the rows of the words (the same as ``word_vectors`` in a model without n-grams),
- ``ngrams``: the rows of the buckets (in a classifier also those of word n-grams),
- ``output``: the output matrix over the same words. In its place, without a row for each word,
  ``tree`` has the inner nodes of hierarchical softmax, ``labels`` the classes of a classifier.

Quantized models (``.ftz``) are decoded: fastText computes with the same numbers.
"""

import mmap
import struct
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.maps import SWAPPED, Array, map_file, view
from embgeo.io.bounded.scratch import fill_rows
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.convert.subwords import (
    END_OF_SENTENCE,
    LONGEST_NGRAM,
    Floats,
    Integers,
    Subwords,
    mean_vectors,
)
from embgeo.io.labels.counts_file import LARGEST_COUNT
from embgeo.io.labels.word_lists import decode_words, room_for_words

MAGIC = struct.pack("<i", 793712314)
VERSIONS = (11, 12)

# dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, lrUpdateRate, t
SETTINGS = struct.Struct("<12id")
# Entries of the dictionary, words and labels among them; tokens of the training text.
SIZES = struct.Struct("<3iq")
#: After each word and its NUL: the count, and 0 for a word or 1 for a label.
ENTRY = struct.Struct("<qb")
_PRUNED = struct.Struct("<q")

SUPERVISED = 3
HIERARCHICAL_SOFTMAX = 1
_MODELS = range(1, 4)
_LOSSES = range(1, 5)
_WIDEST = 65_536
_LONGEST_WORD = 65_536

#: Memory of a word in addition to its letters, as bytes and later as text.
_WORD_COST = 140
#: The largest published models have 2.5 million.
MOST_ENTRIES = 20_000_000


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The part of a fastText model before its matrices."""

    d: int
    supervised: bool
    tree: bool  # hierarchical softmax: output rows are inner nodes of a Huffman tree
    words: list[bytes]  # in row order, without labels
    counts: npt.NDArray[np.float64]  # of the words
    labels: int
    subwords: Subwords
    has_flags: bool  # False for models older than the magic number, without flags before matrices
    end: int  # the byte at which the matrices begin


def settings_fit(fields: tuple[int | float, ...]) -> bool:
    """Tell whether settings are plausible, as of models without a magic number."""
    dim, loss, model, bucket, threshold = (fields[place] for place in (0, 6, 7, 8, 12))
    return (
        0 < dim <= _WIDEST
        and loss in _LOSSES
        and model in _MODELS
        and bucket >= 0
        and 0 <= threshold <= 1
    )


def sizes_fit(entries: int, words: int, labels: int, tokens: int) -> bool:
    return words > 0 and labels >= 0 and entries == words + labels and tokens >= 0


def read_dictionary(path: Path) -> Dictionary:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at, version = 0, 0
        if has_flags := data[:4] == MAGIC:
            version = struct.unpack_from("<i", data, 4)[0]
            at = 8
            if version not in VERSIONS:
                raise Damaged(f"version {version} of fastText's format is not known")
        fields = SETTINGS.unpack_from(data, at)
        if not settings_fit(fields):
            raise Damaged("fastText does not write settings like these")
        sizes = SIZES.unpack_from(data, at + SETTINGS.size)
        at += SETTINGS.size + SIZES.size
        kept = -1
        if has_flags:
            kept = _PRUNED.unpack_from(data, at)[0]
            at += _PRUNED.size
        if not sizes_fit(*sizes):
            raise Damaged("the sizes of its dictionary contradict each other, or it has no words")
        words, counts, at = _entries(data, at, sizes[1], sizes[2])
        pairs = _pairs(data, at, kept)
        at += 8 * max(kept, 0)
    supervised = fields[7] == SUPERVISED
    # Early classifiers ignore their settings of character n-grams; models older than the magic
    # number cut the end of a sentence like other words.
    longest = 0 if supervised and version < 12 else fields[10]
    if longest > LONGEST_NGRAM:
        raise Damaged(f"its settings say n-grams of {longest:,} characters")
    return Dictionary(
        d=fields[0],
        supervised=supervised,
        tree=fields[6] == HIERARCHICAL_SOFTMAX and not supervised,
        words=words,
        counts=counts,
        labels=sizes[2],
        subwords=Subwords(
            fields[9], longest, fields[8], pairs, END_OF_SENTENCE if version else None
        ),
        has_flags=has_flags,
        end=at,
    )


def _entries(
    data: mmap.mmap, at: int, words: int, labels: int
) -> tuple[list[bytes], npt.NDArray[np.float64], int]:
    """Return the words, their counts, and the end of the last entry."""
    entries = words + labels
    if entries * (1 + ENTRY.size) > len(data) - at:
        raise Damaged(f"its dictionary promises {entries:,} entries, more than the file can hold")
    if entries > MOST_ENTRIES:
        raise Damaged(f"its dictionary has more than {MOST_ENTRIES:,} entries")
    found: list[bytes] = []
    counts = np.empty(words, dtype=np.float64)
    empty, room = 0, room_for_words(len(data))
    for entry in range(entries):
        end = data.find(b"\0", at, at + _LONGEST_WORD + 1)
        if end < 0:
            raise Damaged(f"entry {entry:,} of its dictionary does not end")
        count, kind = ENTRY.unpack_from(data, end + 1)
        if kind != (0 if entry < words else 1) or not 0 <= count <= LARGEST_COUNT:
            raise Damaged(f"entry {entry:,} of its dictionary has a damaged count or kind")
        empty += end == at
        if empty > 1:  # words are distinct: this is not a dictionary
            raise Damaged(f"entry {entry:,} of its dictionary repeats the empty word")
        room -= 2 * (end - at) + _WORD_COST
        if room < 0:
            raise Damaged("the words of its dictionary take implausibly much memory")
        if entry < words:
            found.append(data[at:end])
            counts[entry] = count
        at = end + 1 + ENTRY.size
    return found, counts, at


def _pairs(
    data: mmap.mmap, at: int, kept: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """Return the hashes of a pruned model in ascending order, and the row of each."""
    if kept < 0:
        return None
    if 8 * kept > len(data) - at:
        raise Damaged(f"it promises {kept:,} n-grams, more than the file can hold")
    table = np.frombuffer(data[at : at + 8 * kept], dtype="<i4").reshape(kept, 2).astype(np.int64)
    table = table[np.argsort(table[:, 0], kind="stable")]
    if kept and (table.min() < 0 or table[:, 1].max() >= kept):
        raise Damaged("an n-gram's row lies outside of its matrix")
    return table[:, 0], table[:, 1]


NAME = "fastText binary"
RECOGNIZED = "a magic number; older models by their settings and first word"
READ = "matrices are mapped; dictionary and word vectors are read into memory or a temporary file"
EXTRA = ""

_SHAPE = struct.Struct("<qq")


_HEADER = struct.Struct("<?qqi")  # with norms; rows, columns; bytes of codes
_QUANTIZER = struct.Struct("<4i")  # columns, pieces, columns of a piece, of the last one
_CENTROIDS = 256
_BLOCK_ROWS = 4096


@dataclass(frozen=True, slots=True)
class QuantizedMatrix:
    """A product-quantized matrix (``.ftz``), decoded row by row.

    Each piece of a row is the number of one of 256 centroids; a model quantized with ``-qnorm``
    also has the number of the length of the row. Source: Joulin et al. (2016), "FastText.zip:
    Compressing text classification models", section 3.
    """

    shape: tuple[int, int]
    codes: Array  # shape (rows, pieces)
    pieces: list[Floats]  # of shape (256, columns of the piece)
    lengths: tuple[Array, Floats] | None  # number of the length of each row, and the 256 lengths

    def __getitem__(self, rows: slice | Integers) -> Floats:
        """Decode rows; a range goes into memory or a temporary file."""
        if isinstance(rows, slice):
            starts = range(rows.start, rows.stop, _BLOCK_ROWS)
            blocks = (self[np.arange(k, min(k + _BLOCK_ROWS, rows.stop))] for k in starts)
            return fill_rows(blocks, (rows.stop - rows.start, self.shape[1]))
        codes = self.codes[rows]
        out = np.concatenate([piece[codes[:, q]] for q, piece in enumerate(self.pieces)], axis=1)
        if self.lengths is not None:
            row_codes, lengths = self.lengths
            with np.errstate(over="ignore", invalid="ignore"):
                out *= lengths[row_codes[rows]][:, None]
        return out


def read_quantized(data: Array, at: int) -> tuple[QuantizedMatrix, int]:
    """Read the quantized matrix at byte `at`, and its end."""
    with_lengths, rows, columns, size = _HEADER.unpack(data[at : at + _HEADER.size].tobytes())
    at += _HEADER.size
    if rows <= 0 or columns <= 0 or size <= 0 or rows > len(data) or at + size > len(data):
        raise Damaged("a quantized matrix is longer than the file, or empty")
    codes = data[at : at + size]
    pieces, at = _quantizer(data, at + size, columns)
    if size != rows * len(pieces):
        raise Damaged("the number of codes of a quantized matrix does not fit its shape")
    lengths = None
    if with_lengths:
        row_codes = view(data[at:], np.dtype(np.uint8), (rows,))
        ((values,), at) = _quantizer(data, at + rows, 1)
        lengths = row_codes, values[:, 0]
    shape = (rows, columns)
    return QuantizedMatrix(shape, codes.reshape(rows, len(pieces)), pieces, lengths), at


def _quantizer(data: Array, at: int, columns: int) -> tuple[list[Floats], int]:
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


#: Indexed by ranges of rows and by row numbers.
_Stored = Floats | QuantizedMatrix


def sniff(head: bytes) -> bool:
    return head.startswith(MAGIC) or _is_old(head)


def open_checkpoint(path: Path) -> Checkpoint:
    data = map_file(path)
    dictionary = read_dictionary(path)
    inputs, at = _read_matrix(data, dictionary.end, dictionary.has_flags, can_be_quantized=True)
    quantized = isinstance(inputs, QuantizedMatrix)
    outputs, end = _read_matrix(data, at, dictionary.has_flags, can_be_quantized=quantized)
    notes = _check_shapes(dictionary, inputs, outputs)
    if end < len(data):
        if not dictionary.has_flags:
            raise Damaged(f"{len(data) - end:,} bytes follow where the model should end")
        notes += (f"{len(data) - end:,} bytes after the model were not read",)
    tokens, word_notes = decode_words(dictionary.words, path)
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


def _read_matrix(
    data: Array, at: int, has_flag: bool, *, can_be_quantized: bool
) -> tuple[_Stored, int]:
    """Read the matrix at byte `at`, after a flag that says whether it is quantized, and its end."""
    if has_flag:
        if at >= len(data) or data[at] > 1:
            raise Damaged("the flag before a matrix is damaged or cut off")
        at += 1
        if data[at - 1] and can_be_quantized:
            return read_quantized(data, at)
    rows, columns = _SHAPE.unpack(data[at : at + _SHAPE.size].tobytes())
    at += _SHAPE.size
    if rows < 0 or columns <= 0:
        raise Damaged("a matrix has a negative shape or no columns")
    if 4 * rows * columns > len(data) - at:
        raise Damaged(f"a matrix of {rows:,}×{columns:,} numbers is longer than the file")
    values = view(data[at:], np.dtype(np.float32), (rows, columns), swapped=SWAPPED)
    return values, at + 4 * rows * columns


def _check_shapes(dictionary: Dictionary, inputs: _Stored, outputs: _Stored) -> tuple[str, ...]:
    """Compare the matrices with the dictionary; a note on labels of supervised models."""
    words, kept = len(dictionary.words), dictionary.subwords.kept
    if kept is not None and not isinstance(inputs, QuantizedMatrix):
        raise Damaged("a pruned model that is not quantized, as only early test versions wrote")
    input_rows = words + (dictionary.subwords.buckets if kept is None else len(kept[0]))
    output_rows = dictionary.labels if dictionary.supervised else words
    for name, (n, d), rows in (
        ("input", inputs.shape, input_rows),
        ("output", outputs.shape, output_rows),
    ):
        if (n, d) != (rows, dictionary.d):
            raise Damaged(
                f"its {name} matrix has {n:,}×{d:,} numbers, "
                f"its dictionary asks for {rows:,}×{dictionary.d:,}"
            )
    if dictionary.supervised:
        return (f"a supervised model; its {dictionary.labels:,} labels are not among the rows",)
    return ()


def _tensors(dictionary: Dictionary, inputs: _Stored, outputs: _Stored) -> tuple[Tensor, ...]:
    words, d = len(dictionary.words), dictionary.d

    def tensor(name: str, stored: _Stored, start: int, stop: int, alias_of: str = "") -> Tensor:
        return Tensor(name, (stop - start, d), "float32", lambda: stored[start:stop], alias_of)

    if dictionary.subwords.is_none:
        found = [tensor("word_vectors", inputs, 0, words)]
        found.append(tensor("words", inputs, 0, words, alias_of="word_vectors"))
    else:
        means = partial(
            mean_vectors,
            dictionary.words,
            dictionary.subwords,
            inputs.__getitem__,
            lambda numbers: inputs[words + numbers],
            d,
        )
        found = [Tensor("word_vectors", (words, d), "float32", means)]
        found.append(tensor("words", inputs, 0, words))
    if inputs.shape[0] > words:
        found.append(tensor("ngrams", inputs, words, inputs.shape[0]))
    name = "labels" if dictionary.supervised else "tree" if dictionary.tree else "output"
    if outputs.shape[0]:
        found.append(tensor(name, outputs, 0, outputs.shape[0]))
    return tuple(found)
