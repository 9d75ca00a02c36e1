"""Sentence pairs of two languages as rows of one vocabulary, or of one for each language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.files.guard import refuse
from embgeo.files.links import COPY_IT, FOREIGN_LINK, is_foreign_link
from embgeo.training.data.encoding import (
    RowSequences,
    join_sequences,
)
from embgeo.training.data.layouts import SPLITS, describe_files, find_splits, list_files
from embgeo.training.data.text import COMPRESSED, hash_files, read_lines
from embgeo.training.data.tokenizer import END_ROW, BytePairs
from embgeo.training.data.vocabulary import Dataset, Vocabulary
from embgeo.training.sections import DataSettings

#: A sentence and its translation.
Pair = tuple[str, str]
#: The default of `DataSettings.size`.
SIZE = 4_000
_ENDING = rf"(?:{'|'.join(map(re.escape, COMPRESSED))})?"


def find_parallel(
    path: Path, source: str, target: str, test: str
) -> tuple[dict[str, tuple[Path, Path]], list[str]]:
    """Find the files of both languages by split, the first by name of several, and note which.

    `path`: a folder with ``train.SOURCE`` and ``train.TARGET``, and the same for the other splits.
    `test`: how the names of the test split begin, if not empty.
    """

    def find_target(file: Path) -> Path | None:
        match = re.fullmatch(rf"(.+)\.{re.escape(source)}{_ENDING}", file.name)
        names = [f"{match[1]}.{target}{ending}" for ending in ("", *COMPRESSED)] if match else []
        return next(filter(Path.is_file, map(file.with_name, names)), None)

    def fits(file: Path) -> bool:
        return find_target(file) is not None

    what = f"pair of files .{source} and .{target} (task.source, task.target)"
    files, notes = find_splits(path, fits, what, SPLITS[:2] if test else SPLITS)
    if "all" in files:
        way_out = f"put train.{source} and train.{target}, valid and test into one"
        raise BadOption("translations are read from a folder", where=path, way_out=way_out)
    if test:
        files["test"] = [file for file in list_files(path, fits)[0] if file.name.startswith(test)]
        if not files["test"]:
            way_out = f"set task.test with {argument('settings')}"
            raise BadOption(f"no {what} begins with {test}", where=path, way_out=way_out)
    found = {
        split: (own[0], other) for split, own in files.items() if (other := find_target(own[0]))
    }
    for _, other in found.values():
        if is_foreign_link(other):
            raise refuse(other, FOREIGN_LINK, COPY_IT)
    return found, [*notes[:-1], describe_files(found)]


def read_parallel(source: Path, target: Path) -> tuple[list[Pair], int]:
    """Read two files with a sentence a line, and count the pairs with an empty side, left out."""
    one, other = ([line.strip() for line in read_lines(path)] for path in (source, target))
    if len(one) != len(other):
        cause = f"it has {len(one):,} lines, and {target.name} has {len(other):,}"
        raise UnreadableFile(cause, where=source)
    full = [pair for pair in zip(one, other, strict=True) if all(pair)]
    if not full:
        raise UnreadableFile("it has no sentences", where=source)
    return full, len(one) - len(full)


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
    chosen: DataSettings,
    *,
    source: str,
    target: str,
    test: str,
    length: int,
    joint: bool,
    one_matrix: bool,
) -> ParallelCorpus:
    """Read sentences and translations; `TranslationTask` describes the other arguments.

    `one_matrix`: whether both languages share a matrix, and so the counts.
    """
    path, size = Path(chosen.path), SIZE if chosen.size is None else chosen.size
    files, notes = find_parallel(path, source, target, test)
    found = {split: read_parallel(*pair) for split, pair in files.items()}
    splits = {split: pairs for split, (pairs, _) in found.items()}
    if empty := sum(number for _, number in found.values()):
        notes.append(f"{empty:,} pairs with an empty side are left out")
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
    notes.append(
        f"{source} to {target}: {len(train):,} pairs to train on, "
        f"{len(whole) - len(train):,} with more than {length:,} tokens are left out; "
        f"{learned} for training"
    )
    train = train.select(train.target.within(chosen.tokens))
    if chosen.tokens is not None:
        notes.append(f"the first {len(train.target.rows):,} target tokens of pairs in drawn order")
    counts = [
        np.bincount(side.rows, minlength=own.size)
        for side, own in zip((train.source, train.target), pieces, strict=True)
    ]
    return ParallelCorpus(
        name=f"{path.resolve().name} {source}–{target}",
        vocabulary=pieces[1].vocabulary(np.sum(counts, axis=0) if one_matrix else counts[1]),
        train=train,
        valid=encoded["valid"],
        test=encoded["test"],
        notes=tuple(notes),
        files=hash_files(path, (file for pair in files.values() for file in pair)),
        unit="target tokens",
        pieces=pieces[1],
        source_vocabulary=None if one_matrix else pieces[0].vocabulary(counts[0]),
    )
