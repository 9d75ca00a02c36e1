"""Errors that a user can correct, with cause and way out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

#: The name of an argument in a message, between control characters that no other text contains.
_ARGUMENT = re.compile("\x02(\\w+)\x01([^\x03]*)\x03")
#: Characters of a message, which may quote a rule, a key or a name of any length.
_LONGEST = 8192
#: Options that are named differently from their arguments.
_OPTIONS = {
    "metrics": "--metric",
    "out": "-o",
    "plugins": "--plugin",
    "reference": "--no-reference",
    "rules": "--rule",
    "settings": "--set",
    "text": "--text/--column",
}


def argument(name: str, value: str = "") -> str:
    """Return the name of an argument in a message, with a placeholder for its value.

    Python shows the name (``counts``), the command line its option (``--counts FILE``).
    """
    return f"\x02{name}\x01{value}\x03"


def in_python(text: str) -> str:
    """Return a message with the names of arguments."""
    return _ARGUMENT.sub(r"\1", text)


def on_command_line(text: str) -> str:
    """Return a message with options instead of arguments.

    >>> on_command_line(f"give {argument('counts', 'FILE')} or {argument('rank_order')}")
    'give --counts FILE or --rank-order'
    """
    return _ARGUMENT.sub(lambda found: f"{option_of(found[1])} {found[2]}".rstrip(), text)


def option_of(name: str) -> str:
    """Return the command-line option of an argument.

    >>> option_of("popular_share")
    '--popular-share'
    """
    return _OPTIONS.get(name) or f"--{name.replace('_', '-')}"


def _cut(text: str) -> str:
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} … {text[-half:]}"


@dataclass(frozen=True, slots=True)
class WayOut:
    """A way out that can be taken: the same again with another path, or with further arguments."""

    #: What to name in place of the path that was given; empty for the same one.
    path: str = ""
    #: Arguments of :func:`embgeo.load` and their values.
    arguments: Mapping[str, str | bool] = field(default_factory=dict)


class EmbgeoError(Exception):
    """An error that a user can correct: one line with place, cause and way out.

    The command line prints the message and ends with exit code 2.

    Parameters
    ----------
    cause : str
        What is wrong.
    where : Path or str, optional
        The file or the :func:`argument`, at the beginning of the message.
    way_out : str, optional
        What to do about it, at the end of the message.
    ways_out : sequence of WayOut
        Those of `way_out` that can be taken.

    Attributes
    ----------
    cause, where, way_out, ways_out
        The parameters, with the names of arguments.
    command_line_text : str
        The message with options instead of arguments.

    Examples
    --------
    >>> error = EmbgeoError("is empty", where="W.npy", way_out=f"give {argument('tensor')}")
    >>> str(error), error.command_line_text
    ('W.npy: is empty; give tensor', 'W.npy: is empty; give --tensor')
    """

    def __init__(
        self,
        cause: str,
        *,
        where: Path | str | None = None,
        way_out: str = "",
        ways_out: Sequence[WayOut] = (),
    ) -> None:
        place = None if where is None else str(where)
        parts = [f"{place}: {cause}" if place else cause, way_out]
        text = "; ".join(" ".join(part.split()) for part in parts if part)
        self.cause = in_python(cause)
        self.where = None if place is None else in_python(place)
        self.way_out = in_python(way_out)
        self.ways_out = tuple(ways_out)
        self._stated = (cause, where, way_out)
        self.command_line_text = _cut(on_command_line(text))
        super().__init__(_cut(in_python(text)))

    def also(self, way_out: str, ways_out: Sequence[WayOut]) -> Self:
        """Make the error with one more way out."""
        cause, where, stated = self._stated
        return type(self)(
            cause,
            where=where,
            way_out=f"{stated}, or {way_out}" if stated else way_out,
            ways_out=(*self.ways_out, *ways_out),
        )

    def add_place(self, where: Path | str) -> Self:
        """Return the error with a place unless it has one."""
        cause, stated, way_out = self._stated
        place = where if stated is None else stated
        return type(self)(cause, where=place, way_out=way_out, ways_out=self.ways_out)

    def rename(self, old: str, new: str) -> Self:
        """Return the error with another name of the same file or folder."""
        cause, where, way_out = self._stated
        place = None if where is None else str(where).replace(old, new)
        cause, way_out = cause.replace(old, new), way_out.replace(old, new)
        return type(self)(cause, where=place, way_out=way_out, ways_out=self.ways_out)


class UnreadableFile(EmbgeoError):
    """A file that is missing, damaged, hostile or of an unknown format."""


class AmbiguousTensor(EmbgeoError):
    """Several tensors may be the embedding matrix, or none."""


class LabelMismatch(EmbgeoError):
    """Labels or counts that do not fit the rows of the matrix."""


class RunFailed(EmbgeoError):
    """A run that cannot be finished; the other runs of its study continue."""

    HOW: ClassVar[str] = "failed"


class Diverged(RunFailed):
    """A run whose loss or weights became NaN or infinite."""

    HOW = "diverged"


class OutOfMemory(RunFailed):
    """A run that needs more memory than there is."""

    HOW = "lacked memory"


class BadOption(EmbgeoError):
    """An option with a value that is invalid or does not fit the matrix."""


@contextmanager
def writing(where: Path | str, way_out: str) -> Iterator[None]:
    """Turn an OSError inside the block into an error about writing `where`."""
    try:
        yield
    except OSError as error:
        cause = f"cannot be written: {error.strerror or error}"
        raise EmbgeoError(cause, where=where, way_out=way_out) from error


@contextmanager
def looking_at(where: Path | str, way_out: str = "") -> Iterator[None]:
    """Turn an OSError inside the block into an error about the option `where`.

    For example, a name that is too long, a loop of links or a folder without permission.
    """
    try:
        yield
    except OSError as error:
        cause = f"cannot be used: {error.strerror or error}"
        raise BadOption(cause, where=where, way_out=way_out) from error
