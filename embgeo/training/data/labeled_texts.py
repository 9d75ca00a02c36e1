"""Documents with classes in the usual file formats of text classification."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.io.bounded.guard import cannot_read
from embgeo.training.data.layouts import SPLIT_NAMES
from embgeo.training.data.text import (
    BYTE_ORDER_MARK,
    find_ending,
    is_folder,
    list_folder,
    read_blocks,
    read_lines,
)

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
                way_out="give the training file itself"
                if named
                else "give a folder with the training part, or a single file to cut",
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
    ``.tsv`` and all others of a ``.csv``. Anything else: lines of a class, a blank and a text, in
    UTF-8 or else Latin-1.
    """
    found = list(READERS.get(find_ending(path), read_pairs)(path))
    if not found:
        raise UnreadableFile("it has no documents", where=path, way_out="give labeled texts")
    return found


def read_jsonl(path: Path) -> Iterator[LabeledText]:
    """JSON objects, one a line."""
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
    """Columns between commas, quoted where necessary."""
    rows = csv.reader(read_lines(path), strict=True)
    counted = iter(enumerate(rows, 1))
    try:
        yield from read_columns(path, counted, lambda row: " ".join(row[1:]))
    except csv.Error as error:
        raise refuse_line(path, rows.line_num, f"cannot be parsed as CSV ({error})") from error


def read_tsv(path: Path) -> Iterator[LabeledText]:
    """Columns between tabs, without quotes."""
    rows = (line.rstrip("\r\n").split("\t") for line in read_lines(path))
    yield from read_columns(path, enumerate(rows, 1), lambda row: row[-1])


def read_columns(
    path: Path, rows: Iterable[tuple[int, list[str]]], join: Callable[[list[str]], str]
) -> Iterator[LabeledText]:
    """Class and text of each row of a table that may have a header."""
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


def read_pairs(path: Path) -> Iterator[LabeledText]:
    """A class, a blank and a text in each line."""
    data = b"".join(read_blocks(path)).removeprefix(BYTE_ORDER_MARK)
    if b"\0" in data:
        raise UnreadableFile("it is binary, not text", where=path, way_out="give plain text")
    try:
        whole = data.decode("utf-8")
    except UnicodeDecodeError:
        whole = data.decode("latin-1")
    for number, line in enumerate(whole.split("\n"), 1):
        label, blank, text = line.rstrip("\r").partition(" ")
        if not line.strip():
            continue
        if not label or not blank:
            raise refuse_line(path, number, "is not a class, a blank and a text")
        yield label, text


#: By the suffix of a file's name.
READERS: dict[str, Callable[[Path], Iterator[LabeledText]]] = {
    ".jsonl": read_jsonl,
    ".csv": read_csv,
    ".tsv": read_tsv,
}


def refuse_line(path: Path, number: int, what: str) -> UnreadableFile:
    """The error for a line that cannot be read."""
    return UnreadableFile(f"line {number:,} {what}", where=path, way_out="correct the line")
