"""Sentence pairs as rows of one vocabulary, or of one for each language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption
from embgeo.training.data.layouts import SPLITS
from embgeo.training.data.parallel_texts import (
    Pair,
    PairsBySplit,
    cut_pairs,
    find_parallel,
    read_columns,
    read_parallel,
)
from embgeo.training.data.sequences import RowSequences, join_sequences
from embgeo.training.data.text import hash_files, is_folder
from embgeo.training.data.tokenizer import END_ROW, BytePairs
from embgeo.training.data.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class ParallelSplit:
    """Sentence pairs of a split as rows, each ending in `END`, and the translations as text."""

    source: RowSequences
    target: RowSequences
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, chosen: IntArray) -> ParallelSplit:
        """Some pairs, given in ascending order."""
        source, target = self.source.select(chosen), self.target.select(chosen)
        return ParallelSplit(source, target, tuple(self.texts[i] for i in chosen))


@dataclass(frozen=True, slots=True)
class ParallelCorpus:
    """Sentence pairs in three splits, and their vocabulary.

    Attributes
    ----------
    vocabulary : Vocabulary
        Counts are over both sides if both languages share one matrix, else over the target.
    pieces : BytePairs
        The pieces of this vocabulary.
    source_vocabulary : Vocabulary, optional
        The vocabulary of the source, if it has a matrix of its own.
    """

    name: str
    vocabulary: Vocabulary
    pieces: BytePairs
    train: ParallelSplit
    valid: ParallelSplit
    test: ParallelSplit
    notes: tuple[str, ...]
    files: dict[str, str]
    source_vocabulary: Vocabulary | None = None
    unit: str = "target tokens"

    @property
    def sizes(self) -> dict[str, int]:
        """Target tokens of each split, sentence ends included."""
        return {split: len(getattr(self, split).target.rows) for split in SPLITS}


def load_parallel(
    path: Path,
    *,
    source: str,
    target: str,
    columns: Sequence[str],
    test: str,
    length: int,
    size: int,
    joint: bool,
    one_matrix: bool,
    note: str,
) -> ParallelCorpus:
    """Read sentences and translations; `TranslationTask` describes the arguments.

    `one_matrix`: whether both languages share a matrix, and so the counts. `note`: a further note.
    """
    splits, files, origin = read_splits(path, source, target, columns, test)
    if joint:
        pieces = (BytePairs((text for pair in splits["train"] for text in pair), size),) * 2
    else:
        read, written = zip(*splits["train"], strict=True)
        pieces = (BytePairs(read, size), BytePairs(written, size))
    encoded = {split: encode_pairs(pieces, pairs) for split, pairs in splits.items()}
    whole = encoded["train"]
    fits = np.maximum(whole.source.lengths, whole.target.lengths) <= length
    train = whole.select(np.flatnonzero(fits))
    if not len(train):
        raise BadOption(
            f"every pair of the training split has more than {length:,} tokens on a side",
            where=path,
            way_out="make length of [task] larger",
        )
    sides = (train.source.rows, train.target.rows)
    counts = [
        np.bincount(rows, minlength=own.size) for rows, own in zip(sides, pieces, strict=True)
    ]
    learned = f"{pieces[1].size:,} pieces of words by byte-pair encoding of both sides"
    if not joint:
        learned = f"{pieces[0].size:,} and {pieces[1].size:,} pieces of words, each of its side"
    summary = (
        f"{source} to {target}: {len(train):,} pairs to train on, "
        f"{len(whole) - len(train):,} with more than {length:,} tokens are left out; "
        f"{learned} for training"
    )
    return ParallelCorpus(
        name=f"{path.resolve().name} {source}–{target}",
        vocabulary=pieces[1].vocabulary(np.sum(counts, axis=0) if one_matrix else counts[1]),
        pieces=pieces[1],
        train=train,
        valid=encoded["valid"],
        test=encoded["test"],
        notes=(origin, summary, note),
        files=hash_files(path, files),
        source_vocabulary=None if one_matrix else pieces[0].vocabulary(counts[0]),
    )


def read_splits(
    path: Path, source: str, target: str, columns: Sequence[str], test: str
) -> tuple[PairsBySplit, list[Path], str]:
    """The pairs of each split, their files, and a note."""
    if is_folder(path):
        found = find_parallel(path, source, target, test)
        splits = {split: read_parallel(*pair) for split, pair in found.items()}
        note = f"the test split is {found['test'][0].name} and {found['test'][1].name}"
        return splits, [file for pair in found.values() for file in pair], note
    splits = cut_pairs(list(dict.fromkeys(read_columns(path, columns, source, target))))
    note = (
        f"{len(splits['valid']):,} pairs are for validation and {len(splits['test']):,} for "
        "testing, the same for all methods and seeds; no sentence of one split is in another"
    )
    return splits, [path], note


def encode_pairs(pieces: tuple[BytePairs, BytePairs], pairs: list[Pair]) -> ParallelSplit:
    """Encode each side of the pairs with its own pieces."""
    texts = tuple(zip(*pairs, strict=True))
    source, target = (
        join_sequences(own.encode(side), end=END_ROW)
        for own, side in zip(pieces, texts, strict=True)
    )
    return ParallelSplit(source, target, texts[1])
