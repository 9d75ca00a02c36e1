"""Vectors as text: word2vec and fastText (``.vec``) with a header line, GloVe without.

Every line is a token, a space and d numbers. The file is read twice, for the tokens and the line
structure and, when the tensor is opened, for the numbers; it is not held in memory.
"""

import os
import re
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from embgeo.core.matrix import FileStamp
from embgeo.files.guard import Damaged
from embgeo.files.maps import Bytes, stamp_of
from embgeo.io.formats import text_blocks
from embgeo.io.formats.format import Beside
from embgeo.io.formats.word_lists import WORDS_OF_FILE, WordList
from embgeo.io.labels.side_tables import is_float
from embgeo.io.model.checkpoint import Checkpoint

NAME = "text vectors"
RECOGNIZED = "lines of a word and numbers, with or without a first line of two numbers"
READ = "numbers are read into memory or a temporary file"
EXTRA = ""

_LINES_LOOKED_AT = 10

#: Numbers of vectors and columns.
_HEADER = re.compile(rb"\s*(\d{1,15})[ \t]+(\d{1,9})[ \t]*\r?\n")
_DECIMAL = re.compile(rb"[+-]?\d*\.\d+([eE][+-]?\d+)?|[+-]?\d+(\.\d*)?[eE][+-]?\d+")


@dataclass(frozen=True, slots=True)
class _LineForm:
    columns: int
    promised: int | None  # vectors by the header; None without a header

    @property
    def has_header(self) -> bool:
        return self.promised is not None


def sniff(head: bytes) -> bool:
    if b"\0" in head:
        return False
    head = head.removeprefix(text_blocks.BYTE_ORDER_MARK)
    header = _HEADER.match(head)
    if header:
        rest = head[header.end() :]
        return not rest.strip() or _is_line_of_vectors(rest, columns=int(header[2]))
    return _is_line_of_vectors(head, columns=None)


def _is_line_of_vectors(text: bytes, columns: int | None) -> bool:
    line, end, _ = text.partition(b"\n")
    fields = line.split()
    if not end and len(fields) > 2:
        fields.pop()  # probably cut off
    numbers = _trailing_numbers(fields)
    if columns is not None:
        return numbers >= 1 and len(fields) <= columns + 20
    if len(fields) == 2:
        # "word 123" is a line of counts; a single column has to look like a measurement.
        return bool(_DECIMAL.fullmatch(fields[1]))
    return numbers >= 2


def _trailing_numbers(fields: list[bytes]) -> int:
    """Count how many fields at the end are numbers; the first field is a token."""
    count = 0
    for field in reversed(fields[1:]):
        if not text_blocks.is_plain_number(field):
            break
        count += 1
    return count


def open_checkpoint(data: Bytes, _beside: Beside) -> Checkpoint:
    file = stamp_of(data)
    layout = _layout(file)
    tokens, notes = _words(file, layout).finish()
    n, d = len(tokens), layout.columns
    if layout.promised is not None and n != layout.promised:
        notes += (f"the header promises {layout.promised:,} vectors, the file holds {n:,}",)
    tensor = text_blocks.tensor_of_lines(file, layout.has_header, partial(_parse, d), (n, d))
    name = "word2vec text" if layout.has_header else "GloVe text"
    return Checkpoint(name, (tensor,), tokens, WORDS_OF_FILE, notes=notes)


