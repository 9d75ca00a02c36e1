"""Files that embgeo writes, whole or not at all, and what a damaged one raises."""

import csv
import itertools
import json
import os
import platform
import re
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from embgeo.core.values import Cell
from embgeo.files.guard import CAUSED_BY_BYTES

#: Start of the names of temporary files and folders next to results.
PREFIX = ".embgeo."
_MACHINE = f"{zlib.crc32(platform.node().encode()):08x}"
_TEMPORARY = re.compile(rf"{re.escape(PREFIX)}([0-9a-f]{{8}})\.([0-9]{{1,10}})\.[0-9a-f]{{16}}")
#: What reading damaged JSON or a damaged archive raises.
DAMAGE = (OSError, RuntimeError, *CAUSED_BY_BYTES)


Content = str | bytes | Iterable[bytes | memoryview] | Callable[[BinaryIO], object]

#: The longest record in JSON.
MOST_BYTES = 512 * 2**20


def name_temporary(home: Path) -> Path:
    """Name a path in `home` that nothing has; the name says which process uses it."""
    return home / f"{PREFIX}{_MACHINE}.{os.getpid()}.{secrets.token_hex(8)}"


def remove_left(home: Path) -> None:
    """Remove temporary files and folders that a process of this machine left when it was killed."""
    with suppress(OSError):
        for path in home.glob(f"{PREFIX}*"):
            own = _TEMPORARY.fullmatch(path.name)
            if own is None or own[1] != _MACHINE or _is_running(int(own[2])):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    if os.name == "nt":  # where signal 0 ends a process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


@contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """Yield a temporary path next to `target`, renamed to it on success and removed otherwise."""
    temporary = name_temporary(target.parent)
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def temporary_folder(home: Path) -> Iterator[Path]:
    """Yield a temporary folder in `home`, removed at the end unless it was renamed."""
    home.mkdir(parents=True, exist_ok=True)
    remove_left(home)
    folder = name_temporary(home)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_file(target: Path, content: Content, *, durable: bool = False) -> None:
    """Write text as UTF-8, bytes, pieces, or what a function writes to the open file.

    The file is whole or not there; if `durable`, also after a loss of power.
    """
    with atomic_file(target) as temporary, temporary.open("xb") as stream:
        if callable(content):
            content(stream)
        elif isinstance(content, str):
            stream.write(content.encode())
        elif isinstance(content, bytes):
            stream.write(content)
        else:
            stream.writelines(content)
        if durable:
            stream.flush()
            os.fsync(stream.fileno())


def copy_file(source: Path, target: Path, *, link: bool = False) -> None:
    """Copy a file, or what a link leads to; with `link` as a hard link where that can be."""
    source = source.resolve()
    with atomic_file(target) as temporary:
        if link:
            with suppress(OSError):  # another file system, or one without links
                os.link(source, temporary)
                return
        shutil.copyfile(source, temporary)


def require_plain(path: Path, most: int = MOST_BYTES) -> None:
    """Raise ValueError for a pipe, a device, a folder, and a file of more than `most` bytes."""
    if path.exists() and not path.is_file():
        raise ValueError("not a plain file")
    if path.is_file() and path.stat().st_size > most:
        raise ValueError(f"more than {most // 2**20:,} MiB")


def is_record(path: Path, form: str) -> bool:
    """Tell whether a file is JSON whose ``format`` is `form`."""
    try:
        require_plain(path)
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("format") == form


def has_format(path: Path, form: str) -> bool:
    """Tell whether a file begins like a JSON record whose ``format`` is `form`.

    It may be damaged.
    """
    try:
        if not path.is_file():  # a folder, a pipe, stdin, a member of an archive, a missing file
            return False
        with path.open("rb") as stream:
            start = stream.read(4096)
    except OSError:
        return False
    return start.lstrip().startswith(b"{") and f'"{form}"'.encode() in start


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    r"""Yield lines of a table as CSV by RFC 4180, in UTF-8, with Unix line ends.

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
    """Tell whether a spreadsheet might run the text; not ``-ing``, ``+1`` and ``=``."""
    return isinstance(cell, str) and _FORMULA.match(cell) is not None


_END = "\r\n"


class _Echo:
    """A file for csv whose ``write`` returns the line."""

    def write(self, line: str) -> str:
        return line
