"""Turns every error that a damaged file can cause into one line."""

import gc
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from embgeo.core.arguments import find_nearest
from embgeo.core.errors import EmbgeoError, UnreadableFile, WayOut

P = ParamSpec("P")
T = TypeVar("T")

#: Way out for a damaged file.
GET_AGAIN = "download or save the file again"
#: Way out for a file of another kind.
RIGHT_FILE = "check that it is the right file"

_LONGEST_TEXT = 80
#: Names of a folder among which the one that was meant is sought.
_MOST_NAMES = 10_000

#: Errors of the standard library and numpy on hostile bytes. MemoryError: a size that fits the file
#: may still exceed the machine's memory.
CAUSED_BY_BYTES = (
    struct.error,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)


class Damaged(Exception):
    """Bytes that contradict each other or ask for too much; :func:`reading` names the file."""

    def __init__(
        self, cause: str, way_out: str = GET_AGAIN, ways_out: Sequence[WayOut] = ()
    ) -> None:
        super().__init__(cause)
        self.cause = cause
        self.way_out = way_out
        self.ways_out = ways_out


class Missing(Damaged):
    """Another file, which belongs to the checkpoint, was not found."""


class MissingPiece(UnreadableFile):
    """A :class:`Missing` file, with the name of the checkpoint."""


def refuse(
    path: Path | str, cause: str, way_out: str, ways_out: Sequence[WayOut] = ()
) -> UnreadableFile:
    """Return the error for a file that is not read."""
    return UnreadableFile(cause, where=path, way_out=way_out, ways_out=ways_out)


def suggest_file(path: Path | str, way_out: str = "check the path") -> str:
    """Ask whether the file of the nearest name in the same folder was meant; else the way out."""
    path = Path(path)
    with suppress(OSError):
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, _MOST_NAMES)]
        # An ending that both have makes no names alike.
        names.sort(key=lambda name: Path(name).suffix == path.suffix)
        by_stem = {Path(name).stem: name for name in names}
        near = find_nearest(path.stem, by_stem)
        if near and path.name not in names:
            return f"did you mean {path.with_name(by_stem[near])}?"
    return way_out


def cannot_read(path: Path | str, error: OSError) -> UnreadableFile:
    """Return the error for a file that the operating system refuses to read."""
    if isinstance(error, FileNotFoundError):
        return refuse(path, "there is no such file", suggest_file(path))
    if isinstance(error, PermissionError):
        return refuse(path, "permission to read it is denied", "change its permissions")
    reason = error.strerror or str(error) or type(error).__name__
    return refuse(path, f"cannot be read ({reason})", "check the path")


@contextmanager
def without_collection() -> Iterator[None]:
    """Keep Python from looking for garbage again and again while very many objects are made."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def reading(path: Path | str, what: str) -> Iterator[None]:
    """Turn errors inside the block into an UnreadableFile for `path`, a file of format `what`."""
    try:
        yield
    except EmbgeoError:
        raise
    except Missing as error:
        raise MissingPiece(error.cause, where=path, way_out=error.way_out) from None
    except Damaged as error:
        raise refuse(path, error.cause, error.way_out, error.ways_out) from None
    except OSError as error:
        raise cannot_read(path, error) from error
    except MemoryError as error:
        raise refuse(
            path,
            f"this {what} needs more memory than there is",
            "use a machine with more memory, or save the matrix alone as .npy",
        ) from error
    except CAUSED_BY_BYTES as error:
        raise refuse(
            path, f"a damaged or cut off {what} ({type(error).__name__})", GET_AGAIN
        ) from error


def guard_opening(path: Path, what: str, action: Callable[P, T]) -> Callable[P, T]:
    """Wrap `action`, which opens a tensor later, in :func:`reading`."""

    # The types of the arguments are not named: a file may have 200,000 tensors.
    def run(*args: Any, **options: Any) -> Any:
        with reading(path, what):
            return action(*args, **options)

    return run


def plain(text: str) -> str:
    """Escape every character that is not printable.

    Names in a file may hold newlines, terminal controls, or lone surrogates, which no encoding has.

    >>> plain("encoder.weight"), plain("a\\x1b[2J\\n")
    ('encoder.weight', 'a\\\\x1b[2J\\\\n')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def short(text: str) -> str:
    """:func:`plain` text, cut for a message of one line."""
    cut = plain(text[:_LONGEST_TEXT])
    return f"{cut}…" if len(text) > _LONGEST_TEXT else cut


def list_short(names: Sequence[str], most: int) -> str:
    """List the first `most` names, each :func:`short`, and the number of further ones.

    >>> list_short(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(short, names[:most])) + more
