"""Tables of vectors as spreadsheets and pandas write them: cells between commas, with headings.

Labels are in the first columns, the numbers of the vector in all others. A table without labels may
separate its numbers by blanks, as ``numpy.savetxt`` does. The file is read twice and not held in
memory.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.io.bounded.guard import RIGHT_FILE, Damaged
from embgeo.io.bounded.maps import map_file
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.convert.text_blocks import (
    BYTE_ORDER_MARK,
    MAX_COLUMNS,
    NUMBER,
    bad_number,
    line_blocks,
    numbers_in,
    tensor_of_lines,
    too_wide,
)
from embgeo.io.labels.counts_file import whole_counts
from embgeo.io.labels.side_tables import COUNT_HEADINGS, TOKEN_HEADINGS
from embgeo.io.labels.word_lists import WORDS_OF_FILE, WordList

_SEPARATORS = (b",", b";", b"\t")
_NUMBER = re.compile(rb" *" + NUMBER + rb" *", re.IGNORECASE)
_DECIMAL = re.compile(rb" *[+-]?(\d*\.\d+([eE][+-]?\d+)?|\d+\.?[eE][+-]?\d+) *")
_WHOLE = re.compile(rb" *\d+ *")
_SIGNED = re.compile(rb"[+-]?\d+")

#: Largest number of columns before the numbers, least number of numbers.
_MOST_BEFORE = 8
_FEWEST = 2
#: Cells that are examined in wide tables, beyond the first two lines.
_MOST_CELLS = 200_000
#: Headings of columns that number the rows; pandas leaves theirs empty.
_ROW_HEADINGS = frozenset({"", "index", "id", "idx", "row", "rank", "unnamed: 0"})


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns of a table."""

    separator: bytes  # empty for any blanks
    has_headings: bool
    before: int  # columns before the numbers
    columns: int  # numbers in a vector
    words: int | None = None  # column of the words, before the numbers
    counts: int | None = None
    notes: tuple[str, ...] = ()


def lines_of(head: bytes) -> list[bytes]:
    """The first lines of a file, or the first cells of a single line; nothing that is cut off."""
    lines = head.split(b"\n")
    last = lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines if line.strip()]
    if lines or not last:
        return lines
    ends = [last.rfind(separator) for separator in (*_SEPARATORS, b" ")]
    return [last[: max(ends)]] if max(ends) > 0 else []


def layout_of(lines: Sequence[bytes]) -> TableLayout | None:
    """The layout of a table with these first lines; None if they are not a table of numbers."""
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
    """The cells of a line without quotes; an empty separator is any blanks."""
    if not separator:
        return line.split()
    if b'"' not in line:
        return line.split(separator)
    return [_encode(cell) for row in split_quoted_cells([line], separator) for cell in row]


def split_quoted_cells(lines: Iterable[bytes], separator: bytes) -> list[list[str]]:
    """The cells of several lines; a quoted cell may span lines."""
    texts = b"\n".join(lines).decode("utf-8", "surrogateescape").split("\n")
    try:
        return list(csv.reader(texts, delimiter=separator.decode()))
    except csv.Error as error:
        raise Damaged(f"a line is not a row of a table ({error})") from error


def _encode(cell: str) -> bytes:
    return cell.encode("utf-8", "surrogateescape")


def is_number(cell: bytes) -> bool:
    """Whether a cell is a number, possibly between blanks."""
    return _NUMBER.fullmatch(cell) is not None


def _with_separator(lines: Sequence[bytes], separator: bytes) -> TableLayout | None:
    rows = _alike([split_cells(line, separator) for line in lines])
    if not rows:
        return None
    headings, data = _headings(rows), rows
    if headings is not None:
        data = rows[1:] or rows
    elif separator == b"\t":
        return _between_tabs(rows)
    is_text = [_is_text([row[k] for row in data]) for k in range(len(data[0]))]
    if headings is not None and data is rows:
        is_text = [k < len(is_text) - _count_numbered(headings) for k in range(len(is_text))]
    before = max((k + 1 for k, text in enumerate(is_text) if text), default=0)
    return _assign(separator, headings, data, before, is_text)


def _alike(rows: list[list[bytes]]) -> list[list[bytes]]:
    """The first rows of equal width; none if the second row has another width."""
    alike = list(itertools.takewhile(lambda row: len(row) == len(rows[0]), rows))
    return alike if len(alike) >= min(2, len(rows)) else []


def _is_text(cells: list[bytes]) -> bool:
    """Whether a column holds words; some words are numbers, and some numbers may be damaged."""
    numbers = [is_number(cell) for cell in cells]
    return not numbers[0] or 2 * sum(numbers) < len(numbers)


def _headings(rows: list[list[bytes]]) -> list[str] | None:
    """The first row, if it is a row of headings."""
    names = [cell.decode("utf-8", "replace").strip().lower() for cell in rows[0]]
    if _count_numbered(names) >= max(_FEWEST, len(names) - _MOST_BEFORE):
        return names
    followed = len(rows) > 1 and sum(map(is_number, rows[1])) >= _FEWEST
    has_numbers = is_number(rows[0][-1]) or any(map(is_number, rows[0][_MOST_BEFORE:]))
    return names if followed and not has_numbers else None


def _count_numbered(names: list[str]) -> int:
    """How many headings at the end are numbered 0, 1, 2, … or 1, 2, 3, … after one prefix."""
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
    """Assign the columns before the vectors to words, counts and row numbers."""
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


