"""Turns every error that a damaged file can cause into one line."""

import fnmatch
import gc
import glob
import os
import re
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

_LONGEST_TEXT = 80
#: An address, whose password and query, such as a signature, are secret.
_ADDRESS = re.compile(r"(https?://)(?:[^\s/@]*@)?([^\s?'\"]*)[^\s'\"]*")
#: Names of a folder among which the one that was meant is sought.
_MOST_NAMES = 10_000

#: What errors of Python and of libraries mean, by the first class that fits: the cause, and a
#: command that helps. Classes have names, as no library is imported to ask for them.
ERRORS: tuple[tuple[str, str, str], ...] = (
    ("huggingface_hub.errors.OfflineModeIsEnabled",
     "is not in the cache, and HF_HUB_OFFLINE forbids the network", "unset HF_HUB_OFFLINE"),
    ("huggingface_hub.errors.GatedRepoError", "the model is gated{status}",
     "accept the license at {page}, then run: hf auth login"),
    ("huggingface_hub.errors.RepositoryNotFoundError", "there is no such {what}{status}",
     "to see a private one, run: hf auth login"),
    ("huggingface_hub.errors.RevisionNotFoundError", "there is no such revision{status}",
     "{pattern}"),
    ("huggingface_hub.errors.RemoteEntryNotFoundError", "a file of it was not found{status}", ""),
    ("huggingface_hub.errors.LocalEntryNotFoundError", "cannot be read ({type})", ""),
    ("builtins.ImportError", "needs a package that is not installed ({text})",
     "pip install 'embgeo[{extra}]'"),
    ("builtins.FileNotFoundError", "there is no such file", ""),
    ("builtins.PermissionError", "permission to read it is denied", ""),
    ("ssl.SSLCertVerificationError", "the certificate of the server is not accepted ({text})",
     "if the server can be trusted, name the file of its authority in SSL_CERT_FILE"),
    *((name, "the server cannot be reached ({text})", "see whether there is a network")
      for name in ("httpx.ConnectError", "httpx2.ConnectError",
                   "aiohttp.client_exceptions.ClientConnectorError")),
    ("builtins.TimeoutError", "the server does not answer in time", ""),
    # A size that fits the file may still exceed the machine's memory.
    ("builtins.MemoryError", "this {what} needs more memory than there is",
     "save the matrix alone with numpy.save"),
    ("builtins.OSError", "cannot be read ({text})", ""),
    ("builtins.Exception", "cannot be read ({type}: {text})", ""),
)  # fmt: skip
#: Errors of the standard library and numpy on hostile bytes.
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


def explain(error: BaseException, what: str = "file", **words: str) -> tuple[str, str]:
    """Explain an error by `ERRORS`: the cause, and a way out or nothing.

    `words` are for the blanks of an entry: the page of a model, the extra that is needed.
    """
    inner: BaseException | None = error
    while inner is not None and not hasattr(inner, "verify_message"):
        inner = inner.__context__
    error = inner or error  # libraries wrap a refused certificate
    names = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__]
    _, cause, way_out = next(row for row in ERRORS if row[0] in names)
    code = getattr(getattr(error, "response", None), "status_code", None)
    said = getattr(error, "verify_message", "") or getattr(error, "strerror", None) or ""
    said = said.rstrip(".") or " ".join(str(error).split())
    said = _ADDRESS.sub(r"\1\2", said)
    blanks = {
        "what": what,
        "type": type(error).__name__,
        "status": "" if code is None else f" (status {code})",
        "text": (short(said) if code is None else f"status {code}") or type(error).__name__,
        **words,
    }
    return cause.format_map(blanks), way_out.format_map(blanks)


class Damaged(Exception):
    """Bytes that contradict each other or ask for too much; :func:`reading` names the file."""

    def __init__(self, cause: str, way_out: str = "", ways_out: Sequence[WayOut] = ()) -> None:
        super().__init__(cause)
        self.cause = cause
        self.way_out = way_out
        self.ways_out = ways_out


class Missing(Damaged):
    """Another file, which belongs to the checkpoint, was not found."""


class MissingPiece(UnreadableFile):
    """A :class:`Missing` file, with the name of the checkpoint."""


def refuse(
    path: Path | str, cause: str, way_out: str = "", ways_out: Sequence[WayOut] = ()
) -> UnreadableFile:
    """Return the error for a file that is not read."""
    return UnreadableFile(cause, where=path, way_out=way_out, ways_out=ways_out)


def suggest_file(path: Path | str, way_out: str = "") -> str:
    """Ask whether the file of the nearest name in the same folder was meant; else the way out."""
    path = Path(path)
    with suppress(OSError):
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, _MOST_NAMES)]
        if glob.has_magic(path.name) and fnmatch.filter(names, path.name):
            return "embgeo analyze --engine dask reads all files of a pattern"
        # An ending that both have makes no names alike.
        names.sort(key=lambda name: Path(name).suffix == path.suffix)
        by_stem = {Path(name).stem: name for name in names}
        near = find_nearest(path.stem, by_stem)
        if near and path.name not in names:
            return f"did you mean {path.with_name(by_stem[near])}?"
    return way_out


def cannot_read(path: Path | str, error: OSError) -> UnreadableFile:
    """Return the error for a file that the operating system refuses to read."""
    cause, way_out = explain(error)
    is_missing = isinstance(error, FileNotFoundError)
    return refuse(path, cause, suggest_file(path) if is_missing else way_out)


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
        raise refuse(path, *explain(error, what)) from error
    except CAUSED_BY_BYTES as error:
        raise refuse(path, f"a damaged or cut off {what} ({type(error).__name__})") from error


@contextmanager
def fetching(name: str, what: str = "file", **words: str) -> Iterator[None]:
    """Turn every error of a library that uses the network into one line about `name`.

    Errors about files on this machine, such as a full disk, are left to those that write them.
    """
    try:
        yield
    except (EmbgeoError, Damaged):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        # fsspec calls every failure of a request to a web server a missing file.
        cause, is_of_web = error.__cause__, name.startswith(("http://", "https://"))
        if isinstance(cause, Exception) and is_of_web and getattr(cause, "status", 0) != 404:
            error = cause
        raise refuse(name, *explain(error, what, **words)) from error


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


def list_short(names: Sequence[str], most: int = 5) -> str:
    """List the first `most` names, each :func:`short`, and the number of further ones.

    >>> list_short(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(short, names[:most])) + more
