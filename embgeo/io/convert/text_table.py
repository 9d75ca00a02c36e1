"""Tables of vectors as spreadsheets and pandas write them: cells between commas, with headings.

The numbers of a vector are in neighboring columns; words, counts and row numbers in the columns
around them, which headings name. A table without labels may separate its numbers by blanks, as
``numpy.savetxt`` does. The file is read twice and not held in memory.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.io.bounded.guard import RIGHT_FILE, Damaged
from embgeo.io.bounded.maps import map_file
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.convert import text_blocks
from embgeo.io.labels.counts_file import whole_counts
from embgeo.io.labels.side_tables import COUNT_HEADINGS, ID_HEADINGS, TOKEN_HEADINGS
from embgeo.io.labels.word_lists import WORDS_OF_FILE, WordList

_SEPARATORS = (b",", b";", b"\t")
_NUMBER = re.compile(rb" *" + text_blocks.NUMBER + rb" *", re.IGNORECASE)
_DECIMAL = re.compile(rb" *[+-]?(\d*\.\d+([eE][+-]?\d+)?|\d+\.?[eE][+-]?\d+) *")
_WHOLE = re.compile(rb" *\d+ *")
_SIGNED = re.compile(rb"[+-]?\d+")

#: Largest number of columns on either side of the numbers, least number of numbers.
_MOST_BESIDE = 8
_FEWEST = 2
#: Cells that are examined in wide tables, beyond the first two lines.
_MOST_CELLS = 200_000
#: Headings of columns that number the rows, which may come in another order; pandas leaves its own
#: heading empty.
_ROW_HEADINGS = frozenset({"", "rank", "unnamed: 0"}) | ID_HEADINGS


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns of a table."""

    separator: bytes  # empty for any blanks
    has_headings: bool
    width: int  # cells of a line
    numbers: tuple[int, ...]  # columns of the vector
    words: int | None = None
    counts: int | None = None
    order: int | None = None  # column of the row numbers
    notes: tuple[str, ...] = ()

    @property
    def beside(self) -> tuple[int, ...]:
        """Columns of words, counts and row numbers."""
        return tuple(k for k in (self.words, self.counts, self.order) if k is not None)


def lines_of(head: bytes) -> list[bytes]:
    """Return the first lines of a file, or the first cells of a single line.

    Nothing that is cut off.
    """
    lines = head.split(b"\n")
    last = lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines if line.strip()]
    if lines or not last:
        return lines
    ends = [last.rfind(separator) for separator in (*_SEPARATORS, b" ")]
    return [last[: max(ends)]] if max(ends) > 0 else []


