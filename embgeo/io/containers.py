"""Compressed files, and zip and tar archives of which one member is read.

The content is unpacked into a scratch file; no name from an archive becomes a path.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile

from embgeo.core.errors import WayOut
from embgeo.io.bounded import tar_members, zip_members
from embgeo.io.bounded.compressed import MAX_BYTES, BoundedStream, Codec, codec_of
from embgeo.io.bounded.guard import RIGHT_FILE, Damaged, list_short, reading, refuse, short
from embgeo.io.bounded.maps import Bytes, map_file
from embgeo.io.bounded.scratch import ScratchFile, write_scratch
from embgeo.io.bounded.small_files import HEAD_BYTES
from embgeo.io.foreign import is_torch_tar
from embgeo.io.formats import find_format
from embgeo.io.mapped import torch_zip
from embgeo.io.model.folder import NOT_WEIGHTS, WEIGHTS

#: Separates the path of an archive from the name of a member.
MEMBER_SIGN = "::"

#: Member with the weights in an archive of Keras 3.
_KERAS_WEIGHTS = "model.weights.h5"
_COPY_BYTES = 4 * 2**20
_EXAMINED = 1000
_LISTED = 8


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What was in a container."""

    content: ScratchFile
    head: bytes
    #: The kinds of containers around it, the innermost one first.
    layers: tuple[str, ...]
    #: Whether it is one file of an archive.
    is_member: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _ArchivedFile:
    """A file inside an archive."""

    name: str
    size: int
    head: Callable[[], Bytes]
    pieces: Callable[[], Iterator[bytes]]


def split_member(name: str) -> tuple[str, str]:
    """Split the path of an archive from the member named behind it, if there is one.

    >>> split_member("vectors.zip::glove/50d.txt"), split_member("model.pt")
    (('vectors.zip', 'glove/50d.txt'), ('model.pt', ''))
    """
    archive, sign, member = name.partition(MEMBER_SIGN)
    return (archive, member) if archive and sign and member else (name, "")


def is_container(path: Path, head: bytes) -> bool:
    return codec_of(head) is not None or _kind_of_archive(path, head) != ""


def unpack(path: Path, head: bytes, member: str) -> Unpacked | None:
    """Return the content of a compressed file, or one file of an archive, which may be compressed.

    Returns None for other files. Without the name of a `member` it is the only one with tensors.
    """
    codec, kind = codec_of(head), _kind_of_archive(path, head)
    if codec is not None:
        found = _decompress(path, codec)
        if tar_members.is_tar(found.head) and not is_torch_tar(found.head):
            whole = found
            try:
                found = _extract(path, "tar", partial(_tar_entries, whole.content.path), member)
            finally:
                whole.content.remove()
            found = replace(found, layers=("tar", codec.name))
    elif kind:
        list_entries = partial(_tar_entries if kind == "tar" else _zip_entries, path)
        found = _extract(path, kind, list_entries, member)
    else:
        return None
    if is_container(found.content.path, found.head):
        found.content.remove()
        layers = " in ".join(found.layers)
        raise refuse(
            path,
            f"holds a compressed file or archive inside ({layers}), which is not read",
            "unpack it and name the file inside",
        )
    return found


def _decompress(path: Path, codec: Codec) -> Unpacked:
    with reading(path, f"{codec.name} file"), BoundedStream(path, codec) as source:
        head = source.read(HEAD_BYTES)
        if not head:
            raise Damaged("the file is empty", "write or download it again")
        pieces = itertools.chain([head], iter(lambda: source.read(_COPY_BYTES), b""))
        return Unpacked(write_scratch(pieces, "its decompressed content"), head, (codec.name,))


def _extract(
    path: Path, kind: str, list_entries: Callable[[], list[_ArchivedFile]], member: str
) -> Unpacked:
    with reading(path, f"{kind} archive"):
        entry, notes = _choose_entry(list_entries(), member, path, kind)
        if entry.size > MAX_BYTES:
            raise Damaged(f"{short(entry.name)} is {entry.size:,} bytes long, too much to unpack")
        if not entry.size:
            raise Damaged(f"{short(entry.name)} is empty", RIGHT_FILE)
        content = write_scratch(entry.pieces(), f"the content of {short(entry.name)}")
        return Unpacked(content, entry.head().tobytes(), (kind,), True, notes)


