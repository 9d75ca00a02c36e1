"""Files that embgeo writes, whole or not at all, and what a damaged one raises."""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from embgeo.core.values import Cell
from embgeo.io.bounded.guard import CAUSED_BY_BYTES

#: Start of the names of temporary files and folders next to results.
PREFIX = ".embgeo."
#: Seconds between making a temporary file and locking it.
GRACE = 60.0
#: What reading damaged JSON or a damaged archive raises.
DAMAGE = (OSError, RuntimeError, *CAUSED_BY_BYTES)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock on a file or folder; False if another process has it or there are no locks."""
    if sys.platform == "win32":
        yield False
        return
    import fcntl

    descriptor = -1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        got = True
    except OSError:
        got = False
    try:
        yield got
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files and folders of killed processes.

    A process holds a lock on each of its own, which the system releases when the process ends.
    """
    for path in folder.glob(f"{PREFIX}*"):
        # Another process may have removed it, or it cannot be removed.
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > GRACE:
                with locked(path) as free:
                    if free and path.is_dir():
                        shutil.rmtree(path, ignore_errors=True)
                    elif free:
                        path.unlink(missing_ok=True)


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
                # mkstemp makes files private; results have the usual permissions.
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
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("format") == form


def begins_as(path: Path, form: str) -> bool:
    """Whether a file begins like a JSON record whose ``format`` is `form`; it may be damaged."""
    try:
        with path.open("rb") as stream:
            start = stream.read(4096)
    except OSError:  # a folder, stdin, a member of an archive, a missing file
        return False
    return start.lstrip().startswith(b"{") and f'"{form}"'.encode() in start


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    r"""Lines of a table as CSV by RFC 4180, in UTF-8, with Unix line ends.

    None is an empty cell. A lone surrogate, which UTF-8 cannot hold, is written as ``\udXXX``, and
    ``'`` goes before a text that a spreadsheet would run as a formula.

    >>> b"".join(csv_lines(("x", "y"), [("a,b", None), ("c", 0.1)])).decode()
    'x,y\n"a,b",\nc,0.1\n'
    """
    # Python's writer quotes cells with a character of the line end: here both of them.
    writer = csv.writer(_Echo(), lineterminator=_END)
    for row in itertools.chain([columns], rows):
        line = writer.writerow([f"'{cell}" if is_formula(cell) else cell for cell in row])
        yield f"{line.removesuffix(_END)}\n".encode("utf-8", "backslashreplace")


#: A formula that calls, refers to another sheet or file, or starts a program.
_FORMULA = re.compile(r"\s*[=+\-@].*[(|!#$:'\"\\/]", re.DOTALL)


def is_formula(cell: Cell) -> bool:
    """Whether a spreadsheet might run the text; not ``-ing``, ``+1`` and ``=``."""
    return isinstance(cell, str) and _FORMULA.match(cell) is not None


_END = "\r\n"


class _Echo:
    """A file for csv whose ``write`` returns the line."""

    def write(self, line: str) -> str:
        return line
