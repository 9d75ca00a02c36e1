"""Files wrapped in others: compressed, or a member of a zip or tar archive.

Only one member is ever unfolded, into a scratch file of its own; no name from an archive is used
as a path.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Protocol
from zipfile import BadZipFile

from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.io.bounded import scratch, tar_members, zip_members
from embgeo.io.bounded.compressed import CODECS, MAX_BYTES, BoundedStream, Codec, codec_of
from embgeo.io.bounded.guard import Damaged, reading, short
from embgeo.io.bounded.maps import map_file
from embgeo.io.bounded.small_files import HEAD_BYTES, read_head
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.formats.model_folder import NOT_WEIGHTS, WEIGHTS
from embgeo.io.formats.torch import tar_checkpoint, zip_checkpoint
from embgeo.io.stand_ins import rename_checkpoint, rename_error

#: Between an archive and the name of a member in it.
MEMBER_SIGN = "::"
#: What may be wrapped at most: a .tar.gz is two, a .zip with a .txt.gz inside as well.
DEEPEST = 2

#: The weights in an archive of Keras 3, which is a zip.
_KERAS_WEIGHTS = "model.weights.h5"
#: How errors about other files of a checkpoint end.
_MISSING = " is missing"
_COPY_BYTES = 4 * 2**20
_EXAMINED = 1000
_LISTED = 8


@dataclass(frozen=True, slots=True)
class Formats:
    """What is known of plain files: how to open one, and whether a head is that of one."""

    open: Callable[[Path, bytes], Checkpoint]
    knows: Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class _ArchivedFile:
    """A file inside an archive."""

    name: str
    size: int
    head: Callable[[], bytes]
    pieces: Callable[[], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class _Unfolded:
    """One layer less: the content in a scratch file, and what the layer was."""

    content: scratch.ScratchFile
    layer: str
    notes: tuple[str, ...] = ()
    is_member: bool = False


class Container(Protocol):
    """A file that holds files, of which one is read.

    Attributes
    ----------
    name : str
        In messages and in the provenance.
    """

    @property
    def name(self) -> str: ...

    def recognizes(self, path: Path, head: bytes) -> bool:
        """Whether a file that begins with `head` is such a container."""

    def unfold(self, path: Path, request: _Request) -> _Unfolded:
        """The content, or the requested member, in a scratch file."""


@dataclass(frozen=True, slots=True)
class _Request:
    """What is requested of a container.

    Attributes
    ----------
    member : str
        Name of the file in an archive; empty for the only one with tensors.
    packed : int
        Size of the outermost file, from which the budget of decompression is counted.
    formats : Formats
    """

    member: str
    packed: int
    formats: Formats


@dataclass(frozen=True, slots=True)
class _CompressedFile:
    codec: Codec

    @property
    def name(self) -> str:
        return self.codec.name

    def recognizes(self, _path: Path, head: bytes) -> bool:
        return self.codec.start.match(head) is not None

    def unfold(self, path: Path, request: _Request) -> _Unfolded:
        stream = BoundedStream(path, self.codec, request.packed)
        with reading(path, f"{self.name} file"), stream as source:
            pieces = iter(lambda: source.read(_COPY_BYTES), b"")
            content = scratch.write_scratch(pieces, "its decompressed content")
        return _Unfolded(content, self.name)


@dataclass(frozen=True, slots=True)
class _Archive:
    name: str
    is_one: Callable[[Path, bytes], bool]
    entries: Callable[[Path], list[_ArchivedFile]]

    def recognizes(self, path: Path, head: bytes) -> bool:
        return self.is_one(path, head)

    def unfold(self, path: Path, request: _Request) -> _Unfolded:
        with reading(path, f"{self.name} archive"):
            entry, notes = _choose_entry(
                self.entries(path), request.member, path, self.name, request.formats
            )
            if entry.size > MAX_BYTES:
                raise Damaged(
                    f"{short(entry.name)} is {entry.size:,} bytes long, too much to unfold"
                )
            what = f"the content of {short(entry.name)}"
            content = scratch.write_scratch(entry.pieces(), what)
        return _Unfolded(content, self.name, notes, is_member=True)


def split_member(name: str) -> tuple[str, str]:
    """The path of an archive and the member named behind it; the member is empty without one.

    >>> split_member("vectors.zip::glove/50d.txt"), split_member("model.pt")
    (('vectors.zip', 'glove/50d.txt'), ('model.pt', ''))
    """
    archive, sign, member = name.partition(MEMBER_SIGN)
    return (archive, member) if archive and sign and member else (name, "")


def open_through(path: Path, member: str, formats: Formats) -> Checkpoint:
    """Open a file, or what it holds where it is wrapped.

    The scratch file that it is unfolded into lives as long as the checkpoint's tensors.

    Parameters
    ----------
    path : Path
    member : str
        The requested file of an archive; empty where it holds only one with tensors.
    formats : Formats

    Raises
    ------
    UnreadableFile
        Damaged or hostile; wrapped too deeply; an archive with several files with tensors, or
        none.
    """
    held: scratch.ScratchFile | None = None
    layers: list[str] = []
    notes: tuple[str, ...] = ()
    inner, head = path, read_head(path)
    packed = path.stat().st_size
    try:
        while container := _container_of(inner, head):
            if len(layers) == DEEPEST:
                raise UnreadableFile(
                    f"is wrapped more than twice ({' in '.join(reversed(layers))} and more)",
                    where=path,
                    way_out="unpack it once and try again",
                )
            found = container.unfold(inner, _Request(member, packed, formats))
            if held is not None:
                held.remove()
            held = found.content
            if found.is_member:
                member = ""
            layers.insert(0, found.layer)
            notes += found.notes
            inner, head = held.path, read_head(held.path)
        if member:
            raise UnreadableFile(
                f"is no archive, it has no member {short(member)}",
                where=path,
                way_out=f"leave {MEMBER_SIGN} and what follows out",
            )
        checkpoint = formats.open(inner, head)
    except EmbgeoError as error:
        if held is None:
            raise
        held.remove()
        raise _in_words(path, error, held, layers) from error
    if held is None:
        return checkpoint
    named = rename_checkpoint(path, checkpoint, held)
    return replace(
        named,
        files=(path,),
        format=", ".join((checkpoint.format, *layers)),
        notes=(*notes, *named.notes),
    )


def _in_words(
    path: Path, error: EmbgeoError, held: scratch.ScratchFile, layers: list[str]
) -> UnreadableFile:
    """The error about the file that the user named; files next to it may be in the archive too."""
    named = rename_error(path, error, held)
    if error.cause.endswith(_MISSING) and {"zip", "tar"} & set(layers):
        way_out = "only one file of an archive is read: unpack it and name the file inside"
        return UnreadableFile(named.cause.partition(_MISSING)[0] + _MISSING, way_out=way_out)
    return named


def is_wrapped(path: Path, head: bytes) -> bool:
    """Whether the file is compressed or an archive, rather than in a format of its own."""
    return _container_of(path, head) is not None


def _container_of(path: Path, head: bytes) -> Container | None:
    if tar_checkpoint.sniff(head):
        return None
    return next((known for known in CONTAINERS if known.recognizes(path, head)), None)


def _is_tar(_path: Path, head: bytes) -> bool:
    return tar_members.is_tar(head)


def _is_plain_zip(path: Path, head: bytes) -> bool:
    """A zip archive that neither torch nor numpy wrote; damaged ones are left to torch's reader."""
    if not head.startswith(zip_members.MAGICS) or zip_members.first_name(head).endswith(".npy"):
        return False
    try:
        names = zip_members.open_archive(path).members
    except (Damaged, OSError, ValueError, NotImplementedError, BadZipFile):
        return False
    return bool(names) and not zip_checkpoint.is_of_torch(names)


