"""Tables of vectors as spreadsheets and pandas write them: cells between commas, with headings.

Labels stand in the first columns, the numbers of the vector in all that follow. A table without
labels may also separate its numbers by blanks, as ``numpy.savetxt`` does. Like other text the file
is gone through twice, and never held whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.io.bounded.guard import RIGHT_FILE, Damaged
from embgeo.io.bounded.maps import map_file
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.formats.text.blocks import (
    MAX_COLUMNS,
    bad_number,
    fill_rows,
    line_blocks,
    numbers_in,
    too_wide,
)
from embgeo.io.formats.text.table_layout import (
    TableLayout,
    is_number,
    layout_of,
    lines_of,
    split_cells,
    split_quoted_cells,
)
from embgeo.io.labels.counts_file import whole_count
from embgeo.io.labels.word_lists import WordList

NAME = "text table"
RECOGNIZED = (
    "lines of numbers between commas, semicolons or blanks, or between tabs below headings; words, "
    "row numbers and counts in the columns before them"
)
READ = "numbers in memory or a temporary file"
EXTRA = ""


def sniff(head: bytes) -> bool:
    """Whether the first lines have the same cells, at least two of them numbers at the end."""
    return b"\0" not in head and layout_of(lines_of(head)) is not None


def open_checkpoint(path: Path) -> Checkpoint:
    """Labels, counts and shape of the table; its numbers are read when the tensor is opened."""
    map_file(path)  # refuses what is not a regular file
    # From whole lines: the first few bytes may not hold one.
    _, lines = next(line_blocks(path), (1, []))
    layout = layout_of([line.removesuffix(b"\r") for line in lines[:10] if line.strip()])
    if layout is None:
        raise Damaged("its first lines are no table of numbers", RIGHT_FILE)
    return read_table(path, layout)


def read_table(path: Path, layout: TableLayout) -> Checkpoint:
    """The words, counts and numbers of a table, of which it is known where they stand."""
    if layout.columns > MAX_COLUMNS:
        raise too_wide()
    words = WordList(path)
    counts: list[int] | None = None if layout.counts is None else []
    n = 0
    for start, lines in _blocks(path, layout):
        sides = _sides(start, lines, layout)
        n += len(sides)
        if layout.words is not None:
            for row in sides:
                cell = row[layout.words]
                words.add(cell) if isinstance(cell, bytes) else words.add_text(cell)
        if counts is not None and layout.counts is not None:
            counts = _more(counts, [row[layout.counts] for row in sides])
    if n == 0:
        raise Damaged("it holds no vectors", "write it once more")
    tokens, notes = words.finish()
    shape = (n, layout.columns)
    return Checkpoint(
        path=path,
        format=NAME,
        tensors=(Tensor("vectors", shape, "float32", partial(_numbers, path, layout, n)),),
        files=(path,),
        tokens=None if layout.words is None else tokens,
        tokens_source="" if layout.words is None else "the words of the file itself",
        notes=(*layout.notes, *notes),
        counts=None if counts is None else np.array(counts, dtype=np.float64),
        counts_source="" if counts is None else "counts in the file",
    )


def _blocks(path: Path, layout: TableLayout) -> Iterator[tuple[int, list[bytes]]]:
    """Number of the first line, and lines of vectors, some of which may be empty."""
    above = layout.has_headings
    for start, lines in line_blocks(path):
        first = 0
        while above and first < len(lines):
            above = lines[first] in (b"", b"\r")
            first += 1
        yield start + first, lines[first:]


def _drop_empty(lines: list[bytes]) -> list[bytes]:
    """Lines without their ends, and without empty ones."""
    if not lines or (all(lines) and not lines[-1].endswith(b"\r")):
        return lines
    stripped = (line.removesuffix(b"\r") for line in lines)
    return [line for line in stripped if line]


def _sides(
    start: int, lines: list[bytes], layout: TableLayout
) -> Sequence[list[bytes]] | Sequence[list[str]]:
    """The cells before the numbers of each line; all lines have as many cells as they should."""
    filled, wanted = _drop_empty(lines), layout.before + layout.columns
    if not layout.separator:
        if all(len(line.split()) == wanted for line in filled):
            return [[]] * len(filled)
    elif not _is_quoted(filled):
        if {line.count(layout.separator) for line in filled} <= {wanted - 1}:
            before = layout.before
            return [line.split(layout.separator, before)[:before] for line in filled]
    else:
        rows = split_quoted_cells(filled, layout.separator)
        if len(rows) == len(filled) and {len(row) for row in rows} == {wanted}:
            return [row[: layout.before] for row in rows]
    raise _odd_line(start, lines, layout)


def _is_quoted(lines: list[bytes]) -> bool:
    return b'"' in b"".join(lines)


def _odd_line(start: int, lines: list[bytes], layout: TableLayout) -> Damaged:
    """What is wrong with the first line that has another number of cells."""
    wanted = layout.before + layout.columns
    for number, line in enumerate(lines, start):
        line = line.removesuffix(b"\r")
        found = len(split_cells(line, layout.separator))
        if found != wanted and line:
            return Damaged(
                f"line {number:,} has {found:,} cells where {wanted:,} are expected",
                "every line needs the same number of them; it may be cut off there",
            )
    return Damaged("a quoted cell goes over several lines", "write it on one")


def _more(counts: list[int], cells: Sequence[bytes | str]) -> list[int] | None:
    """None where the column holds anything else than counts, such as shares."""
    texts = [cell if isinstance(cell, str) else cell.decode("utf-8", "replace") for cell in cells]
    found = [whole_count(text.removesuffix(".0")) for text in texts]
    return None if None in found else counts + [count for count in found if count is not None]


def _numbers(path: Path, layout: TableLayout, n: int) -> npt.NDArray[np.float32]:
    blocks = (_block(start, lines, layout) for start, lines in _blocks(path, layout))
    return fill_rows(blocks, (n, layout.columns))


def _block(start: int, lines: list[bytes], layout: TableLayout) -> npt.NDArray[np.float32]:
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
        way_out = "every cell behind the words has to be one"
        raise bad_number(rows, is_number, way_out) from None
