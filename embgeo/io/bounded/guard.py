"""One place where everything that a damaged file can cause becomes one line."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

from embgeo.core.errors import EmbgeoError, UnreadableFile

P = ParamSpec("P")
T = TypeVar("T")

#: What to do about a file that is not what it says it is.
GET_AGAIN = "download or save the file again"
#: What to do about a file of another kind.
RIGHT_FILE = "check that it is the right file"

_LONGEST_TEXT = 80

# What the standard library and numpy raise on hostile bytes. MemoryError is among them because
# a size that lies inside the file can still be more than the machine has.
_CAUSED_BY_BYTES = (
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
    """Bytes that contradict themselves or ask for too much; a reader raises it, `reading` ends it.

    Parameters
    ----------
    cause : str
        What is wrong.
    way_out : str, optional
        What the user can do about it.
    """

    def __init__(self, cause: str, way_out: str = GET_AGAIN) -> None:
        super().__init__(cause)
        self.cause = cause
        self.way_out = way_out


def refuse(path: Path | str, cause: str, way_out: str) -> UnreadableFile:
    """The error for a file that is not read: where, what is wrong, and the way out."""
    return UnreadableFile(cause, where=path, way_out=way_out)


def cannot_read(path: Path | str, error: OSError) -> UnreadableFile:
    """The error for what the operating system refused."""
    if isinstance(error, FileNotFoundError):
        return refuse(path, "there is no such file", "check the path")
    if isinstance(error, PermissionError):
        return refuse(path, "permission to read it is denied", "change its permissions")
    reason = error.strerror or str(error) or type(error).__name__
    return refuse(path, f"cannot be read ({reason})", "check the path")


@contextmanager
def reading(path: Path | str, what: str) -> Iterator[None]:
    """Turn whatever a bad file causes inside the block into :class:`UnreadableFile`.

    Parameters
    ----------
    path : Path or str
        The file being read; named in the message.
    what : str
        The format it seemed to be.
    """
    try:
        yield
    except EmbgeoError:
        raise
    except Damaged as error:
        raise refuse(path, error.cause, error.way_out) from None
    except OSError as error:
        raise cannot_read(path, error) from error
    except MemoryError as error:
        raise refuse(
            path,
            f"this {what} needs more memory than there is",
            "use a machine with more memory, or save the matrix alone as .npy",
        ) from error
    except _CAUSED_BY_BYTES as error:
        raise refuse(
            path, f"a damaged or cut off {what} ({type(error).__name__})", GET_AGAIN
        ) from error


def guard_opening(path: Path, what: str, action: Callable[P, T]) -> Callable[P, T]:
    """`action` run inside :func:`reading`; for what is opened after the headers were read."""

    def run(*args: P.args, **options: P.kwargs) -> T:
        with reading(path, what):
            return action(*args, **options)

    return run


def plain(text: str) -> str:
    """`text` with every character that is not printable written as its escape.

    Names in a file are the file's author's: they may hold newlines, terminal controls, or halves
    of surrogate pairs that no encoder takes.

    >>> plain("encoder.weight"), plain("a\\x1b[2J\\n")
    ('encoder.weight', 'a\\\\x1b[2J\\\\n')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def short(text: str) -> str:
    """:func:`plain` text, cut so that a message stays one readable line."""
    cut = plain(text[:_LONGEST_TEXT])
    return f"{cut}…" if len(text) > _LONGEST_TEXT else cut


def list_short(names: Sequence[str], most: int) -> str:
    """The first `most` names, each :func:`short`, and how many more there are.

    >>> list_short(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(short, names[:most])) + more
