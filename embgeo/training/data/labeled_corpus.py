"""Documents with classes as rows of a vocabulary, cut into splits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.training.data.encoding import Words
from embgeo.training.data.labeled_texts import LabeledText, find_splits, read_labeled
from embgeo.training.data.text import sha256
from embgeo.training.data.vocabulary import UNKNOWN, Vocabulary, ranked

Ints = npt.NDArray[np.int64]

#: The share of validation, and of testing, where a corpus has no such part: one in this many.
FOLDS = 10
#: What the name of a training file says besides that of the corpus.
_SUFFIX = re.compile(r"[._-]?train.*|\.[a-z]+$")
_TAG = re.compile(r"<[^>]{0,40}>")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_HEADERS = re.compile(r"\A(?:[^\n]+\n)+\n")
_QUOTED = re.compile(
    r"^(?:[>|}].*|.*(?:writes in|writes:|wrote:|says:|said:|^In article).*)$", re.M
)


@dataclass(frozen=True, slots=True)
class LabeledDocuments:
    """Documents one after the other.

    Attributes
    ----------
    rows : int array
        Of the vocabulary, of all tokens; shape (T,).
    ends : int array
        Where in `rows` each document begins, and the last one ends; shape (n + 1,).
    classes : int array
        The class of each document; shape (n,).
    """

    rows: npt.NDArray[np.integer[Any]]
    ends: Ints
    classes: Ints

    def __len__(self) -> int:
        return len(self.classes)


@dataclass(frozen=True, slots=True)
class LabeledCorpus:
    """What a classifier is trained on and judged by.

    Attributes
    ----------
    classes : tuple of str
        Names of the classes, in their order.
    train, valid, test : LabeledDocuments
    """

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
        return {split: len(getattr(self, split)) for split in ("train", "valid", "test")}


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
    """Read, cut and encode documents with classes; `ClassificationTask` describes the arguments.

    Raises
    ------
    BadOption
        A folder without a training part, or patterns that leave fewer than two classes.
    UnreadableFile
        A line that cannot be read, or a class that the training part does not have.
    """
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
    placed = {
        split: LabeledDocuments(row_of[found.rows], found.ends, found.classes)
        for split, found in encoded.items()
    }
    base = path if path.is_dir() else path.parent
    cut = np.mean([len(split_tokens(t, strip=strip)) > length for _, t in splits["train"]])
    notes += [
        f"{len(classes)} classes: {', '.join(classes)}",
        f"documents are cut behind {length:,} tokens, which shortens {cut:.0%} of those for "
        "training; counts are those of what is left",
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
        files={file.relative_to(base).as_posix(): sha256(file) for file in files.values()},
    )


def merge_classes(texts: list[LabeledText], merge: Sequence[str]) -> list[LabeledText]:
    """With the first entry of `merge` that a class matches as its class; others are left out."""
    if not merge:
        return texts
    known = {label: None for label, _ in texts}
    place = {
        label: next(
            (one for one in merge if any(fnmatchcase(label, part) for part in one.split("|"))), None
        )
        for label in known
    }
    return [(name, text) for label, text in texts if (name := place[label]) is not None]


def cut_splits(
    read: dict[str, list[LabeledText]], fold: int
) -> tuple[dict[str, list[LabeledText]], list[str]]:
    """All three splits, and notes on those that were cut from the training part."""
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
    """The rest and a fold of `FOLDS`, with as many documents of each class as the others have."""
    held = hold_out(np.array([label for label, _ in texts]), fold, seed)
    pairs = list(zip(texts, held, strict=True))
    return [text for text, out in pairs if not out], [text for text, out in pairs if out]


def hold_out(labels: npt.NDArray[Any], fold: int, seed: int) -> npt.NDArray[np.bool_]:
    """Which documents are in a fold of `FOLDS`, drawn in each class by itself."""
    generator = np.random.default_rng(seed)
    held = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        places = generator.permutation(np.flatnonzero(labels == label))
        held[places[fold::FOLDS]] = True
    return held


def check_classes(
    splits: dict[str, list[LabeledText]], classes: tuple[str, ...], path: Path
) -> None:
    """Refuse what cannot be learned or judged."""
    if len(classes) < 2:
        raise BadOption(
            f"there are {len(classes)} classes to tell apart",
            where=path,
            way_out="check the labels, and merge of [task]",
        )
    for split, texts in splits.items():
        strange = sorted({label for label, _ in texts} - set(classes))
        if strange:
            raise UnreadableFile(
                f"the {split} split has the class {strange[0]!r}, which the training split has not",
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
    """Numbers of the first words of every document; one without words has the unknown one."""
    number = {label: place for place, label in enumerate(classes)}
    rows = [
        [words[token] for token in split_tokens(text, strip=strip)[:length]] or [words[UNKNOWN]]
        for _, text in texts
    ]
    ends = np.cumsum([0, *map(len, rows)])
    flat = np.fromiter((row for document in rows for row in document), np.int64, int(ends[-1]))
    return LabeledDocuments(flat, ends, np.array([number[label] for label, _ in texts]))


def split_tokens(text: str, *, strip: bool = False) -> list[str]:
    """Words and punctuation marks in lower case, without what stands in angle brackets."""
    if strip:
        text = _QUOTED.sub("", _HEADERS.sub("", text))
    return _TOKEN.findall(_TAG.sub(" ", text).lower())
