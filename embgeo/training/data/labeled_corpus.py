"""Documents with classes in the usual file formats, as rows of a vocabulary in splits."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.training.data.encoding import (
    RowSequences,
    Words,
    join_sequences,
)
from embgeo.training.data.layouts import SPLITS, find_splits, name_data
from embgeo.training.data.text import TAG, find_ending, hash_files, read_lines
from embgeo.training.data.vocabulary import UNKNOWN, Dataset, choose_rows
from embgeo.training.sections import DataSettings

#: A class and a text.
LabeledText = tuple[str, str]

#: Endings of files of labeled texts.
ENDINGS = (".jsonl", ".csv", ".tsv")
_COLUMNS = {"label", "text"}


class Record(Struct):
    """A document in a line of JSON."""

    label: str | int
    text: str


def read_labeled(path: Path) -> list[LabeledText]:
    """Read the documents of a file, in the format of its ending.

    ``.jsonl``: objects with ``label`` and ``text``. ``.csv`` and ``.tsv``: with a header, the
    columns of these names; without, the class comes first, and the text is the last column of a
    ``.tsv``, which has no quotes, and all others of a ``.csv``.
    """
    ending = find_ending(path)
    if ending not in ENDINGS:
        raise UnreadableFile(f"labeled texts are {', '.join(ENDINGS)}", where=path)
    found = list(read_json(path) if ending == ".jsonl" else read_table(path, ending == ".csv"))
    if not found:
        raise UnreadableFile("it has no documents", where=path)
    return found


def read_json(path: Path) -> Iterator[LabeledText]:
    """Yield class and text of each object, one a line."""
    parse = Decoder(Record).decode
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            try:
                record = parse(line)
            except (DecodeError, RecursionError) as error:
                cause = f"line {number:,} is not a JSON object with a label and a text"
                raise UnreadableFile(cause, where=path) from error
            yield str(record.label), record.text


def read_table(path: Path, quoted: bool) -> Iterator[LabeledText]:
    """Yield class and text of each row of a table that may have a header."""
    rows = csv.reader(read_lines(path), strict=True)
    plain = (line.rstrip("\r\n").split("\t") for line in read_lines(path))
    label, text, least, named = 0, -1, 2, False
    try:
        for number, row in enumerate(rows if quoted else plain, 1):
            if number == 1 and set(row) >= _COLUMNS:
                label, text, named = row.index("label"), row.index("text"), True
                least = max(label, text) + 1
            elif any(row):
                if len(row) < least:
                    raise UnreadableFile(f"line {number:,} has no class and text", where=path)
                joined = " ".join(row[1:]) if quoted and not named else row[text]
                yield row[label].strip(), joined
    except csv.Error as error:
        cause = f"line {rows.line_num:,} cannot be parsed as CSV ({error})"
        raise UnreadableFile(cause, where=path) from error


#: One document in this many is for validation, and for testing, where a corpus lacks that part.
TENTH = 10
#: The way out where classes do not fit.
MERGE = f"set task.merge with {argument('settings', 'task.merge=…')}"
#: Defaults of `DataSettings.min_count` and `DataSettings.size`.
MIN_COUNT, SIZE = 2, 30_000
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

    def select(self, chosen: IntArray) -> "LabeledDocuments":
        found = RowSequences.select(self, chosen)
        return LabeledDocuments(found.rows, found.ends, self.classes[chosen])


@dataclass(frozen=True, slots=True)
class LabeledCorpus(Dataset):
    """Documents of a vocabulary with classes."""

    classes: tuple[str, ...] = ()


def load_labeled(
    chosen: DataSettings, *, length: int, strip: bool, merge: Sequence[str]
) -> LabeledCorpus:
    """Read documents with classes; `ClassificationTask` describes the keyword arguments."""
    path, words = Path(chosen.path), Words(Path(chosen.path))
    files, notes = find_splits(
        path, lambda file: find_ending(file) in ENDINGS, "labeled text", ("train",)
    )
    whole = {split: [*chain.from_iterable(map(read_labeled, own))] for split, own in files.items()}
    splits = {split: merge_classes(texts, merge) for split, texts in whole.items()}
    if others := sum(map(len, whole.values())) - sum(map(len, splits.values())):
        notes.append(f"{others:,} documents are of classes that task.merge leaves out")
    splits = {"train": splits.pop("all"), **splits} if "all" in splits else splits
    for split, seed in (("test", 1), ("valid", 0)):
        if split not in splits:
            splits["train"], splits[split] = cut_tenth(splits["train"], seed)
            notes.append(
                f"{split}: one document in {TENTH} of each class, drawn from the training part, "
                "the same for all methods and seeds"
            )
    classes = {label: n for n, label in enumerate(sorted({label for label, _ in splits["train"]}))}
    if len(classes) < 2:
        cause = f"there are {len(classes)} classes, and two or more are needed"
        raise BadOption(cause, where=path, way_out=MERGE)
    lengths: list[int] = []

    def encode(text: str) -> list[int]:
        tokens = split_tokens(text, strip=strip)
        lengths.append(len(tokens))
        # A document without words is one unknown word.
        return words.encode(tokens[:length] or [UNKNOWN])

    encoded = {}
    for split in SPLITS:
        texts = splits[split]
        cause = "" if texts else f"there are no documents for the {split} split"
        if strange := {label for label, _ in texts} - classes.keys():
            cause = f"the {split} split has the class {min(strange)!r}, which train lacks"
        if cause:
            raise UnreadableFile(cause, where=path, way_out=MERGE)
        joined = join_sequences(encode(text) for _, text in texts)
        labels = np.array([classes[label] for label, _ in texts])
        encoded[split] = LabeledDocuments(joined.rows, joined.ends, labels)
    train = encoded["train"]
    cut = np.mean(np.array(lengths[: len(train)]) > length)
    encoded["train"] = train.select(train.within(chosen.tokens))
    vocabulary, rows, placed = choose_rows(
        list(words),
        {split: found.rows for split, found in encoded.items()},
        min_count=MIN_COUNT if chosen.min_count is None else chosen.min_count,
        size=SIZE if chosen.size is None else chosen.size,
    )
    notes += [
        f"{len(classes)} classes: {', '.join(classes)}",
        f"documents are cut after {length:,} tokens, which shortens {cut:.0%} of the training "
        "documents; counts are taken after the cut",
    ]
    if chosen.tokens is not None:
        kept = len(encoded["train"].rows)
        notes.append(f"the first {kept:,} tokens of documents in drawn order")
    notes += placed
    if strip:
        notes.append("headers and quoted lines of posts are left out")
    return LabeledCorpus(
        name=name_data(path),
        vocabulary=vocabulary,
        **{split: replace(found, rows=rows[split]) for split, found in encoded.items()},
        notes=tuple(notes),
        files=hash_files(path, chain.from_iterable(files.values())),
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
