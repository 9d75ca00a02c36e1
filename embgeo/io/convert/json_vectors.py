"""Vectors in JSON: lists of numbers, alone, under words or in records, in one value or JSON Lines.

The file is read twice; values are decoded one by one, and the file is not held in memory.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from embgeo.io.bounded.guard import RIGHT_FILE, Damaged, short
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.convert.text_blocks import LabeledVector, read_vectors
from embgeo.io.labels.side_tables import TOKEN_HEADINGS

NAME = "JSON vectors"
RECOGNIZED = (
    "JSON or JSON Lines with a list of at least four decimal numbers in the first 4,096 bytes"
)
READ = "numbers are read into memory or a temporary file"
EXTRA = ""

_NUMBER = rb"-?\d+(\.\d+([eE][+-]?\d+)?|[eE][+-]?\d+)"
_VECTOR = re.compile(rb"\[\s*(" + _NUMBER + rb"\s*,\s*){3}")
_START = re.compile(rb"(\xef\xbb\xbf)?\s*[\[{]")
_BLANK = re.compile(r"[ \t\r\n]*")
_INSIDE = re.compile(r"\[[ \t\r\n]*([^ \t\r\n])")
_CHUNK = 2**20
#: Longest single value, such as a record with its text.
_LONGEST = 64 * 2**20
#: Keys of the vector of a record with several lists of numbers, and of its label.
_VECTORS = ("embedding", "vector", "values", "vec", "dense")
_LABELS = (*sorted(TOKEN_HEADINGS), "text", "name", "title", "id", "key")
_CUT = "it may be cut off there; write or download it again"


def sniff(head: bytes) -> bool:
    return _START.match(head) is not None and _VECTOR.search(head) is not None


def open_checkpoint(path: Path) -> Checkpoint:
    """Labels and shape of the vectors; their numbers are read when the tensor is opened."""
    source = "the labels of the vectors in the file"
    return read_vectors(path, NAME, partial(_read_labeled, path), source)


def _read_labeled(path: Path) -> Iterator[LabeledVector]:
    with path.open(encoding="utf-8-sig") as file:
        stream = ValueStream(file)
        try:
            for number in itertools.count(1):
                if not stream.peek():
                    if number == 1:
                        cause = "it holds no list of numbers where vectors are expected"
                        raise Damaged(cause, _CUT)
                    break
                yield from _some(_entries(stream), f"value {number:,} of the file")
        except UnicodeDecodeError:
            raise Damaged("its text is not UTF-8", "write it as UTF-8") from None
        except RecursionError:
            raise Damaged("its lists nest too deeply", RIGHT_FILE) from None


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < 20 else float(digits)


class ValueStream:
    """Decodes signs and values of a JSON text one after the other."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._text, self._at, self._passed = file, "", 0, 0
        self._decoder = json.JSONDecoder(parse_int=_whole)

    def peek(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            self._at = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def opens_list(self) -> bool:
        """Whether the next value is a list of lists or objects."""
        if self.peek() != "[":
            return False
        while not (found := _INSIDE.match(self._text, self._at)) and self._more():
            pass
        return found is not None and found[1] in "[{"

    def take(self, sign: str) -> bool:
        """Skip the next character if it is this one."""
        if self.peek() != sign:
            return False
        self._at += 1
        return True

    def expect(self, sign: str) -> None:
        if not self.take(sign):
            raise self._damaged()

    def decode(self) -> Any:
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except ValueError:
                if not self._more():
                    raise self._damaged() from None
                continue
            # A number at the end of the chunk may be cut off.
            if end < len(self._text) or self._text[end - 1] in '"]}' or not self._more():
                self._at = end
                return value

    def _more(self) -> bool:
        if len(self._text) - self._at > _LONGEST:
            raise Damaged(f"it has a value of more than {_LONGEST // 2**20} MiB")
        chunk = self._file.read(max(_CHUNK, len(self._text) - self._at))
        self._passed += self._at
        self._text, self._at = self._text[self._at :] + chunk, 0
        return bool(chunk)

    def _damaged(self) -> Damaged:
        place = self._passed + self._at + 1
        found = short(self._text[self._at : self._at + 20])
        what = f"character {place:,}: {found}" if found else "its end"
        return Damaged(f"it is not JSON at {what}", _CUT)


def _entries(stream: ValueStream) -> Iterator[LabeledVector]:
    """The vectors of the next value."""
    if stream.peek() == "{":
        yield from _object_entries(stream)
    elif stream.opens_list():
        yield from _list_entries(stream)
    elif _is_vector(value := stream.decode()):
        yield None, value


def _list_entries(stream: ValueStream) -> Iterator[LabeledVector]:
    stream.expect("[")
    for number in itertools.count(1):
        yield from _some(_entries(stream), f"entry {number:,} of a list")
        if not stream.take(","):
            break
    stream.expect("]")


def _some(entries: Iterator[LabeledVector], where: str) -> Iterator[LabeledVector]:
    """The entries; none at all is an error."""
    first = next(entries, None)
    if first is None:
        raise Damaged(f"{where} holds no vector", "leave it out")
    yield first
    yield from entries


def _object_entries(stream: ValueStream) -> Iterator[LabeledVector]:
    """Vectors of a record, under words, or in the fields of a response."""
    fields: dict[str, Any] = {}
    vectors: dict[str, list[float]] = {}
    under_words = False
    for key in _keys(stream):
        if stream.peek() == "{" or stream.opens_list():
            yield from _entries(stream)
            continue
        value = stream.decode()
        if not _is_vector(value):
            fields[key] = value
        elif under_words:
            yield key, value
        else:
            vectors[key] = value
            under_words = len(vectors) > 1 and not fields and not vectors.keys() & set(_VECTORS)
            if under_words:
                yield from vectors.items()
    if vectors and not under_words:
        yield _read_record(fields, vectors)


def _keys(stream: ValueStream) -> Iterator[str]:
    """The keys of an object; the caller takes the value after each key."""
    stream.expect("{")
    if stream.take("}"):
        return
    while True:
        key = stream.decode()
        if not isinstance(key, str):
            raise Damaged("it is not JSON: a key is not a text", _CUT)
        stream.expect(":")
        yield key
        if not stream.take(","):
            break
    stream.expect("}")


def _read_record(fields: dict[str, Any], vectors: dict[str, list[float]]) -> LabeledVector:
    """The label and vector of a record; the label of a lone word is the word."""
    if len(vectors) == 1 and not fields:
        ((name, vector),) = vectors.items()
        return (None if name in _VECTORS else name), vector
    chosen = [name for name in _VECTORS if name in vectors] or list(vectors)
    if len(chosen) > 1 and chosen[0] not in _VECTORS:
        listed = ", ".join(map(short, chosen[:4]))
        raise Damaged(f"a record has several vectors: {listed}", "leave one of them")
    labels = (fields[label] for label in _LABELS if label in fields)
    label = next((label for label in labels if isinstance(label, (str, int))), None)
    return (None if label is None else str(label)), vectors[chosen[0]]


def _is_vector(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(type(number) in (float, int) for number in value)
    )
