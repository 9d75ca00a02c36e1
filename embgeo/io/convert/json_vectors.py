"""Vectors in JSON: lists of numbers, alone, under words or in records, in one value or JSON Lines.

Vectors of several kinds (``{"embeddings": {"float": […], "int8": […]}}``, or several under names in
each record) are matrices of their own. The file is read twice; values are decoded one by one, and
the file is not held in memory.
"""

import base64
import itertools
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.io.bounded.guard import RIGHT_FILE, Damaged, short
from embgeo.io.bounded.scratch import fill_rows
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.convert.json_stream import CUT, ValueStream, keys_of
from embgeo.io.convert.text_blocks import MAX_COLUMNS, too_wide
from embgeo.io.labels.side_tables import TOKEN_HEADINGS, order_of
from embgeo.io.labels.word_lists import WordList

NAME = "JSON vectors"
RECOGNIZED = (
    "JSON or JSON Lines with a list of at least four decimal numbers, a vector in base64, or a "
    "list of words, in the first 4,096 bytes"
)
READ = "numbers are read into memory or a temporary file"
EXTRA = ""

_NUMBER = rb"-?\d+(\.\d+([eE][+-]?\d+)?|[eE][+-]?\d+)"
_VECTOR = re.compile(rb"\[\s*(" + _NUMBER + rb"\s*,\s*){3}")
_BASE64 = re.compile(rb'"(?:embedding|vector|base64)"\s*:\s*\[?\s*"[A-Za-z0-9+/]{22}')
_START = re.compile(rb"(\xef\xbb\xbf)?\s*[\[{]")
#: Keys of the vector of a record with several lists of numbers, and of its label.
_VECTORS = ("embedding", "vector", "values", "vec", "dense")
#: Key of lists of vectors in base64.
_PACKED = "base64"
_SHORTEST_PACKED = 16
#: Key of the place of a record among all, as in the answers of OpenAI and others.
_INDEX = "index"
#: Most vectors with names of their own in a record.
_MOST_NAMED = 32
_BLOCK_ROWS = 4096
#: Keys of a list of words, or of their ids, beside a list of vectors, the surest first.
_WORDS = (
    "words", "tokens", "vocab", "vocabulary", "labels", "names", "ids", "index", "keys", "texts",
    "documents",
)  # fmt: skip
_WORDS_FIRST = re.compile(
    rb'(\xef\xbb\xbf)?\s*\{\s*"(words|tokens|labels|ids|index|texts|documents)"\s*:\s*\[\s*"'
)
#: A key of numbers that are not a vector: the columns of pandas.
_NO_VECTOR = "columns"
_LABELS = (*sorted(TOKEN_HEADINGS), "text", "name", "title", "id", "key")


@dataclass(frozen=True, slots=True)
class Found:
    """A vector; `kind` is the path of the list that holds it, `index` its place by its record."""

    kind: str
    label: str | None
    index: int | None
    vector: list[float]


@dataclass(frozen=True, slots=True)
class WordsBeside:
    """WordsBeside of the file that may label its vectors in their order."""

    name: str
    tokens: tuple[str, ...]


class _Listing:
    """What the first pass keeps of the vectors: a few bytes of each, and labels."""

    def __init__(self, path: Path) -> None:
        self.kinds: dict[str, int] = {}
        self.kind, self.width = array("i"), array("i")
        #: Of all vectors; None if one of them has none.
        self.index: array[int] | None = array("q")
        self.labels: WordList | None = WordList(path)
        self._names = WordList(path)  # bounds their memory
        self._widths: dict[int, int] = {}
        self._named: dict[str, int] = {}
        self.words: dict[str, tuple[str, ...]] = {}

    def add(self, found: Found) -> None:
        if len(found.vector) > MAX_COLUMNS:
            raise too_wide()
        number = self.kinds.get(found.kind)
        if number is None:
            self._names.add_text(found.kind)
            number = self.kinds[found.kind] = len(self.kinds)
        self._check_width(number, found)
        self.kind.append(number)
        self.width.append(len(found.vector))
        if self.index is not None and found.index is not None:
            self.index.append(found.index)
        else:
            self.index = None
        if self.labels is not None and found.label is not None:
            self.labels.add_text(found.label)
        else:
            self.labels = None

    def _check_width(self, kind: int, found: Found) -> None:
        """Refuse another length at once; vectors with names may have lengths of their own."""
        width, expected = len(found.vector), self._widths.setdefault(kind, len(found.vector))
        if width != expected:
            may_differ = found.label in self._named or len(self._named) < _MOST_NAMED
            if found.label is None or not may_differ:
                raise _other_width(len(self.kind), width, expected)
            if self._named.setdefault(found.label, width) != width:
                raise _other_width(len(self.kind), width, self._named[found.label])


@dataclass(frozen=True, slots=True)
class _Group:
    """The vectors of a matrix: their places in the file in the order of the rows, and labels."""

    name: str
    places: IntArray
    labels: tuple[str, ...] | None
    is_ordered: bool


