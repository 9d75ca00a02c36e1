"""``source.json`` of a reduced model folder: what it was made of, byte by byte."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.companions import is_companion
from embgeo.io.bounded.guard import short
from embgeo.io.bounded.records import RecordFormat
from embgeo.io.bounded.saved import DAMAGE

#: A record of a model in thousands of shards is smaller; strangers' folders may hold such a file.
_MOST_BYTES = 2**20
_MOST_SIZE = 2**63


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A remote file: its size, and the SHA-256 that the server states (empty: none)."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class SourceTensor:
    """A tensor: bytes `start` to `stop` of the remote file."""

    name: str
    file: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class ReducedSource:
    """What a reduced model folder was made of.

    Attributes
    ----------
    source : str
        As the user wrote it, ``hf://org/name``.
    commit : str
        The Hub's, or a hash of the sizes and versions that a store states.
    read, size : int
        Bytes of tensors in the folder, and bytes of all weights there.
    whole : bool
        Whether files were fetched whole.
    files : tuple of SourceFile
        Those that hold the tensors.
    tensors : tuple of SourceTensor
    """

    source: str
    commit: str
    read: int
    size: int
    whole: bool
    files: tuple[SourceFile, ...]
    tensors: tuple[SourceTensor, ...]

    @property
    def note(self) -> str:
        """What a reader should know about numbers of this folder."""
        stated = f"from {short(self.source)}, commit {short(self.commit[:12])}"
        if self.whole:
            return stated
        return (
            f"{stated}: {bytes_text(self.read)} of {bytes_text(self.size)} were read; the SHA-256 "
            "of the files cannot be checked from a part"
        )


def _check_sizes(record: ReducedSource) -> None:
    if not 0 <= record.read <= record.size < _MOST_SIZE:
        raise ValueError("sizes that no files have")


SOURCE_RECORD = RecordFormat(
    name="embgeo.source",
    version=1,
    kind=ReducedSource,
    file="source.json",
    what="the source of a reduced model folder",
    again="fetch it again",
    check=_check_sizes,
)


def bytes_text(size: int) -> str:
    """A number of bytes for a person.

    >>> bytes_text(1_050_000_000), bytes_text(12_300)
    ('1.05 GB', '0.01 MB')
    """
    return f"{size / 1e9:,.2f} GB" if size >= 1e9 else f"{size / 1e6:,.2f} MB"


def read_source(folder: Path) -> ReducedSource | None:
    """The record of a reduced model folder; None for other folders."""
    path = folder / SOURCE_RECORD.file
    if not is_companion(path) or path.stat().st_size > _MOST_BYTES:
        return None
    try:
        # Not `load`, which would read an archive of arrays next to it, of any size.
        return SOURCE_RECORD.from_json(SOURCE_RECORD.read(path))
    except (UnreadableFile, *DAMAGE):
        return None
