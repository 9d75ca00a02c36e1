"""Tables as CSV: RFC 4180 but for the line ends, which are Unix's; UTF-8."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence

from embgeo.core.values import Cell


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    r"""The table line by line; None is an empty cell.

    A lone surrogate, which no UTF-8 can hold, is written as ``\udXXX``.

    >>> b"".join(csv_lines(("x", "y"), [("a,b", None), ("c", 0.1)])).decode()
    'x,y\n"a,b",\nc,0.1\n'
    """
    lines = _Lines()
    # With this line end Python's writer quotes both of its characters wherever they occur.
    writer = csv.writer(lines, lineterminator=_END)
    writer.writerow(columns)
    yield lines.take()
    for row in rows:
        writer.writerow(row)
        yield lines.take()


_END = "\r\n"


class _Lines:
    """What a csv writer writes to, a line at a time."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text

    def take(self) -> bytes:
        line, self.text = self.text.removesuffix(_END) + "\n", ""
        return line.encode("utf-8", "backslashreplace")
