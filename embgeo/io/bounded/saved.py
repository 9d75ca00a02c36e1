"""Files that embgeo writes, whole or not at all, and reads back with suspicion."""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from embgeo.core.values import Cell
from embgeo.io.bounded.leftovers import PREFIX, locked, remove_leftovers

#: What reading damaged JSON or a damaged archive raises.
DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


class AtomicFile:
    """A temporary path next to `target`, renamed to it on success and removed otherwise."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __enter__(self) -> Path:
        remove_leftovers(self.target.parent)
        handle, name = tempfile.mkstemp(prefix=PREFIX, dir=self.target.parent)
        os.close(handle)
        self.temporary = Path(name)
        self.lock = ExitStack()
        self.lock.enter_context(locked(self.temporary))
        return self.temporary

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.lock.close()
        try:
            if kind is None:
                # mkstemp makes files private; results are meant to be shared like any other file.
                mask = os.umask(0)
                os.umask(mask)
                self.temporary.chmod(0o666 & ~mask)
                self.temporary.replace(self.target)
        finally:
            self.temporary.unlink(missing_ok=True)


def write_text(target: Path, text: str) -> None:
    """Write UTF-8 text with Unix line ends, whole or not at all."""
    with AtomicFile(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def is_record(path: Path, form: str) -> bool:
    """Whether a file is JSON whose ``format`` is `form`."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(said, dict) and said.get("format") == form


def begins_as(path: Path, form: str) -> bool:
    """Whether a file begins like a JSON record whose ``format`` is `form`; it may be damaged."""
    try:
        with path.open("rb") as stream:
            start = stream.read(4096)
    except OSError:  # a folder, stdin, a member of an archive, a missing file
        return False
    return start.lstrip().startswith(b"{") and f'"{form}"'.encode() in start


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    r"""A table as CSV, line by line: RFC 4180 but for the line ends, which are Unix's; UTF-8.

    None is an empty cell. A lone surrogate, which no UTF-8 can hold, is written as ``\udXXX``, and
    ``'`` is put before a text that a spreadsheet would run as a formula.

    >>> b"".join(csv_lines(("x", "y"), [("a,b", None), ("c", 0.1)])).decode()
    'x,y\n"a,b",\nc,0.1\n'
    """
    # With this line end Python's writer quotes both of its characters wherever they occur.
    writer = csv.writer(_Echo(), lineterminator=_END)
    for row in itertools.chain([columns], rows):
        line = writer.writerow([f"'{cell}" if is_formula(cell) else cell for cell in row])
        yield f"{line.removesuffix(_END)}\n".encode("utf-8", "backslashreplace")


#: A formula that can do something: it calls, refers to another sheet or file, or starts a program.
_FORMULA = re.compile(r"\s*[=+\-@].*[(|!#$:'\"\\/]", re.DOTALL)


def is_formula(cell: Cell) -> bool:
    """Whether a spreadsheet might run the text; ``-ing``, ``+1`` and ``=`` stay as they are."""
    return isinstance(cell, str) and _FORMULA.match(cell) is not None


_END = "\r\n"


class _Echo:
    """Gives each line back to a csv writer, which hands it on."""

    def write(self, line: str) -> str:
        return line
