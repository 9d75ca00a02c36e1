"""Documents with classes as rows of a vocabulary, cut into splits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.training.data.encoding import Words
from embgeo.training.data.labeled_texts import LabeledText, find_splits, read_labeled
from embgeo.training.data.layouts import SPLITS
from embgeo.training.data.sequences import RowSequences, join_sequences
from embgeo.training.data.text import TAG, hash_files
from embgeo.training.data.vocabulary import UNKNOWN, Vocabulary, ranked

#: One document in this many is for validation, and for testing, where a corpus lacks that part.
FOLDS = 10
#: The part of the name of a training file that follows the name of the corpus.
_SUFFIX = re.compile(r"[._-]?train.*|\.[a-z]+$")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_HEADERS = re.compile(r"\A(?:[^\n]+\n)+\n")
_QUOTED = re.compile(
    r"^(?:[>|}].*|.*(?:writes in|writes:|wrote:|says:|said:|^In article).*)$", re.M
)


@dataclass(frozen=True, slots=True)
class LabeledDocuments(RowSequences):
    """Documents with their classes.

    Attributes
    ----------
    classes : int array
        The class of each document; shape (n,).
    """

    classes: IntArray


@dataclass(frozen=True, slots=True)
class LabeledCorpus:
    """Documents of a vocabulary with classes, in three splits."""

    name: str
    vocabulary: Vocabulary
    classes: tuple[str, ...]
    train: LabeledDocuments
    valid: LabeledDocuments
    test: LabeledDocuments
    notes: tuple[str, ...]
    files: dict[str, str]
    unit: str = "documents"

    @property
    def sizes(self) -> dict[str, int]:
        """Documents of each split."""
        return {split: len(getattr(self, split)) for split in SPLITS}


def load_labeled(
    path: Path,
    *,
    length: int,
    strip: bool,
    merge: Sequence[str],
    fold: int,
    min_count: int,
    size: int | None,
) -> LabeledCorpus:
    """Read documents with classes; `ClassificationTask` describes the arguments."""
    files = find_splits(path)
    read = {split: merge_classes(read_labeled(file), merge) for split, file in files.items()}
    splits, notes = cut_splits(read, fold)
    classes = tuple(sorted({label for label, _ in splits["train"]}))
    check_classes(splits, classes, path)
    words = Words(path)
    encoded = {
        split: encode(texts, classes, words, length=length, strip=strip)
        for split, texts in splits.items()
    }
    counts = np.bincount(encoded["train"].rows, minlength=len(words))
    vocabulary, row_of = ranked(list(words), counts, min_count=min_count, size=size)
    placed = {split: replace(found, rows=row_of[found.rows]) for split, found in encoded.items()}
    cut = np.mean([len(split_tokens(t, strip=strip)) > length for _, t in splits["train"]])
    notes += [
        f"{len(classes)} classes: {', '.join(classes)}",
        f"documents are cut after {length:,} tokens, which shortens {cut:.0%} of the training "
        "documents; counts are taken after the cut",
    ]
    if strip:
        notes.append("headers and quoted lines of posts are left out")
    return LabeledCorpus(
        name=_SUFFIX.sub("", files["train"].name) or files["train"].resolve().parent.name,
        vocabulary=vocabulary,
        classes=classes,
        train=placed["train"],
        valid=placed["valid"],
        test=placed["test"],
        notes=tuple(notes),
        files=hash_files(path, files.values()),
    )


def merge_classes(texts: list[LabeledText], merge: Sequence[str]) -> list[LabeledText]:
    """Replace each class by the first entry of `merge` that it matches; leave out all others."""
    if not merge:
        return texts

    @cache
    def find_class(label: str) -> str | None:
        matches = (m for m in merge if any(fnmatchcase(label, part) for part in m.split("|")))
        return next(matches, None)

    return [(name, text) for label, text in texts if (name := find_class(label)) is not None]


def cut_splits(
    read: dict[str, list[LabeledText]], fold: int
) -> tuple[dict[str, list[LabeledText]], list[str]]:
    """Cut missing splits from the training part, with a note on each."""
    splits, notes = dict(read), []
    for split, chosen, seed in (("test", fold, 1), ("valid", 0, 0)):
        if split not in splits:
            splits["train"], splits[split] = cut_fold(splits["train"], chosen, seed)
            notes.append(
                f"{split}: one document in {FOLDS} of each class, drawn from the training part, "
                "the same for all methods and seeds"
            )
    return splits, notes


def cut_fold(
    texts: list[LabeledText], fold: int, seed: int
) -> tuple[list[LabeledText], list[LabeledText]]:
    """Split into the rest and one of `FOLDS` folds, stratified by class."""
    held = hold_out(np.array([label for label, _ in texts]), fold, seed)
    pairs = list(zip(texts, held, strict=True))
    return [text for text, out in pairs if not out], [text for text, out in pairs if out]


def hold_out(labels: npt.NDArray[Any], fold: int, seed: int) -> npt.NDArray[np.bool_]:
    """Which documents are in one of `FOLDS` folds, drawn class by class."""
    generator = np.random.default_rng(seed)
    held = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        places = generator.permutation(np.flatnonzero(labels == label))
        held[places[fold::FOLDS]] = True
    return held


def check_classes(
    splits: dict[str, list[LabeledText]], classes: tuple[str, ...], path: Path
) -> None:
    """Refuse splits without documents or with classes that training lacks."""
    if len(classes) < 2:
        raise BadOption(
            f"there are {len(classes)} classes, and two or more are needed",
            where=path,
            way_out="check the labels, and merge of [task]",
        )
    for split, texts in splits.items():
        strange = sorted({label for label, _ in texts} - set(classes))
        if strange:
            raise UnreadableFile(
                f"the {split} split has the class {strange[0]!r}, which the training split lacks",
                where=path,
                way_out="check the labels",
            )
        if not texts:
            raise UnreadableFile(
                f"there are no documents for the {split} split", where=path, way_out="give more"
            )


def encode(
    texts: list[LabeledText], classes: tuple[str, ...], words: Words, *, length: int, strip: bool
) -> LabeledDocuments:
    """Number the first words of every document; one without words gets the unknown word."""
    number = {label: place for place, label in enumerate(classes)}
    joined = join_sequences(
        [words[token] for token in split_tokens(text, strip=strip)[:length]] or [words[UNKNOWN]]
        for _, text in texts
    )
    labels = np.array([number[label] for label, _ in texts])
    return LabeledDocuments(joined.rows, joined.ends, labels)


def split_tokens(text: str, *, strip: bool = False) -> list[str]:
    """Words and punctuation marks in lower case, without tags in angle brackets."""
    if strip:
        text = _QUOTED.sub("", _HEADERS.sub("", text))
    return _TOKEN.findall(TAG.sub(" ", text).lower())
