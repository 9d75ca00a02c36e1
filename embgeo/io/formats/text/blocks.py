"""Text with one vector a line, in blocks: no file is held whole, and few lines one by one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.io.bounded.guard import Damaged

#: Longer lines, or lines of more numbers, are not lines of vectors.
MAX_LINE_BYTES = 16 * 2**20
MAX_COLUMNS = 1_000_000
ONE_A_LINE = "check that it holds one vector a line"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NUMBER = rb"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|nan|inf)"

_BLOCK_BYTES = 4 * 2**20
_BLOCK_ROWS = 4096
_PLAIN_NUMBER = re.compile(NUMBER, re.IGNORECASE)


def is_plain_number(cell: bytes) -> bool:
    """Whether a cell is a number and nothing else, without blanks around it."""
    return _PLAIN_NUMBER.fullmatch(cell) is not None


def too_wide() -> Damaged:
    """The error for a line of more numbers than any vector has."""
    return Damaged(f"it has lines of more than {MAX_COLUMNS:,} numbers", ONE_A_LINE)


def bad_number(
    rows: Iterable[tuple[int, Iterable[bytes]]], is_number: Callable[[bytes], bool], way_out: str
) -> Damaged:
    """The error that names the first cell that is not a number, of lines with their numbers."""
    for line, cells in rows:
        for place, cell in enumerate(cells, 1):
            if not is_number(cell):
                shown = ascii(cell[:40].decode("utf-8", "backslashreplace"))
                return Damaged(f"line {line:,}, number {place:,}: {shown} is not a number", way_out)
    return Damaged("it holds something that is not a number", way_out)


def line_blocks(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Lines in blocks: number of the first line, lines without their ends."""
    number, rest = 1, b""
    with path.open("rb") as file:
        while chunk := file.read(_BLOCK_BYTES):
            if number == 1 and not rest:
                chunk = chunk.removeprefix(BYTE_ORDER_MARK)
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            if len(rest) > MAX_LINE_BYTES:
                raise Damaged(
                    f"line {number + len(lines):,} is longer than {MAX_LINE_BYTES // 2**20} MiB",
                    ONE_A_LINE,
                )
            if lines:
                yield number, lines
            number += len(lines)
    if rest.strip():
        yield number, [rest]


def gather(vectors: Iterator[list[float]]) -> Iterator[npt.NDArray[np.float32]]:
    """Vectors of one length in blocks."""
    while block := list(itertools.islice(vectors, _BLOCK_ROWS)):
        with np.errstate(over="ignore"):  # 1e300 becomes inf, and the row is counted as such
            yield np.array(block, dtype=np.float32)


def are_plain(lines: Sequence[bytes], spaces: int) -> bool:
    """Whether each line has `spaces` single spaces, none at either end, and no other blank."""
    if {line.count(b" ") for line in lines} != {spaces}:
        return False
    text = b"\n%b\n" % b"\n".join(lines)
    return not any(sign in text for sign in (b"\t", b"\r", b" \n", b"\n "))


def numbers_in(
    lines: Sequence[bytes], separator: bytes, before: int, columns: int, *, quoted: bool = False
) -> npt.NDArray[np.float32]:
    """The numbers of lines behind the first `before` cells, shape (lines, columns).

    Parameters
    ----------
    lines : sequence of bytes
    separator : bytes
        Between cells; empty for any blanks.
    before, columns : int
    quoted : bool
        Whether cells may stand between double quotes.

    Raises
    ------
    ValueError
        A cell that is not a number.
    """
    if not lines:
        return np.empty((0, columns), dtype=np.float32)
    with np.errstate(over="ignore"):  # 1e300 becomes inf, and the row is counted as such
        block: npt.NDArray[np.float32] = np.loadtxt(
            [line.decode("latin-1") for line in lines],
            dtype=np.float32,
            delimiter=separator.decode() or None,
            quotechar='"' if quoted else None,
            comments=None,
            ndmin=2,
            usecols=range(before, before + columns),
        )
    return block
