"""Documents with classes in the usual file formats, as rows of a vocabulary in splits."""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.files.guard import cannot_read
from embgeo.training.data.encoding import RowSequences, Words, join_sequences
from embgeo.training.data.layouts import SPLIT_NAMES
from embgeo.training.data.text import (
    TAG,
    find_ending,
    hash_files,
    is_folder,
    list_folder,
    read_lines,
)
from embgeo.training.data.vocabulary import UNKNOWN, Dataset, ranked

#: A class and a text.
LabeledText = tuple[str, str]

_TEXT_COLUMN, _LABEL_COLUMN = "text", "label"


def find_splits(path: Path) -> dict[str, Path]:
    """Find the files of the splits in a folder, or next to a training file.

    Next to a file with "train" in its name, files with "test", "valid", "val" or "dev" instead are
    the other splits. A file without "train" in its name is cut into splits.
    """
    train = path
    if is_folder(path):
        named = [file for file in list_folder(path) if "train" in file.name]
        if len(named) != 1:
            raise BadOption(
                f"the folder has {len(named)} files with “train” in their names",
                where=path,
                way_out=f"name the training file with {argument('data')}",
            )
        train = named[0]
    if not train.is_file():
        raise cannot_read(train, FileNotFoundError())
    splits = {"train": train}
    if "train" in train.name:
        for split in ("valid", "test"):
            names = (train.name.replace("train", name) for name in SPLIT_NAMES[split])
            places = map(train.with_name, names)
            if (found := next((place for place in places if place.is_file()), None)) is not None:
                splits[split] = found
    return splits


def read_labeled(path: Path) -> list[LabeledText]:
    """Read the documents of a file, in the format of its suffix.

    ``.jsonl``: objects with ``label`` and ``text``. ``.csv`` and ``.tsv``: with a header, the
    columns of these names; without, the class comes first, and the text is the last column of a
    ``.tsv`` and all others of a ``.csv``.
    """
    reader = READERS.get(find_ending(path))
    if reader is None:
        raise UnreadableFile(f"labeled texts are {', '.join(READERS)}", where=path)
    found = list(reader(path))
    if not found:
        raise UnreadableFile("it has no documents", where=path)
    return found


def read_jsonl(path: Path) -> Iterator[LabeledText]:
    """Yield JSON objects, one a line."""
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise refuse_line(path, number, "cannot be parsed as JSON") from error
        label, text = (
            record.get(key) if isinstance(record, dict) else None
            for key in (_LABEL_COLUMN, _TEXT_COLUMN)
        )
        if isinstance(label, bool) or not isinstance(label, str | int) or not isinstance(text, str):
            raise refuse_line(path, number, "is not an object with a label and a text")
        yield str(label), text


def read_csv(path: Path) -> Iterator[LabeledText]:
    """Yield columns between commas, quoted where necessary."""
    rows = csv.reader(read_lines(path), strict=True)
    counted = iter(enumerate(rows, 1))
    try:
        yield from read_columns(path, counted, lambda row: " ".join(row[1:]))
    except csv.Error as error:
        raise refuse_line(path, rows.line_num, f"cannot be parsed as CSV ({error})") from error


def read_tsv(path: Path) -> Iterator[LabeledText]:
    """Yield columns between tabs, without quotes."""
    rows = (line.rstrip("\r\n").split("\t") for line in read_lines(path))
    yield from read_columns(path, enumerate(rows, 1), lambda row: row[-1])


def read_columns(
    path: Path, rows: Iterable[tuple[int, list[str]]], join: Callable[[list[str]], str]
) -> Iterator[LabeledText]:
    """Yield class and text of each row of a table that may have a header."""
    label, text = 0, -1
    named = False
    for number, row in rows:
        if number == 1 and {_LABEL_COLUMN, _TEXT_COLUMN} <= set(row):
            label, text, named = row.index(_LABEL_COLUMN), row.index(_TEXT_COLUMN), True
            continue
        if not any(row):
            continue
        if len(row) <= max(label, text, 1 - named):
            raise refuse_line(path, number, "has no class and text")
        yield row[label].strip(), row[text] if named else join(row)