def layout_of(lines: Sequence[bytes]) -> TableLayout | None:
    """Get the layout of a table with these first lines; None if they are not a table of numbers."""
    if not lines:
        return None
    lines = [lines[0].removeprefix(text_blocks.BYTE_ORDER_MARK), *lines[1:]]
    widest = max(line.count(sign) for line in lines for sign in (*_SEPARATORS, b" "))
    lines = lines[: max(_FEWEST, _MOST_CELLS // (widest + 1))]
    try:
        found = (_with_separator(lines, sign) for sign in _SEPARATORS if sign in lines[0])
        return next(filter(None, found), None) or _bare(lines)
    except Damaged:
        return None


def is_number(cell: bytes) -> bool:
    """Tell whether a cell is a number, possibly between blanks."""
    return _NUMBER.fullmatch(cell) is not None


def _with_separator(lines: Sequence[bytes], separator: bytes) -> TableLayout | None:
    rows = _alike([text_blocks.split_cells(line, separator) for line in lines])
    if not rows:
        return None
    is_padded = len(rows[0]) > 1 and all(row[-1] == b"" for row in rows[1:] or rows)
    shown = [row[:-1] for row in rows] if is_padded else rows
    headings, data = _headings(shown), shown
    if headings is not None:
        data = shown[1:] or shown
    elif separator == b"\t":
        return _between_tabs(shown, len(rows[0]))
    is_text = [_is_text([row[k] for row in data]) for k in range(len(data[0]))]
    if headings is not None and data is shown:
        is_text = [k < len(is_text) - _count_numbered(headings) for k in range(len(is_text))]
    return _assign(separator, headings, data, is_text, len(rows[0]))


def _alike(rows: list[list[bytes]]) -> list[list[bytes]]:
    """Return the first rows of equal width; none if the second row has another width."""
    alike = list(itertools.takewhile(lambda row: len(row) == len(rows[0]), rows))
    return alike if len(alike) >= min(2, len(rows)) else []


def _is_text(cells: list[bytes]) -> bool:
    """Tell whether a column holds words.

    Some words are numbers, and some numbers may be damaged.
    """
    numbers = [is_number(cell) for cell in cells]
    return not numbers[0] or 2 * sum(numbers) < len(numbers)


def _headings(rows: list[list[bytes]]) -> list[str] | None:
    """Return the first row, if it is a row of headings."""
    names = [cell.decode("utf-8", "replace").strip().lower() for cell in rows[0]]
    if _count_numbered(names) >= max(_FEWEST, len(names) - _MOST_BESIDE):
        return names
    followed = len(rows) > 1 and sum(map(is_number, rows[1])) >= _FEWEST
    has_numbers = is_number(rows[0][-1]) or any(map(is_number, rows[0][_MOST_BESIDE:]))
    return names if followed and not has_numbers else None


def _count_numbered(names: list[str]) -> int:
    """Count how many headings at the end are numbered 0, 1, 2, … or 1, 2, 3, … after one prefix."""
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
    is_text: list[bool],
    width: int,
) -> TableLayout | None:
    """Assign the columns to the vector, words, counts and row numbers."""
    if headings is None:
        before = max((k + 1 for k, text in enumerate(is_text) if text), default=0)
        before = before or int(_are_row_numbers(data))
        numbers = list(range(before, len(is_text)))
    else:
        numbers = _numbers_of(headings, is_text)
    if len(numbers) < _FEWEST:
        return None
    of_vector = set(numbers)
    sides = [k for k in range(len(is_text)) if k not in of_vector]
    if not all(k < _MOST_BESIDE or k >= len(is_text) - _MOST_BESIDE for k in sides):
        return None
    words = next((k for k in sides if is_text[k]), None)
    counts = order = None
    notes = []
    if headings is None and words is not None:
        whole = (k for k in sides if all(_WHOLE.fullmatch(row[k]) for row in data))
        order = next(whole, None)
    if headings is not None:
        named = [k for k in sides if headings[k] in TOKEN_HEADINGS]
        # A column of numbers called "label" holds classes.
        numeric = (k for k in named if not headings[k].startswith("label"))
        texts = (k for k in named if is_text[k])
        words = next(texts, next(numeric, None) if words is None else words)
        counts = next((k for k in sides if headings[k] in COUNT_HEADINGS), None)
        order = next((k for k in sides if headings[k] in ID_HEADINGS and not is_text[k]), None)
        notes.append("the first line is taken for headings")
    unused = [k for k in sides if k not in (words, counts, order)]
    if unused:
        listed = ", ".join(str(k + 1) for k in unused)
        notes.append(f"columns beside the vectors that are not used: {listed}")
    return TableLayout(
        separator,
        headings is not None,
        width,
        tuple(numbers),
        words,
        counts,
        order,
        tuple(notes),
    )


def _numbers_of(headings: list[str], is_text: list[bool]) -> list[int]:
    """Return the columns of the vector: those that headings number, else all that hold numbers.

    Columns whose headings say that they hold words, counts or row numbers are no part of it.
    """
    special = _ROW_HEADINGS | TOKEN_HEADINGS | COUNT_HEADINGS
    # Next to other letters, "n" names a dimension.
    if sum(len(name) == 1 and name.isalpha() for name in headings) > 1:
        special -= {"n"}
    is_side = [text or name in special for name, text in zip(headings, is_text, strict=True)]
    end = len(headings)
    while end and is_side[end - 1]:
        end -= 1
    numbered = _count_numbered(headings[:end]) if end else 0
    start = end - numbered if numbered >= _FEWEST else 0
    texts = [k for k in range(start, end) if is_text[k]]
    return [k for k in range(max(texts, default=start - 1) + 1, end) if not is_side[k]]


def _are_row_numbers(data: list[list[bytes]]) -> bool:
    """Tell whether the first column counts 0, 1, 2, … or 1, 2, 3, … before measured numbers."""
    first = [row[0] for row in data]
    if not all(_WHOLE.fullmatch(cell) and len(cell) < 18 for cell in first):
        return False
    numbers = [int(cell) for cell in first]
    counted = numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(data)))
    return counted and any(_DECIMAL.fullmatch(cell) for row in data for cell in row[1:])


def _between_tabs(rows: list[list[bytes]], width: int) -> TableLayout | None:
    """Return numbers between tabs; whole numbers before measured ones are words of text vectors."""
    if len(rows[0]) < _FEWEST or not all(is_number(cell) for row in rows for cell in row):
        return None
    are_words = all(_SIGNED.fullmatch(row[0]) for row in rows) and not all(
        _SIGNED.fullmatch(cell) for row in rows for cell in row
    )
    return None if are_words else TableLayout(b"\t", False, width, tuple(range(len(rows[0]))))