def _kind_of_archive(path: Path, head: bytes) -> str:
    """Get ``"tar"`` or ``"zip"``, or empty for other files and the archives of torch and numpy."""
    if tar_members.is_tar(head) and not is_torch_tar(head):
        return "tar"
    return "zip" if _is_plain_zip(path, head) else ""


def _is_plain_zip(path: Path, head: bytes) -> bool:
    """Tell whether a zip archive is neither torch's nor numpy's.

    Torch's reader gets damaged ones.
    """
    if not head.startswith(zip_members.MAGICS) or zip_members.first_name(head).endswith(".npy"):
        return False
    try:
        names = zip_members.open_archive(path).members
    except (Damaged, OSError, ValueError, NotImplementedError, BadZipFile):
        return False
    return bool(names) and not torch_zip.is_of_torch(names)


def _zip_entries(path: Path) -> list[_ArchivedFile]:
    archive = zip_members.open_archive(path)
    return [
        _ArchivedFile(
            name,
            member.size,
            partial(archive.start_of, name, HEAD_BYTES),
            partial(archive.pieces_of, name),
        )
        for name, member in archive.members.items()
        if not name.endswith("/")
    ]


def _tar_entries(path: Path) -> list[_ArchivedFile]:
    data = map_file(path)

    # A member may be as short as its header: nothing is made for one that is not read.
    def head(member: tar_members.TarMember) -> Bytes:
        return data[member.start : member.start + min(member.size, HEAD_BYTES)]

    def pieces(member: tar_members.TarMember) -> Iterator[bytes]:
        content = data[member.start : member.start + member.size]
        for start in range(0, member.size, _COPY_BYTES):
            yield content[start : start + _COPY_BYTES].tobytes()

    return [
        _ArchivedFile(member.name, member.size, partial(head, member), partial(pieces, member))
        for member in tar_members.members(data)
    ]


def _choose_entry(
    entries: list[_ArchivedFile], member: str, path: Path, kind: str
) -> tuple[_ArchivedFile, tuple[str, ...]]:
    """Choose the member to read; returns it with notes."""
    if member:
        named = [entry for entry in entries if entry.name.removeprefix("./") == member]
        if len(named) != 1:
            raise Damaged(
                f"the {kind} archive has no file {short(member)}, but {_listing(entries)}",
                "name one of them",
                _ways_out(path, _with_tensors(entries)),
            )
        return named[0], ()
    shown = [entry for entry in entries if entry.size and not _is_hidden(entry.name)]
    found = shown if len(shown) == 1 else _with_tensors(shown)
    if len(found) == 1:
        others = len(shown) - 1
        note = f"{short(found[0].name)} in the {kind} archive is read"
        return found[0], (f"{note}, its {others:,} other files are not" if others else note,)
    if not found:
        raise Damaged(
            f"the {kind} archive holds no file that can be read ({_listing(entries)})", RIGHT_FILE
        )
    example = f"{path}{MEMBER_SIGN}{short(found[0].name)}"
    raise Damaged(
        f"the {kind} archive holds several files that can be read: {_listing(found)}",
        f"name one, as in {example}",
        _ways_out(path, found),
    )


def _with_tensors(entries: list[_ArchivedFile]) -> list[_ArchivedFile]:
    """Return members with tensors, by the names of weights files, else by their first bytes."""
    for weights in (_KERAS_WEIGHTS, *WEIGHTS):
        named = [entry for entry in entries if PurePosixPath(entry.name).name == weights]
        if len(named) == 1 and not weights.endswith(".json"):
            return named
    candidates = [
        entry for entry in entries if not PurePosixPath(entry.name).name.startswith(NOT_WEIGHTS)
    ]
    known = []
    for entry in itertools.islice(candidates, _EXAMINED):
        head = entry.head().tobytes()
        if find_format(head) is not None:
            known.append(entry)
    return known


def _ways_out(path: Path, entries: list[_ArchivedFile]) -> list[WayOut]:
    return [WayOut(f"{path}{MEMBER_SIGN}{entry.name}") for entry in entries]


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(name).parts)


def _listing(entries: list[_ArchivedFile]) -> str:
    return list_short([entry.name for entry in entries], _LISTED) or "nothing"
