"""Checkpoints of the first releases of torch (0.1), which are tar archives, without torch.

``storages`` and ``tensors`` hold a count and, for each entry, a pickle and its numbers; ``pickle``
is the object, which refers to both by key. Numbers are little-endian. Tensors are views of the
mapped file.
"""

from __future__ import annotations

import struct
from pathlib import Path

from embgeo.io.bounded import tar_members
from embgeo.io.bounded.guard import Damaged, short
from embgeo.io.bounded.maps import MOST_DIMENSIONS, Bytes, map_file
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.formats.torch.tensors import TORCH, Storage, TorchTensor, storage_bytes
from embgeo.io.pickle.contents import checkpoint_of
from embgeo.io.pickle.loading import Pickles, load
from embgeo.io.pickle.objects import Global
from embgeo.io.pickle.tree import MOST_LEAVES

NAME = "torch tar checkpoint"
RECOGNIZED = "a tar archive that begins with sys_info, pickle, tensors or storages"
READ = "tensors are mapped; pickles are read"
EXTRA = ""

#: Limits of instructions of the pickles of a storage or tensor, and of all parts of storages.
_MOST_IN_ENTRY = 1000
_MOST_IN_VIEWS = 1_000_000

_PARTS = ("storages", "tensors", "pickle")
#: The name of the first member, padded to 100 bytes.
_FIRST = tuple(name.encode().ljust(100, b"\0") for name in ("sys_info", *_PARTS))


def sniff(head: bytes) -> bool:
    return head.startswith(_FIRST) and tar_members.is_tar(head)


def open_checkpoint(path: Path) -> Checkpoint:
    data = map_file(path)
    parts = {m.name: data[m.start : m.start + m.size] for m in tar_members.members(data)}
    missing = next((name for name in _PARTS if name not in parts), None)
    if missing is not None:
        raise Damaged(f"the archive has no member {missing}")
    objects = _storages(_ArchivePart(parts["storages"]))
    objects |= _tensors(_ArchivePart(parts["tensors"]), objects)
    root = load(parts["pickle"].data, TORCH, lambda pid: _find_object(pid, objects))
    return checkpoint_of(root, path, NAME)


class _ArchivePart(Pickles):
    """A member of the archive: a sequence of pickles and numbers."""

    def __init__(self, content: Bytes) -> None:
        super().__init__(content.data)
        self.content = content

    def count(self) -> int:
        value = self.next(most=_MOST_IN_ENTRY)
        if not isinstance(value, int) or not 0 <= value <= MOST_LEAVES:
            raise Damaged("the number of its storages or tensors is damaged")
        return value

    def entry(self) -> tuple[object, ...]:
        value = self.next(most=_MOST_IN_ENTRY)
        if not isinstance(value, tuple) or len(value) != 3:
            raise Damaged("a storage or tensor has a damaged description")
        return value

    def take(self, size: int) -> Bytes:
        if not 0 <= size <= len(self.content) - self.at:
            raise Damaged("a storage or tensor is longer than the archive")
        piece = self.content[self.at : self.at + size]
        self.at += size
        return piece

    def numbers(self, size: int) -> tuple[int, ...]:
        return struct.unpack(f"<{size}q", self.take(8 * size).tobytes())


def _storages(part: _ArchivePart) -> dict[int, object]:
    """Storages by key: those with bytes, then parts of these."""
    made: dict[int, object] = {}
    for _ in range(part.count()):
        key, _, cls = part.entry()
        kind = cls.name.rpartition(".")[2] if isinstance(cls, Global) else ""
        item = storage_bytes(kind, 1)
        if item is None or kind == "UntypedStorage":
            raise Damaged(f"a storage is a {short(kind or '?')}, which such files cannot hold")
        raw = part.take(part.numbers(1)[0] * item)
        made[_key(key)] = _storage(str(key), kind, raw)
    views = part.next(most=_MOST_IN_VIEWS)
    if not isinstance(views, list):
        raise Damaged("the list of parts of storages is damaged")
    for view in views:
        if not isinstance(view, tuple) or len(view) != 4:
            raise Damaged("a part of a storage has a damaged description")
        key, root, first, size = (_key(value) for value in view)
        whole = made.get(root)
        item = storage_bytes(whole.kind, 1) if isinstance(whole, Storage) else None
        if not isinstance(whole, Storage) or item is None:
            raise Damaged("a part belongs to a storage that is missing")
        if first < 0 or size < 0 or (first + size) * item > whole.size:
            raise Damaged("a part of a storage reaches beyond it")
        raw = whole.load()[first * item : (first + size) * item]
        made[key] = _storage(f"{root}[{first * item}:]", whole.kind, raw)
    return made


def _storage(name: str, kind: str, raw: Bytes) -> Storage:
    return Storage(name, kind, len(raw), lambda: raw)


def _tensors(part: _ArchivePart, storages: dict[int, object]) -> dict[int, object]:
    made: dict[int, object] = {}
    for _ in range(part.count()):
        key, storage, _ = part.entry()
        dimensions = int.from_bytes(part.take(4).tobytes(), "little")
        part.take(4)  # the count was once written as eight bytes
        if dimensions > MOST_DIMENSIONS:
            raise Damaged(f"a tensor has {dimensions:,} dimensions")
        shape, strides = part.numbers(dimensions), part.numbers(dimensions)
        offset = part.numbers(1)[0]
        of = storages.get(_key(storage))
        if not isinstance(of, Storage):
            raise Damaged("a tensor belongs to a storage that is missing")
        made[_key(key)] = TorchTensor(of, of.dtype, offset, shape, strides)
    return made


def _find_object(pid: object, objects: dict[int, object]) -> object:
    """The class, storage or tensor of a persistent id."""
    if isinstance(pid, tuple) and pid:
        return pid[0]
    value = objects.get(_key(pid))
    if value is None:
        raise Damaged("the object refers to a tensor that is missing")
    return value


def _key(value: object) -> int:
    if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 24:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Damaged("a storage or tensor has a damaged key")
