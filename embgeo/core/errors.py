"""Errors that a user can cause; each names the cause and the way out."""

from __future__ import annotations

from pathlib import Path


class EmbgeoError(Exception):
    """Something a user can mend: one line that says what, where and what to do.

    The command line prints the message and ends with exit code 2.

    Parameters
    ----------
    cause : str
        What is wrong.
    where : Path or str, optional
        The file (or option) it is wrong in; put in front of the message.
    way_out : str, optional
        What to do about it; put behind the message.
    """

    def __init__(self, cause: str, *, where: Path | str | None = None, way_out: str = "") -> None:
        self.cause = cause
        self.where = None if where is None else str(where)
        self.way_out = way_out
        parts = [f"{self.where}: {cause}" if self.where else cause, way_out]
        super().__init__("; ".join(" ".join(part.split()) for part in parts if part))


class UnreadableFile(EmbgeoError):
    """A file that is missing, damaged, hostile or of a format that is not read."""


class AmbiguousTensor(EmbgeoError):
    """Several tensors could be the embedding matrix, or none could."""


class LabelMismatch(EmbgeoError):
    """Token labels or counts that do not line up with the rows of the matrix."""


class Diverged(EmbgeoError):
    """A training whose loss or weights are no numbers any more; other runs may go on."""


class BadOption(EmbgeoError):
    """An option with a value that makes no sense for this matrix."""
