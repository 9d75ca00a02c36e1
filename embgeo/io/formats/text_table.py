"""Tables of vectors as pandas, spreadsheets and numpy write them: words, then numbers.

Cells lie between commas, semicolons or tabs; a table without words may separate its numbers by
blanks, as ``numpy.savetxt`` does. A first line of headings is read if the number columns have one
name with running numbers. Any other column is refused by its name: what it holds is not known. The
file is read twice and not held in memory.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import argument
from embgeo.core.matrix import FileStamp
from embgeo.files.guard import Damaged, short
from embgeo.files.maps import Bytes, stamp_of
from embgeo.io.formats import text_blocks
from embgeo.io.formats.format import Beside
from embgeo.io.formats.word_lists import CLASSES, WORDS_OF_FILE, WordList, are_classes
from embgeo.io.labels.side_tables import ID_HEADINGS
from embgeo.io.model.checkpoint import Checkpoint

NAME = "text table"
RECOGNIZED = "a column of words, or none, then numbers, between commas, semicolons, tabs or blanks"
READ = "numbers are read into memory or a temporary file"
EXTRA = ""

_SEPARATORS = (b",", b";", b"\t")
_NUMBER = re.compile(rb" *" + text_blocks.NUMBER + rb" *", re.IGNORECASE)
_DECIMAL = re.compile(rb" *[+-]?(\d*\.\d+([eE][+-]?\d+)?|\d+\.?[eE][+-]?\d+) *")
_WHOLE = re.compile(rb" *\d{1,15} *")
_RUNNING = re.compile(r"(.*?)(\d{1,7})")
#: The start of a cell with a vector of its own, which is refused by its heading, and of JSON.
_VECTOR = re.compile(rb"\s*[\[{(]\s*[-+.\d]")
_JSON = re.compile(rb'\s*(\{\s*["}]|\[\s*[\[{"\-\d])')
_FEWEST = 2
#: Lines that show the layout.
_LOOKED_AT = 10
_LAYOUT = f"save the vectors with numpy.save, and name the rows with {argument('tokens', 'FILE')}"


@dataclass(frozen=True, slots=True)
class _Layout:
    separator: bytes  # empty for any blanks
    has_headings: bool
    has_words: bool
    width: int  # cells of a line
    heading: str = ""  # of the first column


def sniff(head: bytes) -> bool:
    if b"\0" in head or _JSON.match(head):
        return False
    lines = head.removeprefix(text_blocks.BYTE_ORDER_MARK).split(b"\n")
    cut = lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines if line.strip()]
    if not lines:  # one line that is longer than the head: its last cell is cut off
        lines = [cut[: max(map(cut.rfind, (*_SEPARATORS, b" ")), default=0)]]
    return _find_rows(lines) is not None


def _find_rows(lines: Sequence[bytes]) -> tuple[bytes, list[list[bytes]]] | None:
    """Return the separator and the cells of lines that look like a table with numbers."""
    for separator in (*_SEPARATORS, b""):
        if separator not in lines[0]:
            continue
        try:
            rows = [text_blocks.split_cells(line, separator) for line in lines[:_LOOKED_AT]]
        except Damaged:
            continue
        if len(rows) > 1 and len(rows[0]) != len(rows[1]):
            continue
        if not separator:
            if b"\t" in lines[0] or not all(row and _DECIMAL.fullmatch(row[0]) for row in rows):
                continue  # the first number of a line must not look like a word
            return (separator, rows) if len(rows[0]) >= _FEWEST else None
        is_named = _are_running(_names(rows[0])[1:])
        cells = rows[min(1, len(rows) - 1)]
        if is_named or sum(map(is_number, cells)) >= _FEWEST or any(map(_VECTOR.match, cells)):
            return separator, rows
    return None


def is_number(cell: bytes) -> bool:
    """Tell whether a cell is a number, possibly between blanks."""
    return _NUMBER.fullmatch(cell) is not None


def _names(row: list[bytes]) -> list[str]:
    return [cell.decode("utf-8", "replace").strip() for cell in row]


def _are_running(names: Sequence[str]) -> bool:
    """Tell whether names are one prefix and 0, 1, 2, … or 1, 2, 3, …"""
    first = _RUNNING.fullmatch(names[0]) if len(names) >= _FEWEST else None
    if first is None or int(first[2]) > 1:
        return False
    is_name = not first[1] or re.search("[A-Za-z]", first[1]) is not None
    return is_name and all(_follows(one, other) for one, other in itertools.pairwise(names))


def _follows(one: str, other: str) -> bool:
    """Tell whether two names have one prefix, and the number of the second is one more."""
    a, b = _RUNNING.fullmatch(one), _RUNNING.fullmatch(other)
    return a is not None and b is not None and a[1] == b[1] and int(b[2]) == int(a[2]) + 1


def _read_layout(file: FileStamp) -> _Layout:
    """Read the layout from the first lines; refuses columns that are neither words nor numbers."""
    _, lines = next(text_blocks.line_blocks(file), (1, []))
    lines = [line.removesuffix(b"\r") for line in lines[:_LOOKED_AT] if line.strip()]
    found = _find_rows(lines) if lines else None
    if found is None:
        raise Damaged("its first lines are not a table of numbers", _LAYOUT)
    separator, rows = found
    names = _names(rows[0])
    if len(names) > text_blocks.MAX_COLUMNS + 1:
        raise text_blocks.too_wide()
    if _are_running(names):
        return _Layout(separator, True, False, len(names))
    if _are_running(names[1:]):
        return _Layout(separator, True, True, len(names), names[0])
    if len(rows) > 1 and not any(map(is_number, rows[0][1:])):
        other = _other_heading(names)
        # numpy writes the first and last numbers of a long vector, and dots between them.
        lost = ", and most of its numbers are left out (...)" if b" ... " in lines[1] else ""
        raise Damaged(f"column {other} is neither words nor a part of the vectors{lost}", _LAYOUT)
    rows = rows if separator else []
    words = any(not is_number(row[0]) for row in rows) or _are_ids(rows)
    for place in range(int(words), len(names)):
        if rows and not any(is_number(row[place]) for row in rows if place < len(row)):
            raise Damaged(f"column {place + 1:,} holds other things than numbers", _LAYOUT)
    if not any(rows and b'"' in line for line in lines):
        numbers = [row[int(words) :] for row in rows]
        text_blocks.refuse_whole_column(numbers, separator.decode(), int(words) + 1)
    return _Layout(separator, False, words, len(names))


def _other_heading(names: list[str]) -> str:
    """Return the first heading, after that of the words, outside of the first running ones."""
    start = next((k for k in range(len(names)) if _are_running(names[k : k + 2])), len(names))
    stop = start + 1
    while stop < len(names) and _follows(names[stop - 1], names[stop]):
        stop += 1
    other = next((k for k in range(1, len(names)) if not start <= k < stop), 0)
    return short(names[other]) or f"{other + 1:,}"


def _are_ids(rows: Sequence[Sequence[bytes]]) -> bool:
    """Tell whether the first column holds different whole numbers before measured ones."""
    first = [row[0] for row in rows]
    if len(set(first)) < len(first) or not all(_WHOLE.fullmatch(cell) for cell in first):
        return False
    return len(first) > 1 and any(_DECIMAL.fullmatch(cell) for row in rows for cell in row[1:])


def open_checkpoint(data: Bytes, _beside: Beside) -> Checkpoint:
    file = stamp_of(data)
    layout = _read_layout(file)
    words = WordList(len(data))
    n = 0
    for start, lines in text_blocks.line_blocks(file, headings=layout.has_headings):
        first = _first_cells(start, lines, layout)
        n += len(first)
        if layout.has_words:
            for word in first:
                words.add(word)
    if n == 0:
        raise Damaged("it holds no vectors")
    tokens, notes = words.finish()
    shape = (n, layout.width - layout.has_words)
    parse = partial(_parse, layout)
    tensor = text_blocks.tensor_of_lines(file, layout.has_headings, parse, shape)
    is_labeled = layout.has_words and not _number_rows(tokens)
    is_of_ids = layout.heading.lower() in ID_HEADINGS
    if is_labeled and is_of_ids and all(map(str.isdigit, tokens)):
        raise Damaged(
            f"column {layout.heading} holds numbers that are not those of the rows",
            text_blocks.cut_out(1, layout.separator.decode()),
        )
    if is_labeled and are_classes(layout.heading, tokens):
        is_labeled, notes = False, (f"column {short(layout.heading)} {CLASSES}",)
    if layout.has_headings:
        notes = ("the first line is taken for headings", *notes)
    return Checkpoint(NAME, (tensor,), tokens if is_labeled else None, WORDS_OF_FILE, notes=notes)


def _number_rows(words: Sequence[str]) -> bool:
    """Tell whether the first column numbers the rows from 0 or 1; refuses another order of them."""
    if not all(word.isascii() and word.isdigit() and len(word) < 16 for word in words):
        return False
    numbers = np.array([int(word) for word in words])
    is_permuted = numbers.min() in (0, 1) and len(np.unique(numbers)) == len(numbers)
    if not is_permuted or numbers.max() - numbers.min() >= len(numbers):
        return False
    if (np.diff(numbers) != 1).any():
        raise Damaged(
            "its first column numbers the rows, and they are in another order",
            "sort the lines with sort -n",
        )
    return True


def _drop_empty(lines: list[bytes]) -> list[bytes]:
    """Drop carriage returns and empty lines."""
    if not lines or (all(lines) and not lines[-1].endswith(b"\r")):
        return lines
    stripped = (line.removesuffix(b"\r") for line in lines)
    return [line for line in stripped if line]


def _first_cells(start: int, lines: list[bytes], layout: _Layout) -> list[bytes]:
    """Return the first cell of each line; checks the number of cells."""
    filled, expected = _drop_empty(lines), layout.width
    if not layout.separator:
        if all(len(line.split()) == expected for line in filled):
            return [b""] * len(filled)
    elif not _is_quoted(filled):
        if {line.count(layout.separator) for line in filled} <= {expected - 1}:
            return [line[: line.index(layout.separator)] for line in filled]
    else:
        rows = text_blocks.split_quoted_cells(filled, layout.separator)
        if len(rows) == len(filled) and {len(row) for row in rows} == {expected}:
            return [text_blocks.encode_cell(row[0]) for row in rows]
    raise _refuse_uneven_line(start, lines, layout)


def _is_quoted(lines: list[bytes]) -> bool:
    return b'"' in b"".join(lines)


def _refuse_uneven_line(start: int, lines: list[bytes], layout: _Layout) -> Damaged:
    """Return the error for the first line with a wrong number of cells."""
    expected = layout.width
    for number, line in enumerate(lines, start):
        line = line.removesuffix(b"\r")
        found = len(text_blocks.split_cells(line, layout.separator))
        if found != expected and line:
            return Damaged(f"line {number:,} has {found:,} cells where {expected:,} are expected")
    return Damaged("a quoted cell spans several lines")


def _parse(layout: _Layout, start: int, lines: list[bytes]) -> npt.NDArray[np.float32]:
    """Parse the numbers of a block of lines."""
    filled, columns = _drop_empty(lines), range(int(layout.has_words), layout.width)
    try:
        return text_blocks.numbers_in(filled, layout.separator, columns, quoted=_is_quoted(filled))
    except ValueError:
        cells = (
            (number, text_blocks.split_cells(bare, layout.separator)[columns.start :])
            for number, line in enumerate(lines, start)
            if (bare := line.removesuffix(b"\r"))
        )
        raise text_blocks.refuse_number(cells, is_number) from None
