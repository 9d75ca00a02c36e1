"""What a format is: a module, or an object of a plug-in, that knows one way to store tensors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from embgeo.io.bounded.guard import RIGHT_FILE, Damaged, guard_opening, reading
from embgeo.io.checkpoint import Checkpoint


class Described(Protocol):
    """What documentation and messages say of a format.

    Attributes
    ----------
    NAME : str
        In messages and in the provenance.
    RECOGNIZED : str
        How a file of it is recognized, in words.
    READ : str
        What is mapped and what is read, in words.
    EXTRA : str
        The extra of embgeo that it needs; empty for none.
    """

    @property
    def NAME(self) -> str: ...
    @property
    def RECOGNIZED(self) -> str: ...
    @property
    def READ(self) -> str: ...
    @property
    def EXTRA(self) -> str: ...

    def open_checkpoint(self, path: Path, /) -> Checkpoint:
        """The tensors of a file, seen but not read, with the labels and counts that it carries.

        Every size in the file is compared with the file before it is used, and nothing that the
        file holds is executed. Called by :func:`open_with`, which names the file in errors.

        Raises
        ------
        Damaged
            A file that is damaged, hostile or cut off, or a package that is missing.
        """


@runtime_checkable
class Format(Described, Protocol):
    """A format that is recognized by the first bytes of a file."""

    def sniff(self, head: bytes, /) -> bool:
        """Whether a file that begins with `head` (at most 4,096 bytes) is of this format."""


class NeighborFormat(Described, Protocol):
    """A format of bare numbers, recognized by the files next to it."""

    def belongs(self, path: Path, /) -> bool:
        """Whether the files next to `path` say that it is of this format."""


def open_with(known: Described, path: Path) -> Checkpoint:
    """Open a file in a format that was recognized.

    The one place where whatever a bad file causes, now or when a tensor of it is opened, becomes
    one line that names it.

    Raises
    ------
    UnreadableFile
    """
    with reading(path, known.NAME):
        checkpoint = known.open_checkpoint(path)
        if not checkpoint.tensors:
            reason = f": {checkpoint.notes[0]}" if checkpoint.notes else ""
            raise Damaged(f"it holds no tensor that can be read{reason}", RIGHT_FILE)
    guarded = (replace(t, open=guard_opening(path, known.NAME, t.open)) for t in checkpoint.tensors)
    return replace(checkpoint, tensors=tuple(guarded))
