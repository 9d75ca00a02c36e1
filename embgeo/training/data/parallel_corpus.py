"""Sentences and their translations as rows of one vocabulary, or of one for each language."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption
from embgeo.training.data.byte_pairs import END_ROW, BytePairs
from embgeo.training.data.parallel_texts import (
    Pair,
    PairsBySplit,
    cut_pairs,
    find_parallel,
    read_columns,
    read_parallel,
)
from embgeo.training.data.text import sha256
from embgeo.training.data.vocabulary import Vocabulary

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sentences of one language one after the other, each with `END` behind it.

    Attributes
    ----------
    rows : int32 array
        Of the vocabulary, of all tokens; shape (T,).
    ends : int array
        Where in `rows` each sentence begins, and the last one ends; shape (n + 1,).
    """

    rows: npt.NDArray[np.int32]
    ends: Ints

    def __len__(self) -> int:
        return len(self.ends) - 1

    @property
    def lengths(self) -> Ints:
        """Tokens of each sentence, `END` among them; shape (n,)."""
        return np.diff(self.ends)


@dataclass(frozen=True, slots=True)
class ParallelSplit:
    """Pairs of sentences of a split, and the translations as they are written."""

    source: Sentences
    target: Sentences
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, slots=True)
class ParallelCorpus:
    """What a translation model is trained on and judged by.

    Attributes
    ----------
    vocabulary : Vocabulary
        With the counts of both sides where both languages have one matrix, else of the target.
    pieces : BytePairs
        Of that vocabulary.
    train, valid, test : ParallelSplit
    source_vocabulary : Vocabulary or None
        With the counts of the source, where that has a matrix of its own.
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
        """Target tokens of each split, ends of sentences among them."""
        splits = ("train", "valid", "test")
        return {split: len(getattr(self, split).target.rows) for split in splits}


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

    With `one_matrix` for both languages the counts are those of both, else each of its side.
    """
    splits, files, notes = read_splits(path, source, target, columns, test)
    if joint:
        pieces = (BytePairs((text for pair in splits["train"] for text in pair), size),) * 2
    else:
        read, written = zip(*splits["train"], strict=True)
        pieces = (BytePairs(read, size), BytePairs(written, size))
    encoded = {split: encode_pairs(pieces, pairs) for split, pairs in splits.items()}
    whole = encoded["train"]
    train = cut_long(whole, length)
    if not len(train):
        raise BadOption(
            f"no pair of the training split has {length:,} tokens at most on both sides",
            where=path,
            way_out="make length of [task] larger",
        )
    sides = (train.source.rows, train.target.rows)
    counts = [
        np.bincount(rows, minlength=own.size) for rows, own in zip(sides, pieces, strict=True)
    ]
    of_source = None if one_matrix else pieces[0].vocabulary(counts[0])
    learned = f"{pieces[1].size:,} pieces of words by byte-pair encoding of both sides"
    if not joint:
        learned = f"{pieces[0].size:,} and {pieces[1].size:,} pieces of words, each of its side"
    notes.append(
        f"{source} to {target}: {len(train):,} pairs to train on, "
        f"{len(whole) - len(train):,} with more than {length:,} tokens are left out; "
        f"{learned} for training"
    )
    base = path if path.is_dir() else path.parent
    return ParallelCorpus(
        name=f"{path.resolve().name} {source}–{target}",
        vocabulary=pieces[1].vocabulary(np.sum(counts, axis=0) if one_matrix else counts[1]),
        pieces=pieces[1],
        train=train,
        valid=encoded["valid"],
        test=encoded["test"],
        notes=(*notes, note),
        files={file.relative_to(base).as_posix(): sha256(file) for file in files},
        source_vocabulary=of_source,
    )


def read_splits(
    path: Path, source: str, target: str, columns: Sequence[str], test: str
) -> tuple[PairsBySplit, list[Path], list[str]]:
    """The pairs of each split, the files that they are from, and notes."""
    if path.is_dir():
        found = find_parallel(path, source, target, test)
        splits = {split: read_parallel(*pair) for split, pair in found.items()}
        note = f"the test split is {found['test'][0].name} and {found['test'][1].name}"
        return splits, [file for pair in found.values() for file in pair], [note]
    splits = cut_pairs(list(dict.fromkeys(read_columns(path, columns, source, target))))
    note = (
        f"{len(splits['valid']):,} pairs are for validation and {len(splits['test']):,} for "
        "testing, the same for all methods and seeds; no sentence of one split is in another"
    )
    return splits, [path], [note]


def encode_pairs(pieces: tuple[BytePairs, BytePairs], pairs: list[Pair]) -> ParallelSplit:
    """Both sides of pairs as rows, each by the pieces of its side."""
    texts = tuple(zip(*pairs, strict=True))
    source, target = (join_rows(own.encode(side)) for own, side in zip(pieces, texts, strict=True))
    return ParallelSplit(source, target, texts[1])


def join_rows(sentences: Iterable[Sequence[int]]) -> Sentences:
    """Sentences one after the other, each with `END` behind it."""
    rows, ends = array("i"), array("q", [0])
    for sentence in sentences:
        rows.extend(sentence)
        rows.append(END_ROW)
        ends.append(len(rows))
    return Sentences(np.array(rows, dtype=np.int32), np.array(ends))


def cut_long(split: ParallelSplit, length: int) -> ParallelSplit:
    """Without the pairs of which a side has more tokens."""
    chosen = np.flatnonzero(np.maximum(split.source.lengths, split.target.lengths) <= length)
    return split if len(chosen) == len(split) else choose_pairs(split, chosen)


def choose_pairs(split: ParallelSplit, chosen: Ints) -> ParallelSplit:
    """Some pairs of a split, in ascending order."""
    source, target = (choose_sentences(side, chosen) for side in (split.source, split.target))
    return ParallelSplit(source, target, tuple(split.texts[i] for i in chosen))


def choose_sentences(sentences: Sentences, chosen: Ints) -> Sentences:
    """Some of the sentences, in ascending order."""
    wanted = np.zeros(len(sentences), dtype=bool)
    wanted[chosen] = True
    rows = sentences.rows[np.repeat(wanted, sentences.lengths)]
    return Sentences(rows, np.concatenate([[0], np.cumsum(sentences.lengths[chosen])]))