def _between_tabs(rows: list[list[bytes]]) -> TableLayout | None:
    """Numbers between tabs; whole numbers before measured ones are words of text vectors."""
    if len(rows[0]) < _FEWEST or not all(is_number(cell) for row in rows for cell in row):
        return None
    are_words = all(_SIGNED.fullmatch(row[0]) for row in rows) and not all(
        _SIGNED.fullmatch(cell) for row in rows for cell in row
    )
    return None if are_words else TableLayout(b"\t", False, 0, len(rows[0]))


def _bare(lines: Sequence[bytes]) -> TableLayout | None:
    """Numbers between blanks; the first number of a line must not look like a word."""
    rows = _alike([line.split() for line in lines])
    if not rows or len(rows[0]) < _FEWEST or b"\t" in lines[0]:
        return None
    begin_with_decimals = all(_DECIMAL.fullmatch(row[0]) for row in rows)
    if not begin_with_decimals or not all(is_number(cell) for row in rows for cell in row):
        return None
    return TableLayout(b"", False, 0, len(rows[0]))


NAME = "text table"
RECOGNIZED = (
    "numbers between commas, semicolons, tabs or blanks; words, row numbers and counts in the "
    "first columns"
)
READ = "numbers are read into memory or a temporary file"
EXTRA = ""


def sniff(head: bytes) -> bool:
    return b"\0" not in head and layout_of(lines_of(head)) is not None


def open_checkpoint(path: Path) -> Checkpoint:
    map_file(path)  # refuses what is not a regular file
    # `sniff` may have seen a part of a line only.
    _, lines = next(line_blocks(path), (1, []))
    layout = layout_of([line.removesuffix(b"\r") for line in lines[:10] if line.strip()])
    if layout is None:
        raise Damaged("its first lines are not a table of numbers", RIGHT_FILE)
    return read_table(path, layout)


def read_table(path: Path, layout: TableLayout) -> Checkpoint:
    """The words, counts and numbers of a table of known layout."""
    if layout.columns > MAX_COLUMNS:
        raise too_wide()
    words = WordList(path)
    counts: list[int] | None = None if layout.counts is None else []
    n = 0
    for start, lines in line_blocks(path, headings=layout.has_headings):
        sides = _sides(start, lines, layout)
        n += len(sides)
        if layout.words is not None:
            for row in sides:
                words.add(row[layout.words])
        if counts is not None and layout.counts is not None:
            counts = _add_counts(counts, [row[layout.counts] for row in sides])
    if n == 0:
        raise Damaged("it holds no vectors", "write it again")
    tokens, notes = words.finish()
    parse = partial(_parse, layout)
    tensor = tensor_of_lines(path, layout.has_headings, parse, (n, layout.columns))
    return Checkpoint(
        path,
        NAME,
        (tensor,),
        (path,),
        None if layout.words is None else tokens,
        WORDS_OF_FILE,
        notes=(*layout.notes, *notes),
        counts=None if counts is None else np.array(counts, dtype=np.float64),
        counts_source="counts in the file",
    )


def _drop_empty(lines: list[bytes]) -> list[bytes]:
    """Drop carriage returns and empty lines."""
    if not lines or (all(lines) and not lines[-1].endswith(b"\r")):
        return lines
    stripped = (line.removesuffix(b"\r") for line in lines)
    return [line for line in stripped if line]


def _sides(start: int, lines: list[bytes], layout: TableLayout) -> list[list[bytes]]:
    """The cells before the numbers of each line; checks the number of cells."""
    filled, before, expected = _drop_empty(lines), layout.before, layout.before + layout.columns
    if not layout.separator:
        if all(len(line.split()) == expected for line in filled):
            return [[]] * len(filled)
    elif not _is_quoted(filled):
        if {line.count(layout.separator) for line in filled} <= {expected - 1}:
            return [line.split(layout.separator, before)[:before] for line in filled]
    else:
        rows = split_quoted_cells(filled, layout.separator)
        if len(rows) == len(filled) and {len(row) for row in rows} == {expected}:
            return [[_encode(cell) for cell in row[:before]] for row in rows]
    raise _odd_line(start, lines, layout)


def _is_quoted(lines: list[bytes]) -> bool:
    return b'"' in b"".join(lines)


def _odd_line(start: int, lines: list[bytes], layout: TableLayout) -> Damaged:
    """The error for the first line with a wrong number of cells."""
    expected = layout.before + layout.columns
    for number, line in enumerate(lines, start):
        line = line.removesuffix(b"\r")
        found = len(split_cells(line, layout.separator))
        if found != expected and line:
            return Damaged(
                f"line {number:,} has {found:,} cells where {expected:,} are expected",
                "every line needs the same number of them; it may be cut off there",
            )
    return Damaged("a quoted cell spans several lines", "write it on one")


def _add_counts(counts: list[int], cells: list[bytes]) -> list[int] | None:
    """Append counts; None if the column holds anything else, such as shares."""
    found = whole_counts(cell.decode("utf-8", "replace").removesuffix(".0") for cell in cells)
    if found is None:
        return None
    counts += found
    return counts


def _parse(layout: TableLayout, start: int, lines: list[bytes]) -> npt.NDArray[np.float32]:
    """The numbers of a block of lines."""
    filled = _drop_empty(lines)
    place = (layout.separator, layout.before, layout.columns)
    try:
        return numbers_in(filled, *place, quoted=_is_quoted(filled))
    except ValueError:
        bare = (line.removesuffix(b"\r") for line in lines)
        rows = (
            (number, split_cells(line, layout.separator)[layout.before :])
            for number, line in enumerate(bare, start)
            if line
        )
        way_out = "every cell after the words has to be one"
        raise bad_number(rows, is_number, way_out) from None
