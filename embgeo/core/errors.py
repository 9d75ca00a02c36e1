"""Errors that a user can cause; each names the cause and the way out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Encloses the name of an argument in a message; characters that no name or file shows.
_ARGUMENT = re.compile("\x02(\\w+)\x01([^\x03]*)\x03")
#: Arguments whose options have other names.
_OPTIONS = {
    "asked": "--neighbors",
    "out": "-o",
    "plugins": "--plugin",
    "reference": "--no-reference",
    "rules": "--rule",
    "settings": "--set",
    "start": "--from",
    "text": "--text/--column",
}


def argument(name: str, value: str = "") -> str:
    """The name of an argument, for a message.

    Python shows it as it is (``counts``), the command line as its option and what the option
    takes (``--counts FILE``).
    """
    return f"\x02{name}\x01{value}\x03"


def in_python(text: str) -> str:
    """A message that names arguments."""
    return _ARGUMENT.sub(r"\1", text)


def on_command_line(text: str) -> str:
    """A message that names options.

    >>> on_command_line(f"give {argument('counts', 'FILE')} or {argument('rank_order')}")
    'give --counts FILE or --rank-order'
    """
    return _ARGUMENT.sub(lambda found: f"{option_of(found[1])} {found[2]}".rstrip(), text)


def option_of(name: str) -> str:
    """The option of a command that an argument of Python has.

    >>> option_of("popular_share")
    '--popular-share'
    """
    return _OPTIONS.get(name) or f"--{name.replace('_', '-')}"


class EmbgeoError(Exception):
    """Something a user can correct: one line that says what, where and what to do.

    The command line prints the message and ends with exit code 2.

    Parameters
    ----------
    cause : str
        What is wrong.
    where : Path or str, optional
        The file, or the :func:`argument`, it is wrong in; put in front of the message.
    way_out : str, optional
        What to do about it; put behind the message.

    Attributes
    ----------
    cause, where, way_out
        As given, with arguments named as in Python.
    command_line_text : str
        The message, with arguments named as options.
    """

    def __init__(self, cause: str, *, where: Path | str | None = None, way_out: str = "") -> None:
        place = None if where is None else str(where)
        parts = [f"{place}: {cause}" if place else cause, way_out]
        text = "; ".join(" ".join(part.split()) for part in parts if part)
        self.cause = in_python(cause)
        self.where = None if place is None else in_python(place)
        self.way_out = in_python(way_out)
        self.command_line_text = on_command_line(text)
        super().__init__(in_python(text))


class UnreadableFile(EmbgeoError):
    """A file that is missing, damaged, hostile or of a format that is not read."""


class AmbiguousTensor(EmbgeoError):
    """Several tensors could be the embedding matrix, or none could."""


class LabelMismatch(EmbgeoError):
    """Token labels or counts that do not line up with the rows of the matrix."""


class Diverged(EmbgeoError):
    """A training whose loss or weights became NaN or infinite; other runs continue."""


class BadOption(EmbgeoError):
    """An option with a value that makes no sense for this matrix."""


@contextmanager
def writing(where: Path | str, way_out: str) -> Iterator[None]:
    """What the system refuses to write inside the block, as an error about `where`."""
    try:
        yield
    except OSError as error:
        cause = f"cannot be written: {error.strerror or error}"
        raise EmbgeoError(cause, where=where, way_out=way_out) from error


@contextmanager
def looking_at(where: Path | str, way_out: str = "") -> Iterator[None]:
    """What the system refuses to show of a path, as an error about an option.

    Too long a name, a loop of links, a folder that may not be read.
    """
    try:
        yield
    except OSError as error:
        cause = f"cannot be used: {error.strerror or error}"
        raise BadOption(cause, where=where, way_out=way_out) from error