def sniff(head: bytes) -> bool:
    has_vector = _VECTOR.search(head) is not None or _BASE64.search(head) is not None
    return (has_vector and _START.match(head) is not None) or bool(_WORDS_FIRST.match(head))


def open_checkpoint(path: Path) -> Checkpoint:
    """Open labels and shapes of the vectors; their numbers are read when a tensor is opened."""
    listing = _Listing(path)
    for found in _read(path):
        if isinstance(found, WordsBeside):
            listing.words[found.name] = found.tokens
        else:
            listing.add(found)
    if not listing.kinds:
        raise Damaged("it holds no list of numbers where vectors are expected", CUT)
    groups = _groups(listing)
    tensors = []
    for group in groups:
        shape = (len(group.places), _width_of(group, listing))
        opened = partial(_fill, path, group.places, shape)
        tensors.append(Tensor(group.name, shape, "float32", opened))
    only = groups[0] if len(groups) == 1 else None
    beside = listing.words if only is None or only.labels is None else {}
    fitting = [name for name in _WORDS if only and len(beside.get(name, ())) == len(only.places)]
    notes = listing.labels.finish()[1] if only and only.labels and listing.labels else ()
    if any(group.is_ordered for group in groups):
        notes = (*notes, f"the rows are in the order of the records' {_INDEX}")
    labeled = [(group.name, group.labels) for group in groups if group.labels is not None]
    return Checkpoint(
        path,
        NAME,
        tuple(tensors),
        (path,),
        beside[fitting[0]] if fitting else only.labels if only else None,
        f"{fitting[0]} in the file" if fitting else "the labels of the vectors in the file",
        notes=notes,
        vocabularies=() if only else (*labeled, *beside.items()),
    )


def _groups(listing: _Listing) -> list[_Group]:
    """Return the vectors by kind, or all together if there are very many kinds, which name them."""
    kind, names = np.asarray(listing.kind), list(listing.kinds)
    if len(names) == 1:
        return _split_named("vectors", np.arange(len(kind)), listing)
    if len(names) == len(kind) or len(names) > _MOST_NAMED:
        lasts = [name.rpartition(".")[2] for name in names]
        labels = tuple(lasts[number] for number in listing.kind)
        return [_Group("vectors", np.arange(len(kind)), labels, False)]
    return [
        group
        for number, name in enumerate(names)
        for group in _split_named(name, np.flatnonzero(kind == number), listing)
    ]