def _layout(file: FileStamp) -> _LineForm:
    with file.open() as opened:
        first = opened.readline(text_blocks.MAX_LINE_BYTES)
        following = [opened.readline(text_blocks.MAX_LINE_BYTES) for _ in range(_LINES_LOOKED_AT)]
    first = first.removeprefix(text_blocks.BYTE_ORDER_MARK)
    header = _HEADER.fullmatch(first)
    if header:
        promised, columns = int(header[1]), int(header[2])
        if columns > text_blocks.MAX_COLUMNS:
            raise text_blocks.too_wide()
        if columns == 0:
            raise Damaged("its header says vectors of 0 numbers")
        rows = [fields for line in following if (fields := line.split())]
        if all(len(row) == columns + 2 for row in rows):
            text_blocks.refuse_whole_column([row[1:] for row in rows], " ", 2)
        return _LineForm(columns, promised)
    lines = [line for line in (first, *following) if line.strip()]
    if not all(line.count(b" ") + line.count(b"\t") <= text_blocks.MAX_COLUMNS for line in lines):
        raise text_blocks.too_wide()
    counts = [_trailing_numbers(line.split()) for line in lines]
    columns = max(dict.fromkeys(counts), key=counts.count)  # the first of equally frequent ones
    if columns == 0:
        raise Damaged("its lines do not end in numbers")
    rows = [line.split() for line in lines]
    if all(len(row) == columns + 1 for row in rows):
        text_blocks.refuse_whole_column([row[1:] for row in rows], " ", 2)
    return _LineForm(columns, None)


def _rows(start: int, lines: list[bytes], columns: int) -> list[tuple[int, bytes, bytes]]:
    """(line number, token, numbers between single spaces) of each line that is not empty."""
    return [
        (number, *_split(line, number, columns))
        for number, line in enumerate(lines, start)
        if line.strip(b" \t\r")
    ]


def _split(line: bytes, number: int, columns: int) -> tuple[bytes, bytes]:
    line = line.rstrip(b" \t\r").replace(b"\t", b" ")
    spaces = line.count(b" ")
    if spaces > 2 * text_blocks.MAX_COLUMNS:
        raise text_blocks.too_wide()
    if spaces == columns:
        token, _, numbers = line.partition(b" ")
        return token, numbers
    # More spaces than numbers: doubled spaces, or spaces inside the token (as in GloVe 840B).
    fields = line.rsplit(b" ", columns)
    if len(fields) <= columns or b"" in fields[1:]:
        fields = line.split()
        fields = [b" ".join(fields[:-columns]), *fields[-columns:]]
    found = len(line.split()) - 1
    if found < columns:
        raise Damaged(f"line {number:,} has {found:,} numbers where {columns:,} are expected")
    if _DECIMAL.fullmatch(fields[0].rpartition(b" ")[2]):
        raise Damaged(f"line {number:,} has more than the expected {columns:,} numbers")
    return fields[0], b" ".join(fields[1:])


def _words(file: FileStamp, layout: _LineForm) -> WordList:
    """Return the words of all lines; checks the structure of each line and their number."""
    words = WordList(file.size)
    promised = layout.promised or 0
    try:
        for start, lines in text_blocks.line_blocks(file, headings=layout.has_header):
            if text_blocks.are_plain(lines, layout.columns):
                found = (line[: line.index(b" ")] for line in lines)
            else:
                found = (word for _, word, _ in _rows(start, lines, layout.columns))
            for word in found:
                words.add(word)
    except Damaged as error:
        if len(words) >= promised:
            raise
        promise = f"and its header promises {promised:,} vectors"
        raise Damaged(f"{error.cause}, {promise}") from error
    if len(words) < promised and not _ends_with_a_line(file):
        promise = f"its header promises {promised:,}"
        raise Damaged(f"the file holds {len(words):,} vectors, {promise}")
    if len(words) == 0:
        raise Damaged("it holds no vectors")
    return words


def _ends_with_a_line(file: FileStamp) -> bool:
    """Tell whether the file ends with a newline: after `head -n`, not after a broken download."""
    with file.open() as opened:
        opened.seek(-1, os.SEEK_END)
        return opened.read() == b"\n"


def _parse(columns: int, start: int, lines: list[bytes]) -> npt.NDArray[np.float32]:
    """Parse the numbers of a block of lines."""
    if text_blocks.are_plain(lines, columns):
        try:
            return text_blocks.numbers_in(lines, b" ", range(1, columns + 1))
        except ValueError:
            pass  # read again below to name the line
    rows = _rows(start, lines, columns)
    try:
        return text_blocks.numbers_in([numbers for _, _, numbers in rows], b" ", range(columns))
    except ValueError:
        cells = ((line, numbers.split(b" ")) for line, _, numbers in rows)
        raise text_blocks.refuse_number(cells, is_float) from None
