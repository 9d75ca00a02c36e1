"""Files of states and plans: versioned .npz archives without pickles, read within limits.

Format history
--------------
1 : first version (embgeo 0.1).
2 : records have the names of the glossary (StatePart, MeasuringSetup).
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import UnreadableFile, writing
from embgeo.distributed.packing import Packer, Unpackable, Unpacker
from embgeo.io.bounded.guard import Damaged, reading
from embgeo.io.bounded.maps import map_file
from embgeo.io.bounded.saved import atomic_file
from embgeo.io.bounded.zip_members import MAGICS, Archive, open_archive
from embgeo.io.formats.npy import read_array, read_header

FORMAT = "embgeo.part"
FORMAT_VERSION = 2
HEADER = "header"
LARGEST_HEADER = 256 * 2**20
#: A file may refer to this many rows that it does not hold.
FEW_ROWS = 2**24
#: Far more than any matrix has: memory for statistics grows with its square.
MOST_COLUMNS = 2**20
NOT_OURS = "damaged, or not written by embgeo"

#: A type, a list of one kind, or a tuple of kinds; a union of types is a type.
Kind = Any

#: Kinds of files, with their names in messages.
KINDS = {
    "first": "the first round of a part",
    "plan": "a plan",
    "second": "the second round of a part",
}


@dataclass(frozen=True, slots=True)
class Stored:
    """A file whose header was read; its content is unpacked piece by piece.

    The file is not kept open: there may be more states than a process may have open files.
    """

    path: Path
    #: A key of `KINDS`.
    kind: str
    #: Differs between files of different content.
    identity: str
    content: Mapping[str, Any]
    size: int

    @property
    def most_rows(self) -> int:
        """Most rows that the file may describe: few, or as many as it could hold."""
        return max(FEW_ROWS, self.size)

    def check_shape(self, rows: int, columns: int) -> None:
        """Damaged if the file describes more rows or columns than a real one could."""
        if not (0 <= rows <= self.most_rows and 0 < columns <= MOST_COLUMNS):
            raise Damaged(NOT_OURS)

    def unpack(self, **kinds: Kind) -> dict[str, Any]:
        """Entries of the content by name, each checked against its kind.

        The kind ``[Part]`` is a list of parts, ``[(Part, int)]`` a list of pairs.
        """
        with reading(self.path, "state"):
            archive = open_archive(self.path)
            unpacker = Unpacker(lambda name: read_member(archive, name), self.most_rows)
            try:
                found = {name: unpacker.unpack(self.content[name]) for name in kinds}
            except (Unpackable, LookupError) as error:
                raise Damaged(f"{NOT_OURS} ({error})") from error
            if not all(is_of(found[name], kind) for name, kind in kinds.items()):
                raise Damaged(NOT_OURS)
            return found


def is_of(value: Any, kind: Kind) -> bool:
    """Whether a value is of a kind of :meth:`Stored.unpack`."""
    if isinstance(kind, list):
        return isinstance(value, list) and all(is_of(item, kind[0]) for item in value)
    if isinstance(kind, tuple):
        return (
            isinstance(value, tuple)
            and len(value) == len(kind)
            and all(is_of(item, own) for item, own in zip(value, kind, strict=True))
        )
    return isinstance(value, kind)


def read_member(archive: Archive, name: str) -> npt.NDArray[Any]:
    """A copy of an array of the archive, after its checksum was verified."""
    data = archive.bytes_of(f"{name}.npy")
    if zlib.crc32(data.data) != archive.members[f"{name}.npy"].crc:
        raise Damaged(f"{name} does not match its checksum")
    return read_array(data, read_header(data, len(data))).copy(order="K")


def write(path: Path, kind: str, content: Mapping[str, Any]) -> None:
    """Write a file whole or not at all; equal content gives equal bytes."""
    packer = Packer()
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "content": {name: packer.pack(value) for name, value in content.items()},
    }
    text = json.dumps(header, ensure_ascii=True, allow_nan=False).encode()
    arrays = {HEADER: np.frombuffer(text, dtype=np.uint8), **packer.arrays}
    with (
        writing(path, "choose another file"),
        atomic_file(path) as temporary,
        temporary.open("wb") as stream,
    ):
        np.savez(stream, allow_pickle=False, **arrays)


def read(path: Path, kinds: Iterable[str] = KINDS) -> Stored:
    """Open a file of one of these kinds; arrays are read when they are unpacked."""
    expected = tuple(kinds)
    with reading(path, "state"):
        archive, header = _open(path, expected)
        if header.get("format_version") != FORMAT_VERSION:
            raise Damaged(
                f"format version {header.get('format_version')!r:.20}, this embgeo reads "
                f"{FORMAT_VERSION}",
                "make the states of all parts with one version of embgeo",
            )
        kind, content = header.get("kind"), header.get("content")
        if kind not in KINDS or not isinstance(content, dict):
            raise Damaged(NOT_OURS)
        if kind not in expected:
            names = " or ".join(KINDS[k] for k in expected)
            raise Damaged(f"holds {KINDS[kind]}, not {names}", _way_out(expected))
    return Stored(path, kind, _identity(archive), content, len(archive.data))


def check_replaceable(path: Path) -> None:
    """Refuse a file that is not a state or plan of any version."""
    with reading(path, "state"):
        _open(path, tuple(KINDS))


def _open(path: Path, expected: tuple[str, ...]) -> tuple[Archive, dict[str, Any]]:
    """The archive and its header; Damaged if embgeo did not write it."""
    refused = Damaged("not a state or plan of embgeo", _way_out(expected))
    if map_file(path)[:4].tobytes() not in MAGICS:
        raise refused
    archive = open_archive(path)
    if archive.members.get(f"{HEADER}.npy") is None:
        raise refused
    if archive.members[f"{HEADER}.npy"].size > LARGEST_HEADER:
        raise Damaged("its header is implausibly long")
    header = json.loads(read_member(archive, HEADER).tobytes())
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise refused
    return archive, header


def _way_out(kinds: tuple[str, ...]) -> str:
    if "plan" in kinds and len(kinds) == 1:
        return "make one with: embgeo merge s*.npz --plan plan.npz"
    return "make one with: embgeo analyze PART --save-state FILE"


def _identity(archive: Archive) -> str:
    """A hash of names, sizes and checksums, without reading gigabytes again."""
    digest = hashlib.sha256()
    for name, member in sorted(archive.members.items()):
        digest.update(f"{name}\0{member.size}\0{member.crc}\n".encode())
    return digest.hexdigest()


@contextmanager
def consistent(path: Path) -> Iterator[None]:
    """Refuse a file whose content contradicts itself when it is used inside the block.

    Checksums detect accidents when arrays are read; this is for hostile files.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UnreadableFile(
            f"its content contradicts itself ({type(error).__name__}: {error})",
            where=path,
            way_out="make the states of all parts, and their plan, again",
        ) from error


def refuse_state(path: Path | str, cause: str) -> UnreadableFile:
    """The error for a state that does not fit the others."""
    return UnreadableFile(cause, where=path, way_out="make the states of all parts alike")
