"""Sentence pairs of two languages as rows of one vocabulary, or of one for each language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.training.data.encoding import RowSequences, join_sequences
from embgeo.training.data.layouts import SPLIT_NAMES, SPLITS
from embgeo.training.data.text import COMPRESSED, hash_files, is_folder, list_folder, read_lines
from embgeo.training.data.tokenizer import END_ROW, BytePairs
from embgeo.training.data.vocabulary import Dataset, Vocabulary

#: A sentence and its translation.
Pair = tuple[str, str]
PairsBySplit = dict[str, list[Pair]]

_ENDING = rf"(?:{'|'.join(map(re.escape, COMPRESSED))})?"
#: Validation and test of a single file have one pair in this many each, and this many at most.
PART, MOST = 20, 2_000


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
                way_out="check source, target and test of [task]",
            )
        found[split] = pair
    return found


def read_parallel(source: Path, target: Path) -> list[Pair]:
    """Read two files with a sentence a line; pairs with an empty side are left out."""
    one, other = ([line.strip() for line in read_lines(path)] for path in (source, target))
    if len(one) != len(other):
        raise UnreadableFile(
            f"it has {len(one):,} lines, and {target.name} has {len(other):,}",
            where=source,
            way_out="give files whose lines translate each other",
        )
    return require_pairs(list(zip(one, other, strict=True)), source)


def read_columns(path: Path, columns: Sequence[str], source: str, target: str) -> list[Pair]:
    """Read a file with columns between tabs, whose languages are `columns`."""
    for language in (source, target):
        if language not in columns:
            raise BadOption(
                f"no column is {language!r}",
                where=path,
                way_out=f'name the columns in [task]: columns = ["{target}", "{source}"]',
            )
    places = columns.index(source), columns.index(target)
    pairs = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        fields = line.rstrip("\r\n").split("\t")  # keeps empty columns, the first too
        if len(fields) <= max(places):
            raise UnreadableFile(
                f"line {number:,} has {len(fields)} columns, and {max(places) + 1} are needed",
                where=path,
                way_out="correct the line",
            )
        pairs.append((fields[places[0]].strip(), fields[places[1]].strip()))
    return require_pairs(pairs, path)


def require_pairs(pairs: list[Pair], path: Path) -> list[Pair]:
    """Return the pairs without an empty side, at least one."""
    full = [pair for pair in pairs if all(pair)]
    if not full:
        raise UnreadableFile("it has no sentences", where=path, way_out="give sentences")
    return full


def cut_pairs(pairs: list[Pair]) -> PairsBySplit:
    """Cut three splits that share no sentence on either side.

    Pairs that share a sentence, directly or through others, stay together.
    """
    known: dict[tuple[int, str], int] = {}
    ends = np.array(
        [[known.setdefault((side, pair[side]), len(known)) for side in (0, 1)] for pair in pairs]
    )
    n = len(known)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    group = connected_components(graph, directed=False)[1][ends[:, 0]]
    group = np.unique(group, return_inverse=True)[1]
    sizes = np.bincount(group)
    order = np.random.default_rng(0).permutation(len(sizes))
    # The largest groups are for training.
    order = order[np.argsort(sizes[order] > max(1, len(pairs) // 1_000), kind="stable")]
    place = np.empty(len(sizes), dtype=np.int64)
    part = min(len(pairs) // PART, MOST) or 1
    place[order] = np.minimum((np.cumsum(sizes[order]) - 1) // part, 2)
    names = ("valid", "test", "train")
    found: PairsBySplit = {name: [] for name in SPLITS}
    for pair, number in zip(pairs, group, strict=True):
        found[names[place[number]]].append(pair)
    if not all(found.values()):
        raise BadOption(
            f"{len(pairs):,} pairs cannot be cut into three splits without a common sentence",
            where="data",
            way_out="give more pairs, or a folder with a file for each split",
        )
    return found


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
    if is_folder(path):
        found = find_parallel(path, source, target, test)
        files = [file for pair in found.values() for file in pair]
        splits = {split: read_parallel(*pair) for split, pair in found.items()}
        origin = f"the test split is {found['test'][0].name} and {found['test'][1].name}"
    else:
        files = [path]
        splits = cut_pairs(list(dict.fromkeys(read_columns(path, columns, source, target))))
        origin = (
            f"{len(splits['valid']):,} pairs are for validation and {len(splits['test']):,} for "
            "testing, the same for all methods and seeds; no sentence of one split is in another"
        )
    read, written = zip(*splits["train"], strict=True)
    if joint:
        pieces = (BytePairs((text for pair in splits["train"] for text in pair), size),) * 2
    else:
        pieces = (BytePairs(read, size), BytePairs(written, size))
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
            way_out="make length of [task] larger",
        )
    counts = [
        np.bincount(side.rows, minlength=own.size)
        for side, own in zip((train.source, train.target), pieces, strict=True)
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
        train=train,
        valid=encoded["valid"],
        test=encoded["test"],
        notes=(origin, summary, note),
        files=hash_files(path, files),
        unit="target tokens",
        pieces=pieces[1],
        source_vocabulary=None if one_matrix else pieces[0].vocabulary(counts[0]),
    )
