"""Settings and dictionary of a fastText model, which precede its matrices."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.io.bounded.guard import Damaged
from embgeo.io.formats.subwords import END_OF_SENTENCE, LONGEST_NGRAM, Subwords
from embgeo.io.labels.counts_file import LARGEST_COUNT
from embgeo.io.labels.word_lists import room_for_words

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
    """Whether settings are plausible, by which models without a magic number are recognized."""
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
    """Words, their counts, and the end of the last entry."""
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
    """Hashes of a pruned model in ascending order, and the row of each."""
    if kept < 0:
        return None
    if 8 * kept > len(data) - at:
        raise Damaged(f"it promises {kept:,} n-grams, more than the file can hold")
    table = np.frombuffer(data[at : at + 8 * kept], dtype="<i4").reshape(kept, 2).astype(np.int64)
    table = table[np.argsort(table[:, 0], kind="stable")]
    if kept and (table.min() < 0 or table[:, 1].max() >= kept):
        raise Damaged("an n-gram's row lies outside of its matrix")
    return table[:, 0], table[:, 1]
