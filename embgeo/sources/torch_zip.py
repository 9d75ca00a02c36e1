"""torch checkpoints in the zip format (torch 1.6 and later), without torch.

The archive has one folder; in it ``data.pkl`` describes the object and ``data/KEY`` holds one
storage each, uncompressed and aligned, so that tensors are views of the mapped file.
"""

from __future__ import annotations

from pathlib import Path

from embgeo.sources.base import Checkpoint
from embgeo.sources.guard import Damaged, reading, short
from embgeo.sources.pickle_machine import Global, Stub
from embgeo.sources.pickle_tensors import tensors_of
from embgeo.sources.pickle_tree import walk
from embgeo.sources.safe_pickle import load
from embgeo.sources.torch_tensors import TORCH, Storage, is_swapped, storage_bytes
from embgeo.sources.vocabulary import tokens_for
from embgeo.sources.zip_members import MAGICS, Archive, first_name, open_archive

NAME = "torch checkpoint"

_PICKLE = "data.pkl"


def sniff(head: bytes) -> bool:
    """Any zip archive but those of numpy."""
    return head.startswith(MAGICS) and not first_name(head).endswith(".npy")


def open_checkpoint(path: Path) -> Checkpoint:
    """The tensors of a checkpoint, a state_dict or a whole pickled module.

    Parameters
    ----------
    path : Path

    Raises
    ------
    UnreadableFile
    """
    with reading(path, NAME):
        archive = open_archive(path)
        root = _root(archive)
        program = archive.bytes_of(f"{root}{_PICKLE}", whole=True)
        storages = _Storages(archive, root)
        found = walk(load(program.data, TORCH, storages.find))
        tensors, notes = tensors_of(found.leaves, path, NAME)
        if not tensors:
            reason = f": {notes[0]}" if notes else ""
            raise Damaged(f"the checkpoint holds no tensor that can be read{reason}")
        tokens, source = tokens_for(tensors, found.vocabularies)
    return Checkpoint(path, NAME, tensors, (path,), tokens, source, notes=notes)


def _root(archive: Archive) -> str:
    """The folder of ``data.pkl`` inside the archive, with a slash at its end."""
    roots = [
        name.removesuffix(_PICKLE)
        for name in archive.members
        if name == _PICKLE or (name.endswith(f"/{_PICKLE}") and name.count("/") == 1)
    ]
    if len(roots) != 1:
        raise Damaged(
            "a zip archive that is neither a torch checkpoint nor an .npz",
            "unpack it and name the file inside",
        )
    root = roots[0]
    code = f"{root}code/"
    if f"{root}constants.pkl" in archive.members or any(
        name.startswith(code) for name in archive.members
    ):
        raise Damaged(
            "a TorchScript archive, a format that is not read yet",
            "load it with torch.jit.load and save its state_dict() with torch.save",
        )
    return root


class _Storages:
    """Finds the bytes that a persistent id stands for."""

    def __init__(self, archive: Archive, root: str) -> None:
        self.archive = archive
        self.root = root
        self.swapped = False
        if f"{root}byteorder" in archive.members:
            order = archive.bytes_of(f"{root}byteorder", whole=True).tobytes()
            if order not in (b"little", b"big"):
                raise Damaged("the checkpoint's byte order is neither little nor big")
            self.swapped = is_swapped(order.decode())
        else:
            self.swapped = is_swapped("little")

    def find(self, pid: object) -> object:
        # ("storage", class, key, device, number of elements)
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage":
            return Stub("(persistent id)", (pid,))
        _, cls, key, _, elements = pid
        if not isinstance(cls, Global) or not isinstance(key, str) or not isinstance(elements, int):
            raise Damaged("a storage has a damaged description")
        member = f"{self.root}data/{key}"
        if member not in self.archive.members:
            raise Damaged(f"the storage {short(key)} is missing in the archive")
        kind = cls.name.rpartition(".")[2]
        size = storage_bytes(kind, elements)
        if size is not None and not 0 <= size <= self.archive.members[member].size:
            raise Damaged(f"the storage {short(key)} is shorter than the checkpoint says")
        return Storage(key, kind, size or 0, self.swapped, lambda: self.archive.bytes_of(member))