def _zip_entries(path: Path) -> list[_ArchivedFile]:
    archive = zip_members.open_archive(path)
    return [
        _ArchivedFile(
            name,
            member.size,
            partial(_start_of, archive, name),
            partial(archive.pieces_of, name),
        )
        for name, member in archive.members.items()
        if not name.endswith("/")
    ]


def _start_of(archive: zip_members.Archive, name: str) -> bytes:
    return archive.start_of(name, HEAD_BYTES).tobytes()


def _tar_entries(path: Path) -> list[_ArchivedFile]:
    data = map_file(path)

    def head(member: tar_members.TarMember) -> bytes:
        return data[member.start : member.start + min(member.size, HEAD_BYTES)].tobytes()

    def pieces(member: tar_members.TarMember) -> Iterator[bytes]:
        content = data[member.start : member.start + member.size]
        for start in range(0, member.size, _COPY_BYTES):
            yield content[start : start + _COPY_BYTES].tobytes()

    return [
        _ArchivedFile(member.name, member.size, partial(head, member), partial(pieces, member))
        for member in tar_members.members(data)
    ]


def _choose_entry(
    entries: list[_ArchivedFile], member: str, path: Path, kind: str, formats: Formats
) -> tuple[_ArchivedFile, tuple[str, ...]]:
    """The member to be read, and what there is to say about the others."""
    if member:
        named = [entry for entry in entries if entry.name.removeprefix("./") == member]
        if len(named) != 1:
            raise UnreadableFile(
                f"the {kind} archive has no file {short(member)}, but {_listing(entries)}",
                where=path,
                way_out="name one of them",
            )
        return named[0], ()
    shown = [entry for entry in entries if entry.size and not _is_hidden(entry.name)]
    found = shown if len(shown) == 1 else _with_tensors(shown, formats)
    if len(found) == 1:
        others = len(shown) - 1
        note = f"{short(found[0].name)} in the {kind} archive is read"
        return found[0], (f"{note}, its {others:,} other files are not" if others else note,)
    if not found:
        raise UnreadableFile(
            f"the {kind} archive holds no file that can be read ({_listing(entries)})",
            where=path,
            way_out="check that it is the right file",
        )
    example = f"{path}{MEMBER_SIGN}{short(found[0].name)}"
    raise UnreadableFile(
        f"the {kind} archive holds several files that can be read: {_listing(found)}",
        where=path,
        way_out=f"name one, as in {example}",
    )


