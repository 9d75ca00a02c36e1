"""Which columns of a table hold words, counts, row numbers, and the numbers of the vectors."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from embgeo.io.bounded.guard import Damaged
from embgeo.io.formats.text.blocks import BYTE_ORDER_MARK, NUMBER
from embgeo.io.labels.side_tables import COUNT_HEADINGS, TOKEN_HEADINGS

_SEPARATORS = (b",", b";", b"\t")
_NUMBER = re.compile(rb" *" + NUMBER + rb" *", re.IGNORECASE)
_DECIMAL = re.compile(rb" *[+-]?(\d*\.\d+([eE][+-]?\d+)?|\d+\.?[eE][+-]?\d+) *")
_WHOLE = re.compile(rb" *\d+ *")

#: Columns before the numbers, and numbers in a vector.
_MOST_BEFORE = 8
_FEWEST = 2
#: Looked at in wide tables, of which two lines are enough.
_MOST_CELLS = 200_000
#: Headings of columns that number the rows; pandas leaves theirs empty.
_ROW_HEADINGS = frozenset({"", "index", "id", "idx", "row", "rank", "unnamed: 0"})


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns of a table.

    Attributes
    ----------
    separator : bytes
        Empty for blanks.
    has_headings : bool
        Whether the first line is none of the vectors.
    before : int
        Columns before the numbers.
    columns : int
        Numbers in a vector.
    words, counts : int or None
        Which of the columns before the numbers hold them.
    notes : tuple of str
    """

    separator: bytes
    has_headings: bool
    before: int
    columns: int
    words: int | None = None
    counts: int | None = None
    notes: tuple[str, ...] = ()


def lines_of(head: bytes) -> list[bytes]:
    """The first lines of a file, without one that is cut off; of a single cut line its cells."""
    lines = head.split(b"\n")
    last = lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines if line.strip()]
    if lines or not last:
        return lines
    ends = [last.rfind(separator) for separator in (*_SEPARATORS, b" ")]
    return [last[: max(ends)]] if max(ends) > 0 else []


