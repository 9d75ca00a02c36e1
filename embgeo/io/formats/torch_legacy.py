"""torch checkpoints from before torch 1.6, without torch.

The file is a sequence of pickles: a magic number, the version of the protocol, a description of the
machine, the object, and the keys of its storages. The storages follow in the order of the keys,
each as the number of its elements (int64) and its bytes. Tensors are views of the mapped file.

Numbers are little-endian whatever the description of the machine says: torch swaps them when it
writes on a big-endian machine (``THPStorage_writeFileRaw``) and ignores the description when it
reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from embgeo.files.guard import CAUSED_BY_BYTES, Damaged, short
from embgeo.files.maps import Bytes, Ranged
from embgeo.io.formats.format import Beside
from embgeo.io.formats.pickle.contents import checkpoint_of
from embgeo.io.formats.pickle.loading import Pickles
from embgeo.io.formats.pickle.machine import Machine
from embgeo.io.formats.pickle.objects import Global, Stub
from embgeo.io.formats.torch_tensors import TORCH, Storage, storage_bytes
from embgeo.io.model.checkpoint import Checkpoint

NAME = "legacy torch checkpoint"
RECOGNIZED = "begins with a pickle of torch's magic number"
READ = "tensors are mapped; pickles are read"
EXTRA = ""

#: The first pickle, an integer of ten bytes; from protocol 4 on a frame length precedes it.
_NUMBER = b"\x8a\x0a" + 0x1950A86A20F9469CFC6C.to_bytes(10, "little") + b"."
_MAGIC = re.compile(rb"\x80.(\x95.{8})?" + re.escape(_NUMBER), re.DOTALL)
_PROTOCOL = 1001

#: Bytes of a file that lies elsewhere in which its pickles are looked for.
_FIRST_BYTES = 2**18
#: Memory of a storage that is loaded from bytes.
_LOADED_COST = 4000
#: Before each storage: the number of its elements.
COUNT_BYTES = 8
_LONGEST_KEY = 200

#: Limits of instructions of single values and of the list of keys.
_MOST_SMALL = 1000
_MOST_IN_KEYS = 1_000_000


def sniff(head: bytes) -> bool:
    return _MAGIC.match(head) is not None


def open_checkpoint(data: Bytes, _beside: Beside) -> Checkpoint:
    storages, root = read_object(data)
    checkpoint = checkpoint_of(root, len(data), NAME)
    if not storages.rest:
        return checkpoint
    note = f"{storages.rest:,} bytes after the last storage were not read"
    return replace(checkpoint, notes=(*checkpoint.notes, note))


def read_object(data: Bytes) -> tuple[LegacyStorages, object]:
    """Read the pickled object and its located storages.

    The pickles at the beginning do not say how long they are: of bytes that lie elsewhere, ever
    more are fetched until they hold all of them.
    """
    size = _FIRST_BYTES if isinstance(data, Ranged) else len(data)
    while size < len(data):
        try:
            return _read_pickles(data, size)
        except (Damaged, *CAUSED_BY_BYTES):
            size *= 8
    return _read_pickles(data, len(data))


def _read_pickles(data: Bytes, size: int) -> tuple[LegacyStorages, object]:
    """Read the pickles in the first `size` bytes."""
    pickles = Pickles(data[:size].data)
    pickles.next(most=_MOST_SMALL)
    version = pickles.next(most=_MOST_SMALL)
    if version != _PROTOCOL:
        said = short(str(version)) if isinstance(version, int) else "no number"
        raise Damaged(f"its protocol version is {said}, not {_PROTOCOL}")
    pickles.next(most=_MOST_SMALL)  # the description of the machine
    storages = LegacyStorages(data)
    root = pickles.next(TORCH, storages.find)
    storages.locate(pickles.next(most=_MOST_IN_KEYS), pickles.at)
    return storages, root


class StorageLoader:
    """Storages that ``pickle.dump`` writes: each in bytes that are a checkpoint of its own."""

    def __init__(self) -> None:
        # An object of the pickle may be used again and again; it lives on here, with its identity.
        self._found: dict[int, tuple[object, object]] = {}

    def __call__(self, machine: Machine, args: tuple[object, ...]) -> object:
        raw = args[0] if len(args) == 1 else None
        if not isinstance(raw, (bytes, memoryview)):
            return Stub("torch.storage._load_from_bytes", args)
        if id(raw) not in self._found:
            machine.charge(_LOADED_COST)
            data = np.frombuffer(raw, dtype=np.uint8)
            _, root = read_object(data)
            if isinstance(root, Storage):
                root = replace(root, key=f"{root.key} at {machine.at}")
            self._found[id(raw)] = raw, root
        return self._found[id(raw)][1]


@dataclass(slots=True)
class _StoragePlace:
    """The size of a storage by the pickled object, and its offset in the file."""

    item: int
    promised: int
    start: int = -1


class LegacyStorages:
    """Storages by key: named while the object is loaded, located when the keys are known."""

    def __init__(self, data: Bytes) -> None:
        self.data, self.size = data, len(data)
        self.places: dict[str, _StoragePlace] = {}
        self.rest = 0

    def find(self, pid: object) -> object:
        if isinstance(pid, tuple) and len(pid) == 4 and pid[0] == "module":
            return pid[1]  # a class, with the source of its module
        # ("storage", class, key, device, number of elements, None or a part of the storage)
        if not isinstance(pid, tuple) or len(pid) != 6 or pid[0] != "storage":
            return Stub("(persistent id)", (pid,))
        cls, key, elements = pid[1], _key(pid[2]), _size(pid[4])
        if not isinstance(cls, Global):
            raise Damaged("a storage has a damaged description")
        kind = cls.name.rpartition(".")[2]
        item = storage_bytes(kind, 1)
        if item is None:
            raise Damaged(f"a storage is a {short(kind)}, which is not known")
        place = self.places.setdefault(key, _StoragePlace(item, 0))
        place.promised = max(place.promised, elements * item)
        first, size, name = 0, elements, key
        if pid[5] is not None:
            first, size = _view(pid[5], elements)
            name = f"{key}[{first * item}:]"
        start, stop = first * item, (first + size) * item
        return Storage(name, kind, stop - start, lambda: self.bytes_of(key)[start:stop])

    def locate(self, keys: object, at: int) -> None:
        """Locate the storages, which begin at byte `at` in the order of `keys`."""
        if not isinstance(keys, list):
            raise Damaged("the list of storages is damaged")
        for entry in keys:
            key = _key(entry)
            place = self.places.get(key)
            if place is None:
                raise Damaged(f"the storage {short(key)} is listed, but no tensor uses it")
            if place.start >= 0:
                raise Damaged(f"the storage {short(key)} is listed twice")
            start = at + COUNT_BYTES
            if start > self.size:
                raise Damaged(f"the file ends before the storage {short(key)}")
            elements = int.from_bytes(self.data[at:start].tobytes(), "little", signed=True)
            at = start + elements * place.item
            if elements < 0 or at > self.size:
                raise Damaged(
                    f"the storage {short(key)} promises {elements:,} elements, more than the "
                    f"{self.size - start:,} bytes that are left hold"
                )
            if elements * place.item < place.promised:
                raise Damaged(f"the storage {short(key)} is shorter than its tensors say")
            place.start = start
        missing = next((key for key, place in self.places.items() if place.start < 0), None)
        if missing is not None:
            raise Damaged(f"the storage {short(missing)} is missing in the file")
        self.rest = self.size - at

    def bytes_of(self, key: str) -> Bytes:
        place = self.places[key]
        return self.data[place.start : place.start + place.promised]


def _key(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and 0 < len(value) <= _LONGEST_KEY:
        return value
    raise Damaged("a storage has a damaged key")


def _size(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Damaged("a storage has a damaged size")
    return value


def _view(metadata: object, elements: int) -> tuple[int, int]:
    """Return the first element and the length of a storage that is a part of another one."""
    # (key of the part, first element, number of elements)
    if not isinstance(metadata, tuple) or len(metadata) != 3:
        raise Damaged("a view of a storage has a damaged description")
    first, size = _size(metadata[1]), _size(metadata[2])
    if first + size > elements:
        raise Damaged("a view of a storage reaches beyond it")
    return first, size
