"""Tables with a vector in one cell: ``"[0.1, 0.2]"``, as pandas writes a column of lists.

numpy's own notation, blanks in place of commas, is read as well; the file is gone through twice.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.io.bounded.guard import Damaged, short
from embgeo.io.bounded.scratch import fill_rows
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.formats.text.blocks import MAX_COLUMNS, gather, too_wide
from embgeo.io.labels.side_tables import TOKEN_HEADINGS
from embgeo.io.labels.word_lists import WordList

NAME = "table with a column of vectors"
RECOGNIZED = "headings, and below them cells of which one is a list of numbers in brackets"
READ = "numbers in memory or a temporary file"
EXTRA = ""

_SIGNS = ",;\t"
#: The first line has no number in brackets; in the second one a cell begins with two numbers.
_VECTOR = re.compile(r"\[\s*[-+]?\d*\.?\d+([eE][-+]?\d+)?[\s,]+[-+]?\d*\.?\d")
_LONGEST_CELL = 16 * 2**20


def sniff(head: bytes) -> bool:
    """Whether a line of headings is followed by one with a list of numbers."""
    if b"\0" in head or b"[" not in head:
        return False
    first, _, rest = head.decode("utf-8", "replace").partition("\n")
    sign = _sign(first)
    if sign is None or "[" in first or "{" in first:
        return False
    return re.search(rf'(^|{sign})"?{_VECTOR.pattern}', rest, re.MULTILINE) is not None


def _sign(headings: str) -> str | None:
    """What separates the cells; None for a single word, or for a sentence."""
    sign = max(_SIGNS, key=headings.count)
    return sign if headings.count(sign) else None


def open_checkpoint(path: Path) -> Checkpoint:
    """Labels and shape of the vectors; their numbers are read when the tensor is opened."""
    rows = _read_rows(path)
    headings = [cell.strip().lower() for cell in next(rows, [])]
    first = next(rows, [])
    vectors = [place for place, cell in enumerate(first) if _VECTOR.match(cell.lstrip())]
    if len(vectors) != 1 or len(first) != len(headings):
        raise Damaged(
            f"{len(vectors)} cells of its second line are vectors where one is expected",
            "leave one column of vectors",
        )
    place, d = vectors[0], len(_parse(first[vectors[0]], 2))
    words, label, n = WordList(path), _label_column(headings, first, place), 0
    for number, row in enumerate(itertools.chain([first], rows), 2):
        if len(row) != len(headings):
            raise Damaged(f"row {number:,} has {len(row):,} cells, the first has {len(headings):,}")
        if len(_parse(row[place], number)) != d:
            raise Damaged(
                f"the vector of row {number:,} has other than {d:,} numbers",
                "every vector needs the same number of them",
            )
        if label is not None:
            words.add_text(row[label])
        n += 1
    tokens, notes = words.finish() if label is not None else (None, ())
    tensor = Tensor("vectors", (n, d), "float32", partial(_read_numbers, path, place, (n, d)))
    source = "" if label is None else f"column {short(headings[label])} of the file"
    return Checkpoint(path, NAME, (tensor,), (path,), tokens, source, notes=notes)


def _label_column(headings: list[str], first: list[str], vector: int) -> int | None:
    """A column of words by its heading, else the first that is not numbers."""
    others = [place for place in range(len(headings)) if place != vector]
    named = (place for place in others if headings[place] in TOKEN_HEADINGS)
    texts = (place for place in others if not first[place].replace(".", "").strip("-").isdigit())
    return next(named, next(texts, None))


def _read_rows(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        sign = _sign(file.readline(_LONGEST_CELL)) or ","
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


def _read_numbers(path: Path, place: int, shape: tuple[int, int]) -> npt.NDArray[np.float32]:
    rows = itertools.islice(_read_rows(path), 1, None)
    vectors = (_parse(row[place], number) for number, row in enumerate(rows, 2))
    return fill_rows(gather(vectors), shape)
