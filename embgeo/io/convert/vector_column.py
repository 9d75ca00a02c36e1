"""Tables with a vector in one cell: ``"[0.1, 0.2]"``, as pandas writes a column of lists.

The notation of numpy, with blanks in place of commas, is read as well, and what ``COPY`` of
PostgreSQL writes: no headings, cells between tabs, vectors as ``[0.1,0.2]`` or ``{0.1,0.2}``. The
file is read twice.
"""

import contextlib
import csv
import itertools
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from embgeo.io.bounded.guard import Damaged, short
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.convert.text_blocks import (
    MAX_COLUMNS,
    LabeledVector,
    read_vectors,
    sort_rows_by_number,
    too_wide,
)
from embgeo.io.labels.side_tables import ID_HEADINGS, TOKEN_HEADINGS

NAME = "table with a column of vectors"
RECOGNIZED = (
    "rows with a list of numbers in brackets or braces in one cell, below headings or without"
)
READ = "numbers are read into memory or a temporary file"
EXTRA = ""

_SIGNS = ",;\t"
#: A bracket and two numbers.
_VECTOR = re.compile(r"[\[{]\s*[-+]?\d*\.?\d+([eE][-+]?\d+)?[\s,]+[-+]?\d*\.?\d")
_CELL = re.compile(r'"?[\[{][^\]}"]*[\]}]"?')
_ESCAPED = re.compile(r"\\(.)")
_MEANING = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
#: What COPY may write after the last row.
_END = "\\."
_WHOLE = re.compile(r"\d{1,18}")
_LONGEST_CELL = 16 * 2**20


@dataclass(frozen=True, slots=True)
class _Form:
    """How cells are separated, and whether headings or, as in text of COPY, escapes are used."""

    sign: str
    has_headings: bool
    is_copied: bool = False


def sniff(head: bytes) -> bool:
    if b"\0" in head or not (b"[" in head or b"{" in head):
        return False
    first, end, rest = head.decode("utf-8", "replace").removeprefix("\ufeff").partition("\n")
    form = _form_of(first if end else f"{first}]")
    if form is None:
        return False
    lines = rest if form.has_headings else first
    return re.search(rf'(^|{form.sign})"?{_VECTOR.pattern}', lines, re.MULTILINE) is not None


def _form_of(first: str) -> _Form | None:
    """Return the form of a table with this first line."""
    if "[" not in first and "{" not in first:
        sign = max(_SIGNS, key=first.count)
        return _Form(sign, True) if first.count(sign) else None
    bare = _CELL.sub("[", first.rstrip("\r\n"))
    sign = max(reversed(_SIGNS), key=bare.count)
    # A list alone on each line is JSON, an array of PostgreSQL is not.
    if "[" not in bare.split(sign) or (sign not in bare and not first.startswith("{")):
        return None
    return _Form(sign, False, is_copied=sign == "\t")


def open_checkpoint(path: Path) -> Checkpoint:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        form = _form_of(file.readline(_LONGEST_CELL)) or _Form(",", True)
    with contextlib.closing(_read_rows(path, form)) as rows:
        headings = [cell.strip().lower() for cell in next(rows, [])] if form.has_headings else []
        first = next(rows, [])
    headings = headings or [""] * len(first)
    vectors = [place for place, cell in enumerate(first) if _VECTOR.match(cell.lstrip())]
    if len(vectors) != 1 or len(first) != len(headings):
        raise Damaged(
            f"{len(vectors)} cells of its first row are vectors where one is expected",
            "leave one column of vectors",
        )
    label = _label_column(headings, first, vectors[0])
    shown = "" if label is None else short(headings[label]) or f"{label + 1}"
    read = partial(_read_labeled, path, form, vectors[0], label)
    source = f"column {shown} of the file"
    found = read_vectors(path, NAME, read, source, unit="row", first=1 + form.has_headings)
    places = [place for place in range(len(first)) if place not in (label, vectors[0])]
    number = next((place for place in places if _is_order(headings[place], first[place])), None)
    if number is None:
        return found
    return sort_rows_by_number(found, _numbers_in(path, form, number), are_ids=form.has_headings)


def _is_order(heading: str, cell: str) -> bool:
    """Tell whether a column may number the rows: by its heading, or without headings."""
    return _WHOLE.fullmatch(cell.strip()) is not None and (not heading or heading in ID_HEADINGS)


def _numbers_in(path: Path, form: _Form, place: int) -> list[int] | None:
    """Return the whole numbers of a column; None if a cell holds anything else."""
    numbers: list[int] = []
    with contextlib.closing(_read_rows(path, form)) as rows:
        for row in itertools.islice(rows, int(form.has_headings), None):
            if not _WHOLE.fullmatch(row[place].strip()):
                return None
            numbers.append(int(row[place]))
    return numbers


def _label_column(headings: list[str], first: list[str], vector: int) -> int | None:
    """Return a column with a heading of tokens, else the first that does not hold numbers."""
    others = [place for place in range(len(headings)) if place != vector]
    named = (place for place in others if headings[place] in TOKEN_HEADINGS)
    texts = (place for place in others if not first[place].replace(".", "").strip("-").isdigit())
    return next(named, next(texts, None))


def _read_labeled(
    path: Path, form: _Form, place: int, label: int | None
) -> Iterator[LabeledVector]:
    rows = _read_rows(path, form)
    first = next(rows, [])
    body = rows if form.has_headings else itertools.chain([first], rows)
    for number, row in enumerate(body, 1 + form.has_headings):
        if len(row) != len(first):
            raise Damaged(f"row {number:,} has {len(row):,} cells, the first has {len(first):,}")
        yield None if label is None else row[label], _parse(row[place], number)


def _read_rows(path: Path, form: _Form) -> Generator[list[str]]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        if form.is_copied:
            yield from _copied_rows(file)
            return
        limit = csv.field_size_limit(_LONGEST_CELL)
        try:
            yield from filter(None, csv.reader(file, delimiter=form.sign))
        except csv.Error as error:
            raise Damaged(f"it is not a table ({error})") from error
        finally:
            csv.field_size_limit(limit)


def _copied_rows(file: TextIO) -> Iterator[list[str]]:
    """Yield rows with the escapes of COPY."""
    while line := file.readline(_LONGEST_CELL):
        line = line.rstrip("\r\n")
        if line == _END:
            return
        if line:
            yield [
                _ESCAPED.sub(lambda found: _MEANING.get(found[1], found[1]), cell)
                for cell in line.split("\t")
            ]


def _parse(cell: str, row: int) -> list[float]:
    text = cell.strip()
    if text[:1] + text[-1:] not in ("[]", "{}"):
        raise Damaged(f"row {row:,} has no list of numbers where one is expected")
    if "..." in text:
        raise Damaged(
            f"the vector of row {row:,} is shortened by '...'",
            "write vectors as lists: frame[column].map(list)",
        )
    numbers = text[1:-1].replace(",", " ").split()
    if len(numbers) > MAX_COLUMNS:
        raise too_wide()
    try:
        return [float(number) for number in numbers]
    except ValueError as error:
        raise Damaged(f"row {row:,}: {error}") from None