def _bare(lines: Sequence[bytes]) -> TableLayout | None:
    """Return numbers between blanks; the first number of a line must not look like a word."""
    rows = _alike([line.split() for line in lines])
    if not rows or len(rows[0]) < _FEWEST or b"\t" in lines[0]:
        return None
    begin_with_decimals = all(_DECIMAL.fullmatch(row[0]) for row in rows)
    if not begin_with_decimals or not all(is_number(cell) for row in rows for cell in row):
        return None
    return TableLayout(b"", False, len(rows[0]), tuple(range(len(rows[0]))))


NAME = "text table"
RECOGNIZED = (
    "numbers between commas, semicolons, tabs or blanks; words, row numbers and counts in columns "
    "beside them"
)
READ = "numbers are read into memory or a temporary file"
EXTRA = ""


def sniff(head: bytes) -> bool:
    return b"\0" not in head and layout_of(lines_of(head)) is not None


def open_checkpoint(path: Path) -> Checkpoint:
    map_file(path)  # refuses what is not a regular file
    # `sniff` may have seen a part of a line only.
    _, lines = next(text_blocks.line_blocks(path), (1, []))
    layout = layout_of([line.removesuffix(b"\r") for line in lines[:10] if line.strip()])
    if layout is None:
        raise Damaged("its first lines are not a table of numbers", RIGHT_FILE)
    return read_table(path, layout)


def read_table(path: Path, layout: TableLayout) -> Checkpoint:
    """Read the words, counts and numbers of a table of known layout."""
    if len(layout.numbers) > text_blocks.MAX_COLUMNS:
        raise text_blocks.too_wide()
    words = WordList(path)
    counts: list[int] | None = None if layout.counts is None else []
    numbers: list[int] | None = None if layout.order is None else []
    n = 0
    for start, lines in text_blocks.line_blocks(path, headings=layout.has_headings):
        sides = _sides(start, lines, layout)
        n += len(sides)
        if layout.words is not None:
            for row in sides:
                words.add(row[layout.words])
        if counts is not None and layout.counts is not None:
            counts = _add_counts(counts, [row[layout.counts] for row in sides])
        if numbers is not None and layout.order is not None:
            numbers = _add_counts(numbers, [row[layout.order] for row in sides])
    if n == 0:
        raise Damaged("it holds no vectors", "write it again")
    tokens, notes = words.finish()
    parse = partial(_parse, layout)
    tensor = text_blocks.tensor_of_lines(path, layout.has_headings, parse, (n, len(layout.numbers)))
    checkpoint = Checkpoint(
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
    return text_blocks.sort_rows_by_number(checkpoint, numbers, are_ids=layout.has_headings)


def _drop_empty(lines: list[bytes]) -> list[bytes]:
    """Drop carriage returns and empty lines."""
    if not lines or (all(lines) and not lines[-1].endswith(b"\r")):
        return lines
    stripped = (line.removesuffix(b"\r") for line in lines)
    return [line for line in stripped if line]


def _sides(start: int, lines: list[bytes], layout: TableLayout) -> list[list[bytes]]:
    """Get the first cells of each line, up to the last that is used; checks the number of cells."""
    filled, expected, beside = _drop_empty(lines), layout.width, layout.beside
    if not layout.separator:
        if all(len(line.split()) == expected for line in filled):
            return [[]] * len(filled)
    elif not _is_quoted(filled):
        if {line.count(layout.separator) for line in filled} <= {expected - 1}:
            most = max(beside, default=-1) + 1
            return [line.split(layout.separator, most)[:most] for line in filled]
    else:
        rows = text_blocks.split_quoted_cells(filled, layout.separator)
        if len(rows) == len(filled) and {len(row) for row in rows} == {expected}:
            most = max(beside, default=-1) + 1
            return [[text_blocks.encode_cell(cell) for cell in row[:most]] for row in rows]
    raise _refuse_uneven_line(start, lines, layout)


def _is_quoted(lines: list[bytes]) -> bool:
    return b'"' in b"".join(lines)


def _refuse_uneven_line(start: int, lines: list[bytes], layout: TableLayout) -> Damaged:
    """Return the error for the first line with a wrong number of cells."""
    expected = layout.width
    for number, line in enumerate(lines, start):
        line = line.removesuffix(b"\r")
        found = len(text_blocks.split_cells(line, layout.separator))
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
    """Parse the numbers of a block of lines."""
    filled = _drop_empty(lines)
    try:
        return text_blocks.numbers_in(
            filled, layout.separator, layout.numbers, quoted=_is_quoted(filled)
        )
    except ValueError:
        bare = (line.removesuffix(b"\r") for line in lines)
        rows = (
            (number, _numbers_in_cells(line, layout))
            for number, line in enumerate(bare, start)
            if line
        )
        way_out = "every cell after the words has to be one"
        raise text_blocks.refuse_number(rows, is_number, way_out) from None


def _numbers_in_cells(line: bytes, layout: TableLayout) -> list[bytes]:
    cells = text_blocks.split_cells(line, layout.separator)
    return [cells[place] for place in layout.numbers]
