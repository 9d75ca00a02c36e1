"""Text with one vector per line or value, read in blocks: no file is held in memory."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from embgeo.core.matrix import FileStamp
from embgeo.files.guard import Damaged
from embgeo.files.scratch import fill_rows
from embgeo.io.model.checkpoint import Tensor

#: Limits of a line of numbers.
MAX_LINE_BYTES = 16 * 2**20
MAX_COLUMNS = 1_000_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NUMBER = rb"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|nan|inf)"

_WHOLE = re.compile(rb"[+-]?\d+(\.0*)?")
#: Fewer lines may hold whole numbers by chance.
_FEWEST_LINES = 4
_BLOCK_BYTES = 4 * 2**20
_PLAIN_NUMBER = re.compile(NUMBER, re.IGNORECASE)


def is_plain_number(cell: bytes) -> bool:
    """Tell whether a cell is a number without blanks around it."""
    return _PLAIN_NUMBER.fullmatch(cell) is not None


def too_wide() -> Damaged:
    return Damaged(f"it has lines of more than {MAX_COLUMNS:,} numbers")


def refuse_whole_column(rows: Sequence[Sequence[bytes]], separator: str, first: int = 1) -> None:
    """Refuse a column of whole numbers among decimal ones: counts or classes, no part of vectors.

    `rows` are the numbers of the first lines, from column `first` on.
    """
    columns = list(zip(*rows, strict=False)) if len(rows) >= _FEWEST_LINES else []
    whole = [all(_WHOLE.fullmatch(cell.strip()) for cell in column) for column in columns]
    for place, column in enumerate(columns if 2 * sum(whole) < len(whole) else ()):
        # Zeros and ones are written so among decimals, too.
        if whole[place] and any(abs(float(cell)) > 1 for cell in column):
            number = place + first
            raise Damaged(
                f"column {number:,} holds whole numbers among decimal ones: no part of the vectors",
                cut_out(number, separator),
            )


def cut_out(column: int, separator: str) -> str:
    """Return the way out for a column that is no part of the vectors."""
    return f"leave it out: cut -d '{separator}' --complement -f {column} FILE"


def refuse_number(
    rows: Iterable[tuple[int, Iterable[bytes]]], is_number: Callable[[bytes], bool]
) -> Damaged:
    """Return the error that names the first cell of these numbered lines that is not a number."""
    for line, cells in rows:
        for place, cell in enumerate(cells, 1):
            if not is_number(cell):
                shown = ascii(cell[:40].decode("utf-8", "backslashreplace"))
                return Damaged(f"line {line:,}, number {place:,}: {shown} is not a number")
    return Damaged("it holds something that is not a number")


#: Lines without their ends, and the number of the first one.
LineBlock = tuple[int, list[bytes]]


def line_blocks(file: FileStamp, *, headings: bool = False) -> Iterator[LineBlock]:
    """Yield blocks of lines; with `headings` those after the first line that is not empty."""
    blocks = _all_blocks(file)
    while headings:
        number, lines = next(blocks, (1, []))
        place = next((k for k, line in enumerate(lines) if line not in (b"", b"\r")), len(lines))
        headings = bool(lines) and place == len(lines)
        if lines[place + 1 :]:
            yield number + place + 1, lines[place + 1 :]
    yield from blocks


def _all_blocks(file: FileStamp) -> Iterator[LineBlock]:
    number, rest = 1, b""
    with file.open() as opened:
        while chunk := opened.read(_BLOCK_BYTES):
            if number == 1 and not rest:
                chunk = chunk.removeprefix(BYTE_ORDER_MARK)
                if chunk.rstrip(b"\r").count(b"\r") > chunk.count(b"\n"):
                    raise Damaged(
                        "its lines end with carriage returns alone",
                        "convert them with tr '\\r' '\\n'",
                    )
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            if len(rest) > MAX_LINE_BYTES:
                raise Damaged(
                    f"line {number + len(lines):,} is longer than {MAX_LINE_BYTES // 2**20} MiB",
                )
            if lines:
                yield number, lines
            number += len(lines)
    if rest.strip():
        yield number, [rest]


def tensor_of_lines(
    file: FileStamp,
    headings: bool,
    parse: Callable[[int, list[bytes]], npt.NDArray[np.float32]],
    shape: tuple[int, int],
) -> Tensor:
    """Return the vectors in lines; `parse` reads those of a block."""

    def read() -> npt.NDArray[np.float32]:
        blocks = line_blocks(file, headings=headings)
        return fill_rows((parse(start, lines) for start, lines in blocks), shape)

    return Tensor("vectors", shape, "float32", read)


def are_plain(lines: Sequence[bytes], spaces: int) -> bool:
    """Tell whether each line has exactly `spaces` blanks: single spaces, none at its ends."""
    if {line.count(b" ") for line in lines} != {spaces}:
        return False
    text = b"\n%b\n" % b"\n".join(lines)
    return not any(sign in text for sign in (b"\t", b"\r", b" \n", b"\n "))


def numbers_in(
    lines: Sequence[bytes], separator: bytes, columns: Sequence[int], *, quoted: bool = False
) -> npt.NDArray[np.float32]:
    """Return the numbers in these columns of each line; an empty separator is any blanks.

    Raises ValueError for a cell that is not a number.
    """
    if not lines:
        return np.empty((0, len(columns)), dtype=np.float32)
    with np.errstate(over="ignore"):  # 1e300 becomes inf, a non-finite row
        block: npt.NDArray[np.float32] = np.loadtxt(
            [line.decode("latin-1") for line in lines],
            dtype=np.float32,
            delimiter=separator.decode() or None,
            quotechar='"' if quoted else None,
            comments=None,
            ndmin=2,
            usecols=columns,
        )
    return block


def split_cells(line: bytes, separator: bytes) -> list[bytes]:
    """Return the cells of a line without quotes; an empty separator is any blanks."""
    if not separator:
        return line.split()
    if b'"' not in line:
        return line.split(separator)
    return [encode_cell(cell) for row in split_quoted_cells([line], separator) for cell in row]


def split_quoted_cells(lines: Iterable[bytes], separator: bytes) -> list[list[str]]:
    """Return the cells of several lines; a quoted cell may span lines."""
    texts = b"\n".join(lines).decode("utf-8", "surrogateescape").split("\n")
    try:
        return list(csv.reader(texts, delimiter=separator.decode()))
    except csv.Error as error:
        raise Damaged(f"a line is not a row of a table ({error})") from error


def encode_cell(cell: str) -> bytes:
    return cell.encode("utf-8", "surrogateescape")
