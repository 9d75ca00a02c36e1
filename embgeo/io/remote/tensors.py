"""Tensors of a remote file and where their bytes lie; reads headers only."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from embgeo.io.bounded.guard import Damaged, plain, refuse, short
from embgeo.io.bounded.maps import Array, Bytes, count, number_type
from embgeo.io.bounded.zip_members import (
    LOCAL_HEADER_BYTES,
    MAGICS,
    Archive,
    DirectoryFile,
    ZipMember,
    first_start,
)
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.formats import FORMATS, safetensors
from embgeo.io.formats.gguf import PLAIN
from embgeo.io.formats.gguf_header import MAGIC, TYPES, GGUFHeader, read_header
from embgeo.io.formats.torch import legacy_checkpoint
from embgeo.io.formats.torch.legacy_checkpoint import COUNT_BYTES
from embgeo.io.formats.torch.tensors import TORCH, TorchTensor
from embgeo.io.formats.torch.zip_checkpoint import ZipStorages, find_root
from embgeo.io.pickle.loading import load
from embgeo.io.pickle.tree import walk
from embgeo.io.remote.ranges import RemoteFolder, read_range

#: First request for a header; the rest of a longer one follows.
FIRST_BYTES = 16 * 2**10
#: First request for a zip archive, whose directory is at its end.
_LAST_BYTES = 64 * 2**10
#: Further requests for headers that do not state their length: those of GGUF, which hold a
#: vocabulary, and the pickles of old torch checkpoints.
_NEXT_BYTES = 512 * 2**10
_LONGEST_HEADER = 128 * 2**20
_LONGEST_PICKLE = 64 * 2**20
Header = TypeVar("Header")
#: Start of a storage, position of its header, and the elements that the header must state.
_Place = tuple[int, int, int]
WHOLE = "fetch all of it: embgeo fetch NAME --whole -o FOLDER"


@dataclass(frozen=True, slots=True)
class RemoteTensor:
    """A tensor in bytes `start` to `stop` of a file, or of a member of an archive."""

    name: str
    shape: tuple[int, ...]
    #: numpy's name; for a quantized tensor the type of its decoded numbers.
    dtype: str
    file: str
    start: int
    stop: int
    #: Position of the member's or storage's own header; see :func:`place_tensor`.
    header: int | None = None
    #: Elements that the header must state, in a torch checkpoint from before 1.6.
    elements: int = 0
    #: False if the bytes are compressed or not contiguous: then they cannot be fetched.
    in_one_piece: bool = True
    #: An earlier tensor over the same bytes.
    alias_of: str = ""


def as_checkpoint(folder: RemoteFolder, found: Iterable[RemoteTensor]) -> Checkpoint:
    """A checkpoint whose tensors can be chosen, but not opened."""
    tensors = (Tensor(plain(t.name), t.shape, t.dtype, _not_here, plain(t.alias_of)) for t in found)
    path = Path(folder.name.partition("://")[2])
    return Checkpoint(path, "headers of a remote model", tuple(tensors), ())


def _not_here() -> Array:
    raise refuse("the tensor", "is not on this machine", WHOLE)


def list_tensors(folder: RemoteFolder, file: str) -> tuple[RemoteTensor, ...]:
    """List the tensors of a safetensors file, a torch checkpoint or a GGUF file."""
    head = read_range(folder, file, 0, min(FIRST_BYTES, folder.files[file].size))
    if head.startswith(MAGIC):
        return _list_gguf(file, read_gguf_header(folder, file, head)[1])
    if head.startswith(MAGICS):
        return _list_torch(folder, file)
    if legacy_checkpoint.sniff(head):
        return _list_legacy(folder, file, head)
    if safetensors.sniff(head):
        return _list_safetensors(folder, file, head)
    known = next((f"the format {one.NAME}, which" for one in FORMATS if one.sniff(head)), "")
    what = f"of {known or 'a format that'} is not read in parts"
    raise Damaged(f"{short(file)} ({folder.files[file].size / 1e6:,.1f} MB) is {what}", WHOLE)


def _list_safetensors(folder: RemoteFolder, file: str, head: bytes) -> tuple[RemoteTensor, ...]:
    size = folder.files[file].size
    stop = safetensors.LENGTH_BYTES + int.from_bytes(head[: safetensors.LENGTH_BYTES], "little")
    if len(head) < stop <= min(size, safetensors.LONGEST_HEADER):
        head += read_range(folder, file, len(head), stop)
    start, entries = safetensors.read_entries(_bytes(head), Path(file), size)
    found = [
        RemoteTensor(e.name, e.shape, kind, file, start + e.start, start + e.end)
        for e in entries
        if (kind := safetensors.DTYPES.get(e.dtype))
    ]
    for one in found:
        _check_size(one)
    return tuple(found)


def _check_size(one: RemoteTensor) -> None:
    if count(one.shape) * number_type(one.dtype).itemsize != one.stop - one.start:
        raise Damaged(f"{short(one.name)} has other than the bytes that its shape asks for")


def read_gguf_header(
    folder: RemoteFolder, file: str, head: bytes = b""
) -> tuple[bytes, GGUFHeader]:
    """Read the header of a GGUF file: its bytes and their content."""
    return _read_further(folder, file, head, read_header)


def _read_further(
    folder: RemoteFolder, file: str, head: bytes, read: Callable[[Bytes, int], Header]
) -> tuple[bytes, Header]:
    """Read a header that does not state its length: its bytes and their content."""
    size = folder.files[file].size
    while True:
        try:
            if head:
                return head, read(_bytes(head), size)
        except Damaged:
            if len(head) == size or len(head) >= _LONGEST_HEADER:
                raise
        # A long header is parsed few times, and little beyond it is fetched.
        more = max(_NEXT_BYTES, len(head) // 8)
        head += read_range(folder, file, len(head), min(size, len(head) + more))


def _list_gguf(file: str, header: GGUFHeader) -> tuple[RemoteTensor, ...]:
    if header.big_endian:
        raise Damaged(f"{short(file)} is of big-endian byte order", WHOLE)
    dtypes = [(info, PLAIN.get(TYPES[info.type][0], "float32")) for info in header.tensors]
    return tuple(
        RemoteTensor(t.name, t.shape, dtype, file, t.start, t.end)
        for t, dtype in dtypes
        if not dtype.startswith("int")
    )


def _list_torch(folder: RemoteFolder, file: str) -> tuple[RemoteTensor, ...]:
    """List tensors by the directory at the archive's end and the pickle that describes them."""
    with zipfile.ZipFile(_directory_of(folder, file)) as opened:
        infos = {info.filename: info for info in opened.infolist()}
    members = {
        name: ZipMember(
            name,
            info.header_offset,
            info.compress_size,
            info.file_size,
            info.compress_type != zipfile.ZIP_STORED,
            info.CRC,
        )
        for name, info in infos.items()
    }
    root = find_root(members)
    order = members.pop(f"{root}byteorder", None)
    if order is not None and _read_member(folder, file, order) != b"little":
        raise Damaged(f"{short(file)} is not of little-endian byte order", WHOLE)
    storages = ZipStorages(Archive(_bytes(b""), members), root, "data")
    pickle = _read_member(folder, file, members[f"{root}data.pkl"])

    def place(member: str) -> _Place | None:
        known = members[member]
        return None if known.compressed else (0, known.start, 0)

    return _list_leaves(file, load(memoryview(pickle), TORCH, storages.find), place)