def layout_of(lines: Sequence[bytes]) -> TableLayout | None:
    """What the first lines are; None if they are not a table of numbers.

    A single line is taken for a table if it can be nothing else.
    """
    if not lines:
        return None
    lines = [lines[0].removeprefix(BYTE_ORDER_MARK), *lines[1:]]
    widest = max(line.count(sign) for line in lines for sign in (*_SEPARATORS, b" "))
    lines = lines[: max(_FEWEST, _MOST_CELLS // (widest + 1))]
    try:
        found = (_with_separator(lines, sign) for sign in _SEPARATORS if sign in lines[0])
        return next(filter(None, found), None) or _bare(lines)
    except Damaged:
        return None


def split_cells(line: bytes, separator: bytes) -> list[bytes]:
    """The cells of a line, quoted ones without their quotes; an empty separator is any blanks."""
    if not separator:
        return line.split()
    if b'"' not in line:
        return line.split(separator)
    rows = split_quoted_cells([line], separator)
    return [cell.encode("utf-8", "surrogateescape") for row in rows for cell in row]


def split_quoted_cells(lines: Iterable[bytes], separator: bytes) -> list[list[str]]:
    """The cells of several lines; one that ends inside of quotes goes on with the next."""
    texts = b"\n".join(lines).decode("utf-8", "surrogateescape").split("\n")
    try:
        return list(csv.reader(texts, delimiter=separator.decode()))
    except csv.Error as error:
        raise Damaged(f"a line is no row of a table ({error})") from error


def is_number(cell: bytes) -> bool:
    """Whether a cell is a number, with blanks around it or not."""
    return _NUMBER.fullmatch(cell) is not None


def _with_separator(lines: Sequence[bytes], separator: bytes) -> TableLayout | None:
    rows = _alike([split_cells(line, separator) for line in lines])
    if not rows:
        return None
    headings, data = _headings(rows), rows
    if headings is not None:
        data = rows[1:] or rows
    elif separator == b"\t":
        return None  # without headings these are text vectors, or the projector's
    is_text = [_is_text([row[k] for row in data]) for k in range(len(data[0]))]
    if headings is not None and data is rows:
        is_text = [k < len(is_text) - _count_numbered(headings) for k in range(len(is_text))]
    before = max((k + 1 for k, text in enumerate(is_text) if text), default=0)
    return _assign(separator, headings, data, before, is_text)


def _alike(rows: list[list[bytes]]) -> list[list[bytes]]:
    """The first rows, as far as they have the same number of cells; none if the second has not."""
    alike = list(itertools.takewhile(lambda row: len(row) == len(rows[0]), rows))
    return alike if len(alike) >= min(2, len(rows)) else []


def _is_text(cells: list[bytes]) -> bool:
    """Whether a column holds words: a word may be a number, and a number may be damaged."""
    numbers = [is_number(cell) for cell in cells]
    return not numbers[0] or 2 * sum(numbers) < len(numbers)


def _headings(rows: list[list[bytes]]) -> list[str] | None:
    """The first row as headings, if it is none of the vectors."""
    names = [cell.decode("utf-8", "replace").strip().lower() for cell in rows[0]]
    numbers = [bool(_NUMBER.fullmatch(cell)) for cell in rows[0]]
    if _count_numbered(names) >= max(_FEWEST, len(names) - _MOST_BEFORE):
        return names
    followed = len(rows) > 1 and sum(map(bool, map(_NUMBER.fullmatch, rows[1]))) >= _FEWEST
    return names if followed and not numbers[-1] and not any(numbers[_MOST_BEFORE:]) else None


def _count_numbered(names: list[str]) -> int:
    """How many headings at the end are numbered 0, 1, 2, … or 1, 2, 3, … behind one prefix."""
    found = re.fullmatch(r"(.*?)(\d{1,7})", names[-1])
    if found is None or not (found[1] == "" or re.search("[a-z]", found[1])):
        return 0
    prefix, last = found[1], int(found[2])
    count = 0
    for name in reversed(names):
        if name != f"{prefix}{last - count}" or last < count:
            break
        count += 1
    return count if last - count + 1 in (0, 1) else 0


def _assign(
    separator: bytes,
    headings: list[str] | None,
    data: list[list[bytes]],
    before: int,
    is_text: list[bool],
) -> TableLayout | None:
    """Columns of words, counts and row numbers before the vectors."""
    width = len(data[0])
    if headings is not None:
        special = _ROW_HEADINGS | TOKEN_HEADINGS | COUNT_HEADINGS
        while before < width and headings[before] in special:
            before += 1
    elif before == 0 and _are_row_numbers(data):
        before = 1
    if before > _MOST_BEFORE or width - before < _FEWEST:
        return None
    places = range(before)
    words = next((k for k in places if is_text[k]), None)
    counts = None
    notes = []
    if headings is not None:
        words = next((k for k in places if headings[k] in TOKEN_HEADINGS), words)
        counts = next((k for k in places if headings[k] in COUNT_HEADINGS), None)
        notes.append("the first line is taken for headings")
    unused = [k for k in places if k not in (words, counts)]
    if unused:
        listed = ", ".join(str(k + 1) for k in unused)
        notes.append(f"columns before the vectors that are not used: {listed}")
    return TableLayout(
        separator, headings is not None, before, width - before, words, counts, tuple(notes)
    )


def _are_row_numbers(data: list[list[bytes]]) -> bool:
    """Whether the first column counts 0, 1, 2, … or 1, 2, 3, … before measured numbers."""
    first = [row[0] for row in data]
    if not all(_WHOLE.fullmatch(cell) and len(cell) < 18 for cell in first):
        return False
    numbers = [int(cell) for cell in first]
    counted = numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(data)))
    return counted and any(_DECIMAL.fullmatch(cell) for row in data for cell in row[1:])


def _bare(lines: Sequence[bytes]) -> TableLayout | None:
    """Numbers between blanks: no line begins with a word, nor with a number that may be one."""
    rows = _alike([line.split() for line in lines])
    if not rows or len(rows[0]) < _FEWEST or b"\t" in lines[0]:
        return None
    if not all(_DECIMAL.fullmatch(row[0]) for row in rows):
        return None
    if not all(_NUMBER.fullmatch(cell) for row in rows for cell in row):
        return None
    return TableLayout(b"", False, 0, len(rows[0]))