def _split_named(name: str, places: IntArray, listing: _Listing) -> list[_Group]:
    """Return the vectors of a kind; those that every record has under the same names are apart."""
    labels = None if listing.labels is None else [listing.labels.tokens[k] for k in places]
    if labels is not None:
        period = next((k for k, label in enumerate(labels) if k and label == labels[0]), 0)
        is_named = 1 < period <= min(_MOST_NAMED, len(labels) // 2)
        if is_named and all(label == labels[k % period] for k, label in enumerate(labels)):
            return [_Group(labels[k], places[k::period], None, False) for k in range(period)]
    order = None if listing.index is None else order_of(np.asarray(listing.index)[places])
    if order is not None:
        places = places[order]
        labels = None if labels is None else [labels[k] for k in order]
    return [_Group(name, places, None if labels is None else tuple(labels), order is not None)]


def _width_of(group: _Group, listing: _Listing) -> int:
    widths = np.asarray(listing.width)[group.places]
    odd = np.flatnonzero(widths != widths[np.argmin(group.places)])
    if not len(odd):
        return int(widths[0])
    first = odd[np.argmin(group.places[odd])]
    raise _other_width(group.places[first], widths[first], widths[np.argmin(group.places)])


def _other_width(place: int, width: int, expected: int) -> Damaged:
    return Damaged(
        f"vector {place + 1:,} has {width:,} numbers where {expected:,} are expected",
        "every vector needs the same number of them",
    )


def _fill(path: Path, places: IntArray, shape: tuple[int, int]) -> npt.NDArray[np.float32]:
    """Return the vectors at these places of the file, in their order."""
    in_file = np.sort(places)
    wanted = iter(in_file)

    def choose() -> Iterator[list[float]]:
        place = next(wanted, None)
        vectors = (one for one in _read(path) if isinstance(one, Found))
        for number, found in enumerate(vectors):
            if number == place:
                yield found.vector
                place = next(wanted, None)

    def blocks() -> Iterator[npt.NDArray[np.float32]]:
        vectors = choose()
        while block := list(itertools.islice(vectors, _BLOCK_ROWS)):
            with np.errstate(over="ignore"):  # 1e300 becomes inf, a non-finite row
                yield np.array(block, dtype=np.float32)

    rows: npt.NDArray[np.float32] = fill_rows(blocks(), shape)
    if np.array_equal(in_file, places):
        return rows
    rows = rows[np.searchsorted(in_file, places)]
    rows.flags.writeable = False
    return rows


def _read(path: Path) -> Iterator[Found | WordsBeside]:
    with path.open(encoding="utf-8-sig") as file:
        stream = ValueStream(file)
        try:
            for number in itertools.count(1):
                if not stream.peek():
                    break
                yield from _require_entries(_entries(stream, ""), f"value {number:,} of the file")
        except UnicodeDecodeError:
            raise Damaged("its text is not UTF-8", "write it as UTF-8") from None
        except RecursionError:
            raise Damaged("its lists nest too deeply", RIGHT_FILE) from None


def _entries(stream: ValueStream, kind: str) -> Iterator[Found | WordsBeside]:
    """Yield the vectors of the next value."""
    if stream.peek() == "{":
        yield from _object_entries(stream, kind)
    elif stream.is_list_next():
        yield from _list_entries(stream, kind)
    elif (vector := _vector(stream.decode())) is not None:
        yield Found(kind, None, None, vector)


def _list_entries(stream: ValueStream, kind: str) -> Iterator[Found | WordsBeside]:
    stream.expect("[")
    for number in itertools.count(1):
        yield from _require_entries(_entries(stream, kind), f"entry {number:,} of a list")
        if not stream.take(","):
            break
    stream.expect("]")


def _require_entries(
    entries: Iterator[Found | WordsBeside], where: str
) -> Iterator[Found | WordsBeside]:
    """Yield the entries; none at all is an error."""
    first = next(entries, None)
    if first is None:
        raise Damaged(f"{where} holds no vector", "leave it out")
    yield first
    yield from entries


def _object_entries(stream: ValueStream, kind: str) -> Iterator[Found | WordsBeside]:
    """Yield vectors of a record, under words, or in the fields of a response."""
    fields: dict[str, Any] = {}
    vectors: dict[str, list[float]] = {}
    under_words = False
    for key in keys_of(stream):
        inner = f"{kind}.{key}" if kind else key
        if stream.peek() == "{" or stream.is_list_next():
            yield from _entries(stream, inner)
            continue
        value = stream.decode()
        if key in _WORDS and isinstance(value, list) and (words := _words_of(value)):
            yield WordsBeside(key, words)
            continue
        if key == _PACKED and isinstance(value, list):
            yield from (Found(inner, None, None, _unpack(text)) for text in value)
            continue
        vector = None if key == _NO_VECTOR else _vector(value, is_named=key in _VECTORS)
        if vector is None:
            fields[key] = value
        elif under_words:
            yield Found(kind, key, None, vector)
        else:
            vectors[key] = vector
            under_words = len(vectors) > 1 and not fields and not vectors.keys() & set(_VECTORS)
            if under_words:
                yield from (Found(kind, word, None, held) for word, held in vectors.items())
    if vectors and not under_words:
        yield _read_record(kind, fields, vectors)
    elif not vectors and kind in _WORDS and (words := _words_of(fields)):
        yield WordsBeside(kind, words)


def _words_of(value: list[Any] | dict[str, Any]) -> tuple[str, ...]:
    """Return a list of words, or the words of a map to the numbers 0, 1, … in their order."""
    if isinstance(value, list):
        return tuple(value) if all(isinstance(word, str) for word in value) else ()
    numbers = [number for number in value.values() if type(number) is int]
    if len(numbers) < len(value) or sorted(numbers) != list(range(len(value))):
        return ()
    return tuple(sorted(value, key=value.__getitem__))


def _read_record(kind: str, fields: dict[str, Any], vectors: dict[str, list[float]]) -> Found:
    """Read the label and vector of a record; the label of a lone word is the word."""
    if len(vectors) == 1 and not fields:
        ((name, vector),) = vectors.items()
        return Found(kind, None if name in _VECTORS else name, None, vector)
    chosen = [name for name in _VECTORS if name in vectors] or list(vectors)
    if len(chosen) > 1 and chosen[0] not in _VECTORS:
        listed = ", ".join(map(short, chosen[:4]))
        raise Damaged(f"a record has several vectors: {listed}", "leave one of them")
    labels = (fields[label] for label in _LABELS if label in fields)
    label = next((label for label in labels if isinstance(label, (str, int))), None)
    index = fields.get(_INDEX)
    is_index = type(index) is int and 0 <= index < 2**62
    return Found(
        kind,
        None if label is None else str(label),
        index if is_index else None,
        vectors[chosen[0]],
    )


def _vector(value: object, *, is_named: bool = False) -> list[float] | None:
    """Return a list of numbers, or under the name of a vector its float32 in base64."""
    if isinstance(value, list):
        is_vector = len(value) > 1 and all(type(number) in (float, int) for number in value)
        return value if is_vector else None
    if is_named and isinstance(value, str) and len(value) >= _SHORTEST_PACKED:
        try:
            return _unpack(value)
        except Damaged:
            return None
    return None


def _unpack(text: object) -> list[float]:
    """Return the float32 of a text in base64."""
    try:
        raw = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except ValueError:
        raw = b""
    if len(raw) < 8 or len(raw) % 4:
        raise Damaged("a text is not a vector of float32 in base64", "write vectors as lists")
    numbers: list[float] = np.frombuffer(raw, dtype="<f4").tolist()
    return numbers