def _list_legacy(folder: RemoteFolder, file: str, head: bytes) -> tuple[RemoteTensor, ...]:
    """List tensors by the pickles at the start of a torch checkpoint from before torch 1.6."""
    _, (storages, root) = _read_further(folder, file, head, legacy_checkpoint.read_object)

    def place(key: str) -> _Place | None:
        known = storages.places.get(key)  # none for a part of a storage
        if known is None:
            return None
        return known.start, known.start - COUNT_BYTES, known.promised // known.item

    return _list_leaves(file, root, place)


def _list_leaves(
    file: str, root: object, place: Callable[[str], _Place | None]
) -> tuple[RemoteTensor, ...]:
    """The tensors of an unpickled checkpoint; `place` finds the start and header of a storage."""
    found = []
    names: dict[object, str] = {}
    for name, leaf in walk(root).leaves:
        if leaf.unread or not isinstance(leaf, TorchTensor):
            continue
        leaf.check()
        key, dtype, offset, shape, strides = leaf.key
        first = names.setdefault(leaf.key, name)
        start, header, elements = place(key) or (0, None, 0)
        start += offset * number_type(dtype).itemsize
        stop = start + count(shape) * number_type(dtype).itemsize
        whole = header is not None and strides == _contiguous(shape)
        alias = "" if first == name else first
        found.append(
            RemoteTensor(name, shape, dtype, file, start, stop, header, elements, whole, alias)
        )
    return tuple(found)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a contiguous array, in elements."""
    return tuple(count(shape[axis + 1 :]) for axis in range(len(shape)))


def place_tensor(folder: RemoteFolder, one: RemoteTensor) -> RemoteTensor:
    """Check the header in front of a tensor, and count its bytes from the start of the file."""
    if not one.in_one_piece:
        raise Damaged(f"the bytes of {short(one.name)} do not lie in one piece", WHOLE)
    if one.header is None:
        return one
    if one.elements:
        stated = read_range(folder, one.file, one.header, one.header + COUNT_BYTES)
        if int.from_bytes(stated, "little") != one.elements:
            raise Damaged(f"{short(one.name)} does not lie where the file says", WHOLE)
        return replace(one, header=None)
    start = _member_start(folder, one.file, one.header)
    return replace(one, start=start + one.start, stop=start + one.stop, header=None)


def _member_start(folder: RemoteFolder, file: str, header: int) -> int:
    """Start of the bytes of an archive's member whose own header lies at `header`."""
    head = read_range(folder, file, header, header + LOCAL_HEADER_BYTES)
    start = first_start(_bytes(head))
    if start < 0:
        raise Damaged(f"a member of {short(file)} does not start where the directory says")
    return header + start


def _read_member(folder: RemoteFolder, file: str, member: ZipMember) -> bytes:
    if member.compressed or member.size != member.stored or member.size > _LONGEST_PICKLE:
        raise Damaged(f"{short(member.name)} is compressed, or implausibly long", WHOLE)
    start = _member_start(folder, file, member.start)
    data = read_range(folder, file, start, start + member.size)
    if zlib.crc32(data) != member.crc:
        raise Damaged(f"{short(member.name)} does not match its checksum")
    return data


def _directory_of(folder: RemoteFolder, file: str) -> DirectoryFile:
    """A remote archive as :mod:`zipfile` reads it; its last bytes are fetched once."""
    size = folder.files[file].size
    tail_at = max(0, size - _LAST_BYTES)
    tail = read_range(folder, file, tail_at, size)

    def read(start: int, stop: int) -> bytes:
        if start >= tail_at:
            return tail[start - tail_at : stop - tail_at]
        return read_range(folder, file, start, stop)

    return DirectoryFile(size, read)


def _bytes(data: bytes) -> Bytes:
    return np.frombuffer(data, dtype=np.uint8)
