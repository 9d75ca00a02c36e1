"""Tables with a vector in one cell: ``"[0.1, 0.2]"``, as pandas writes a column of lists.

The notation of numpy, with blanks in place of commas, is read as well. The file is read twice.
"""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path

from embgeo.io.bounded.guard import Damaged, short
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.convert.text_blocks import MAX_COLUMNS, LabeledVector, read_vectors, too_wide
from embgeo.io.labels.side_tables import TOKEN_HEADINGS

NAME = "table with a column of vectors"
RECOGNIZED = "a row of headings, then rows with a list of numbers in brackets in one cell"
READ = "numbers are read into memory or a temporary file"
EXTRA = ""

_SIGNS = ",;\t"
#: A bracket and two numbers.
_VECTOR = re.compile(r"\[\s*[-+]?\d*\.?\d+([eE][-+]?\d+)?[\s,]+[-+]?\d*\.?\d")
_LONGEST_CELL = 16 * 2**20


def sniff(head: bytes) -> bool:
    if b"\0" in head or b"[" not in head:
        return False
    first, _, rest = head.decode("utf-8", "replace").partition("\n")
    sign = _separator(first)
    if sign is None or "[" in first or "{" in first:
        return False
    return re.search(rf'(^|{sign})"?{_VECTOR.pattern}', rest, re.MULTILINE) is not None


def _separator(headings: str) -> str | None:
    sign = max(_SIGNS, key=headings.count)
    return sign if headings.count(sign) else None


def open_checkpoint(path: Path) -> Checkpoint:
    with contextlib.closing(_read_rows(path)) as rows:
        headings = [cell.strip().lower() for cell in next(rows, [])]
        first = next(rows, [])
    vectors = [place for place, cell in enumerate(first) if _VECTOR.match(cell.lstrip())]
    if len(vectors) != 1 or len(first) != len(headings):
        raise Damaged(
            f"{len(vectors)} cells of its second line are vectors where one is expected",
            "leave one column of vectors",
        )
    label = _label_column(headings, first, vectors[0])
    source = "" if label is None else f"column {short(headings[label])} of the file"
    read = partial(_read_labeled, path, vectors[0], label)
    return read_vectors(path, NAME, read, source, unit="row", first=2)


def _label_column(headings: list[str], first: list[str], vector: int) -> int | None:
    """A column with a heading of tokens, else the first that does not hold numbers."""
    others = [place for place in range(len(headings)) if place != vector]
    named = (place for place in others if headings[place] in TOKEN_HEADINGS)
    texts = (place for place in others if not first[place].replace(".", "").strip("-").isdigit())
    return next(named, next(texts, None))


def _read_labeled(path: Path, place: int, label: int | None) -> Iterator[LabeledVector]:
    rows = _read_rows(path)
    width = len(next(rows, []))
    for number, row in enumerate(rows, 2):
        if len(row) != width:
            raise Damaged(f"row {number:,} has {len(row):,} cells, the first has {width:,}")
        yield None if label is None else row[label], _parse(row[place], number)


def _read_rows(path: Path) -> Generator[list[str]]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        sign = _separator(file.readline(_LONGEST_CELL)) or ","
        file.seek(0)
        limit = csv.field_size_limit(_LONGEST_CELL)
        try:
            yield from filter(None, csv.reader(file, delimiter=sign))
        except csv.Error as error:
            raise Damaged(f"it is not a table ({error})") from error
        finally:
            csv.field_size_limit(limit)


def _parse(cell: str, row: int) -> list[float]:
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
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
