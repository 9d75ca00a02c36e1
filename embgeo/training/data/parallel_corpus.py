"""Sentence pairs of two languages as rows of one vocabulary, or of one for each language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.training.data.encoding import RowSequences, join_sequences
from embgeo.training.data.layouts import SPLIT_NAMES, SPLITS
from embgeo.training.data.text import COMPRESSED, hash_files, list_folder, read_lines
from embgeo.training.data.tokenizer import END_ROW, BytePairs
from embgeo.training.data.vocabulary import Dataset, Vocabulary

#: A sentence and its translation.
Pair = tuple[str, str]

_ENDING = rf"(?:{'|'.join(map(re.escape, COMPRESSED))})?"


def find_parallel(path: Path, source: str, target: str, test: str) -> dict[str, tuple[Path, Path]]:
    """Find the files of both languages by split; the first by name where there are several.

    `path`: a folder with ``train.SOURCE`` and ``train.TARGET``; names of the other splits begin
    with ``valid``, ``val`` or ``dev``, and with ``test``. `test`: another beginning for the test
    split, if not empty.
    """
    found, listed = {}, list_folder(path)
    for split, names in SPLIT_NAMES.items():
        known = (test,) if split == "test" and test else names
        files = [
            (file, match[1])
            for name in known
            for file in listed
            if (
                match := re.fullmatch(
                    rf"({re.escape(name)}.*)\.{re.escape(source)}{_ENDING}", file.name
                )
            )
        ]
        pairs = (
            (file, other)
            for file, stem in files
            for other in (file.with_name(f"{stem}.{target}{end}") for end in ("", *COMPRESSED))
            if other.is_file()
        )
        if (pair := next(pairs, None)) is None:
            shown = f"{known[0]}.{source} and {known[0]}.{target}"
            missing = f"there is {files[0][0].name}, but no .{target}" if files else f"no {shown}"
            raise BadOption(
                f"the {split} split is missing: {missing}",
                where=path,
                way_out=f"set task.source, task.target or task.test with {argument('settings')}",
            )
        found[split] = pair
    return found


def read_parallel(source: Path, target: Path) -> list[Pair]:
    """Read two files with a sentence a line; pairs with an empty side are left out."""
    one, other = ([line.strip() for line in read_lines(path)] for path in (source, target))
    if len(one) != len(other):
        cause = f"it has {len(one):,} lines, and {target.name} has {len(other):,}"
        raise UnreadableFile(cause, where=source)
    full = [pair for pair in zip(one, other, strict=True) if all(pair)]
    if not full:
        raise UnreadableFile("it has no sentences", where=source)
    return full


@dataclass(frozen=True, slots=True)
class ParallelSplit:
    """Sentence pairs of a split as rows, each ending in `END`, and the translations as text."""

    source: RowSequences
    target: RowSequences
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, chosen: IntArray) -> ParallelSplit:
        """Return some pairs, given in ascending order."""
        source, target = self.source.select(chosen), self.target.select(chosen)
        return ParallelSplit(source, target, tuple(self.texts[i] for i in chosen))


@dataclass(frozen=True, slots=True)
class ParallelCorpus(Dataset):
    """Sentence pairs in three splits, and their vocabulary.

    Counts are over both sides if both languages share one matrix, else over the target.
    """

    #: The pieces of the vocabulary; only needed for translations.
    pieces: Any = None
    #: The vocabulary of the source, if it has a matrix of its own.
    source_vocabulary: Vocabulary | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Target tokens of each split, sentence ends included."""
        return {split: len(getattr(self, split).target.rows) for split in SPLITS}


def load_parallel(
    path: Path,
    *,
    source: str,
    target: str,
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
    files = find_parallel(path, source, target, test)
    splits = {split: read_parallel(*pair) for split, pair in files.items()}
    read, written = zip(*splits["train"], strict=True)
    if joint:
        pieces = (BytePairs((text for pair in splits["train"] for text in pair), size),) * 2
        learned = f"{pieces[1].size:,} pieces of words by byte-pair encoding of both sides"
    else:
        pieces = (BytePairs(read, size), BytePairs(written, size))
        learned = f"{pieces[0].size:,} and {pieces[1].size:,} pieces of words, each of its side"
    encoded = {}
    for split, pairs in splits.items():
        sides = zip(pieces, zip(*pairs, strict=True), strict=True)
        one, other = (join_sequences(own.encode(side), end=END_ROW) for own, side in sides)
        encoded[split] = ParallelSplit(one, other, tuple(text for _, text in pairs))
    whole = encoded["train"]
    fits = np.maximum(whole.source.lengths, whole.target.lengths) <= length
    train = whole.select(np.flatnonzero(fits))
    if not len(train):
        raise BadOption(
            f"every pair of the training split has more than {length:,} tokens on a side",
            where=path,
            way_out=f"raise task.length with {argument('settings', 'task.length=N')}",
        )
    counts = [
        np.bincount(side.rows, minlength=own.size)
        for side, own in zip((train.source, train.target), pieces, strict=True)
    ]
    summary = (
        f"{source} to {target}: {len(train):,} pairs to train on, "
        f"{len(whole) - len(train):,} with more than {length:,} tokens are left out; "
        f"{learned} for training"
    )
    origin = f"the test split is {files['test'][0].name} and {files['test'][1].name}"
    return ParallelCorpus(
        name=f"{path.resolve().name} {source}–{target}",
        vocabulary=pieces[1].vocabulary(np.sum(counts, axis=0) if one_matrix else counts[1]),
        train=train,
        valid=encoded["valid"],
        test=encoded["test"],
        notes=(origin, summary, note),
        files=hash_files(path, (file for pair in files.values() for file in pair)),
        unit="target tokens",
        pieces=pieces[1],
        source_vocabulary=None if one_matrix else pieces[0].vocabulary(counts[0]),
    )
