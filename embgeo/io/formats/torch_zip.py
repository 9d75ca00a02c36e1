"""torch checkpoints in the zip format (torch 1.6 and later), and TorchScript, without torch.

The archive has one folder: ``data.pkl`` describes the object, and each ``data/KEY`` is a storage,
uncompressed and aligned, so that tensors are views of the mapped file. A TorchScript archive has
the same layout; the tensors of its code, ``constants.pkl``, have no names and are not read.
"""

from collections.abc import Iterable

from embgeo.files import zip_members
from embgeo.files.guard import Damaged, short
from embgeo.files.maps import SWAPPED, Bytes
from embgeo.io.formats.format import Beside
from embgeo.io.formats.pickle.contents import checkpoint_of
from embgeo.io.formats.pickle.loading import load
from embgeo.io.formats.pickle.objects import Global, Leaf, Stub
from embgeo.io.formats.torch_tensors import TORCH, Storage, storage_bytes
from embgeo.io.model.checkpoint import Checkpoint

NAME = "torch checkpoint"
SCRIPT_NAME = "TorchScript archive"
RECOGNIZED = "a zip archive with data.pkl in its one folder; TorchScript by code/"
READ = "tensors are mapped where the archive stores them uncompressed; data.pkl is read"
EXTRA = ""

_PICKLE = "data.pkl"
_LONGEST_ORDER = 8


def sniff(head: bytes) -> bool:
    """Recognize any zip archive; those of numpy and Keras are tried before."""
    return head.startswith(zip_members.MAGICS)


def open_checkpoint(data: Bytes, _beside: Beside) -> Checkpoint:
    archive = zip_members.archive_in(data)
    _refuse_several(archive)
    root = find_root(archive.members)
    is_scripted = any(name.startswith(f"{root}code/") for name in archive.members)
    found = _object(archive, root)
    return checkpoint_of(found, len(data), SCRIPT_NAME if is_scripted else NAME)


def saved_tensor(data: Bytes) -> Leaf:
    """Return the tensor that ``torch.save`` wrote into a part of a file."""
    archive = zip_members.archive_in(data)
    leaf = _object(archive, find_root(archive.members))
    if not isinstance(leaf, Leaf) or leaf.problem:
        raise Damaged("a piece is not a saved tensor that can be read")
    leaf.check()
    return leaf


def _object(archive: zip_members.Archive, root: str) -> object:
    program = archive.bytes_of(f"{root}{_PICKLE}", whole=True)
    return load(program.data, TORCH, ZipStorages(archive, root).find)


def find_root(members: Iterable[str]) -> str:
    """Find the folder of ``data.pkl``, with a slash at its end."""
    roots = [
        name.removesuffix(_PICKLE)
        for name in members
        if name == _PICKLE or (name.endswith(f"/{_PICKLE}") and name.count("/") == 1)
    ]
    if len(roots) == 1:
        return roots[0]
    raise Damaged(
        "a zip archive that is neither a torch checkpoint, nor an .npz, nor a .keras file",
        "unzip it and name the file inside; torch.save the state_dict of a program of torch.export",
    )


def _refuse_several(archive: zip_members.Archive) -> None:
    """Refuse concatenated archives: the directory at the end describes only the last one."""
    is_first_listed = any(member.header == 0 for member in archive.members.values())
    if not is_first_listed and archive.data[:4].tobytes() == zip_members.MAGICS[0]:
        raise Damaged(
            "several concatenated archives, as in the .distcp files of "
            "torch.distributed.checkpoint",
            "name the folder that holds .metadata and all of its .distcp files",
        )


class ZipStorages:
    """Maps persistent ids to storages."""

    def __init__(self, archive: zip_members.Archive, root: str) -> None:
        self.archive = archive
        self.folder = f"{root}data/"
        self.swapped = SWAPPED
        if f"{root}byteorder" in archive.members:
            order = archive.start_of(f"{root}byteorder", _LONGEST_ORDER).tobytes()
            if order not in (b"little", b"big"):
                raise Damaged("the checkpoint's byte order is neither little nor big")
            self.swapped = (order == b"big") != SWAPPED

    def find(self, pid: object) -> object:
        # ("storage", class, key, device, number of elements)
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage":
            return Stub("(persistent id)", (pid,))
        _, cls, key, _, elements = pid
        if not isinstance(cls, Global) or not isinstance(key, str) or not isinstance(elements, int):
            raise Damaged("a storage has a damaged description")
        member = f"{self.folder}{key}"
        if member not in self.archive.members:
            raise Damaged(f"the storage {short(key)} is missing in the archive")
        kind = cls.name.rpartition(".")[2]
        size = storage_bytes(kind, elements)
        if size is not None and not 0 <= size <= self.archive.members[member].size:
            raise Damaged(f"the storage {short(key)} is shorter than the checkpoint says")
        return Storage(member, kind, size or 0, lambda: self.archive.bytes_of(member), self.swapped)