#: By the suffix of a file's name.
READERS: dict[str, Callable[[Path], Iterator[LabeledText]]] = {
    ".jsonl": read_jsonl,
    ".csv": read_csv,
    ".tsv": read_tsv,
}


def refuse_line(path: Path, number: int, what: str) -> UnreadableFile:
    """Return the error for a line that cannot be read."""
    return UnreadableFile(f"line {number:,} {what}", where=path)


#: One document in this many is for validation, and for testing, where a corpus lacks that part.
TENTH = 10
#: The way out where classes do not fit.
MERGE = f"set task.merge with {argument('settings', 'task.merge=…')}"
#: The part of the name of a training file that follows the name of the corpus.
_SUFFIX = re.compile(r"[._-]?train.*|\.[a-z]+$")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_HEADERS = re.compile(r"\A(?:[^\n]+\n)+\n")
_QUOTED = re.compile(
    r"^(?:[>|}].*|.*(?:writes in|writes:|wrote:|says:|said:|^In article).*)$", re.M
)


@dataclass(frozen=True, slots=True)
class LabeledDocuments(RowSequences):
    """Documents with their classes."""

    #: The class of each document; shape (n,).
    classes: IntArray


@dataclass(frozen=True, slots=True)
class LabeledCorpus(Dataset):
    """Documents of a vocabulary with classes."""

    classes: tuple[str, ...] = ()


def load_labeled(
    path: Path,
    *,
    length: int,
    strip: bool,
    merge: Sequence[str],
    min_count: int,
    size: int | None,
) -> LabeledCorpus:
    """Read documents with classes; `ClassificationTask` describes the arguments."""
    files = find_splits(path)
    splits = {split: merge_classes(read_labeled(file), merge) for split, file in files.items()}
    notes = []
    for split, seed in (("test", 1), ("valid", 0)):
        if split not in splits:
            splits["train"], splits[split] = cut_tenth(splits["train"], seed)
            notes.append(
                f"{split}: one document in {TENTH} of each class, drawn from the training part, "
                "the same for all methods and seeds"
            )
    classes = {label: n for n, label in enumerate(sorted({label for label, _ in splits["train"]}))}
    if len(classes) < 2:
        raise BadOption(
            f"there are {len(classes)} classes, and two or more are needed",
            where=path,
            way_out=MERGE,
        )
    words = Words(path)
    encoded = {}
    for split, texts in splits.items():
        if strange := {label for label, _ in texts} - classes.keys():
            raise UnreadableFile(
                f"the {split} split has the class {min(strange)!r}, which the training split lacks",
                where=path,
                way_out=MERGE,
            )
        if not texts:
            raise UnreadableFile(
                f"there are no documents for the {split} split", where=path, way_out=MERGE
            )
        tokens = (split_tokens(text, strip=strip)[:length] for _, text in texts)
        # A document without words is one unknown word.
        joined = join_sequences(map(words.__getitem__, own or [UNKNOWN]) for own in tokens)
        labels = np.array([classes[label] for label, _ in texts])
        encoded[split] = LabeledDocuments(joined.rows, joined.ends, labels)
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
        train=placed["train"],
        valid=placed["valid"],
        test=placed["test"],
        notes=tuple(notes),
        files=hash_files(path, files.values()),
        unit="documents",
        classes=tuple(classes),
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


def cut_tenth(texts: list[LabeledText], seed: int) -> tuple[list[LabeledText], list[LabeledText]]:
    """Split into the rest and one document in `TENTH`, drawn class by class."""
    labels, held = np.array([label for label, _ in texts]), set()
    generator = np.random.default_rng(seed)
    for label in np.unique(labels):
        held |= {*generator.permutation(np.flatnonzero(labels == label))[::TENTH].tolist()}
    rest = [text for place, text in enumerate(texts) if place not in held]
    return rest, [text for place, text in enumerate(texts) if place in held]


def split_tokens(text: str, *, strip: bool = False) -> list[str]:
    """Split text into words and punctuation marks in lower case, without tags in angle brackets."""
    if strip:
        text = _QUOTED.sub("", _HEADERS.sub("", text))
    return _TOKEN.findall(TAG.sub(" ", text).lower())