def _with_tensors(entries: list[_ArchivedFile], formats: Formats) -> list[_ArchivedFile]:
    """The members that hold tensors, judged by the names of weights files, then by their bytes."""
    for weights in (_KERAS_WEIGHTS, *WEIGHTS):
        named = [entry for entry in entries if PurePosixPath(entry.name).name == weights]
        if len(named) == 1 and not weights.endswith(".json"):
            return named
    candidates = [
        entry for entry in entries if not PurePosixPath(entry.name).name.startswith(NOT_WEIGHTS)
    ]
    known = []
    for entry in itertools.islice(candidates, _EXAMINED):
        head = entry.head()
        if formats.knows(head) or codec_of(head) is not None:
            known.append(entry)
    return known


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(name).parts)


def _listing(entries: Iterable[_ArchivedFile]) -> str:
    names = [short(entry.name) for entry in entries]
    shown = ", ".join(names[:_LISTED]) or "nothing"
    return f"{shown} and {len(names) - _LISTED:,} more" if len(names) > _LISTED else shown


#: Every container, in the order in which files are shown to them.
CONTAINERS: tuple[Container, ...] = (
    *map(_CompressedFile, CODECS),
    _Archive("tar", _is_tar, _tar_entries),
    _Archive("zip", _is_plain_zip, _zip_entries),
)
