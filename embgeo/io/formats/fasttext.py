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
"""

import mmap
import struct
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from embgeo.core.matrix import FileStamp
from embgeo.files.guard import Damaged
from embgeo.files.maps import SWAPPED, Bytes, stamp_of, view
from embgeo.io.formats.format import Beside
from embgeo.io.formats.subwords import (
    END_OF_SENTENCE,
    LONGEST_NGRAM,
    Floats,
    Subwords,
    mean_vectors,
)
from embgeo.io.formats.word_lists import WordList, room_for_words
from embgeo.io.labels.counts_file import LARGEST_COUNT
from embgeo.io.model.checkpoint import Checkpoint, Tensor
from embgeo.io.model.parameter import BEFORE

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
# Beyond published models (300 columns) by far; a false width would multiply every other size.
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
    end: int  # the byte at which the matrices begin


def read_dictionary(file: FileStamp) -> Dictionary:
    with file.open() as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        version = struct.unpack_from("<i", data, 4)[0]
        if version not in VERSIONS:
            raise Damaged(f"version {version} of fastText's format is not known")
        fields = SETTINGS.unpack_from(data, 8)
        d, loss, model, buckets, shortest, longest = (fields[k] for k in (0, 6, 7, 8, 9, 10))
        if not 0 < d <= _WIDEST or loss not in _LOSSES or model not in _MODELS or buckets < 0:
            raise Damaged("fastText does not write settings like these")
        at = 8 + SETTINGS.size
        entries, words, labels, tokens = SIZES.unpack_from(data, at)
        at += SIZES.size
        if words <= 0 or labels < 0 or entries != words + labels or tokens < 0:
            raise Damaged("the sizes of its dictionary contradict each other, or it has no words")
        kept = _PRUNED.unpack_from(data, at)[0]
        if kept >= 0:
            raise Damaged(_QUANTIZED, BEFORE)
        found, counts, at = _entries(data, at + _PRUNED.size, words, labels)
    supervised = model == SUPERVISED
    # Early classifiers ignore their settings of character n-grams.
    longest = 0 if supervised and version < 12 else longest
    if longest > LONGEST_NGRAM:
        raise Damaged(f"its settings say n-grams of {longest:,} characters")
    return Dictionary(
        d=d,
        supervised=supervised,
        tree=loss == HIERARCHICAL_SOFTMAX and not supervised,
        words=found,
        counts=counts,
        labels=labels,
        subwords=Subwords(shortest, longest, buckets, END_OF_SENTENCE),
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


NAME = "fastText binary"
RECOGNIZED = "begins with the magic number 793712314"
READ = "matrices are mapped; dictionary and word vectors are read into memory or a temporary file"
EXTRA = ""

_SHAPE = struct.Struct("<qq")
_QUANTIZED = "its matrices are quantized"


def sniff(head: bytes) -> bool:
    return head.startswith(MAGIC)


def open_checkpoint(data: Bytes, _beside: Beside) -> Checkpoint:
    dictionary = read_dictionary(stamp_of(data))
    inputs, at = _read_matrix(data, dictionary.end)
    outputs, end = _read_matrix(data, at)
    notes = _check_shapes(dictionary, inputs, outputs)
    if end < len(data):
        notes += (f"{len(data) - end:,} bytes after the model were not read",)
    words = WordList(len(data))
    for word in dictionary.words:
        words.add(word)
    tokens, word_notes = words.finish()
    return Checkpoint(
        format=NAME,
        tensors=_tensors(dictionary, inputs, outputs),
        tokens=tokens,
        tokens_source="the dictionary of the file itself",
        notes=(*notes, *word_notes),
        counts=dictionary.counts,
        counts_source="counts in the dictionary of the fastText model",
    )


def _read_matrix(data: Bytes, at: int) -> tuple[Floats, int]:
    """Read the matrix at byte `at`, after a flag that says whether it is quantized, and its end."""
    flag = data[at : at + 1].tobytes()
    if flag not in (b"\0", b"\1"):
        raise Damaged("the flag before a matrix is damaged or cut off")
    if flag == b"\1":
        raise Damaged(_QUANTIZED, BEFORE)
    rows, columns = _SHAPE.unpack(data[at + 1 : at + 1 + _SHAPE.size].tobytes())
    at += 1 + _SHAPE.size
    if rows < 0 or columns <= 0:
        raise Damaged("a matrix has a negative shape or no columns")
    if 4 * rows * columns > len(data) - at:
        raise Damaged(f"a matrix of {rows:,}×{columns:,} numbers is longer than the file")
    values = view(data[at:], np.dtype(np.float32), (rows, columns), swapped=SWAPPED)
    return values, at + 4 * rows * columns


def _check_shapes(dictionary: Dictionary, inputs: Floats, outputs: Floats) -> tuple[str, ...]:
    """Compare the matrices with the dictionary; a note on labels of supervised models."""
    words = len(dictionary.words)
    input_rows = words + dictionary.subwords.buckets
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


def _tensors(dictionary: Dictionary, inputs: Floats, outputs: Floats) -> tuple[Tensor, ...]:
    words, d = len(dictionary.words), dictionary.d

    def tensor(name: str, stored: Floats, start: int, stop: int, alias_of: str = "") -> Tensor:
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
