"""The parsers that most files go through, on bytes in memory: thousands of mutants a second.

`fuzz_coverage.py` uses these in place of files where a format has one.
"""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

from embgeo.io.bounded.guard import Damaged, reading
from embgeo.io.bounded.zip_members import archive_in
from embgeo.io.mapped import gguf, npy, pickled, safetensors
from tests.support.binary_files import archive_of, checkpoint, tensor_program
from tests.support.fuzz_seeds import RAW, SEEDS

#: Bytes of a tensor, or of a member of an archive, that are read.
MOST_READ = 2**20
PATH = Path("mutant")


@dataclass(frozen=True)
class Parser:
    """What reads a mutant, and sound inputs to begin with.

    Attributes
    ----------
    read : callable
        Raises UnreadableFile for bytes that it refuses.
    sound : callable
        Gives the sound inputs.
    """

    read: Callable[[bytes], None]
    sound: Callable[[], list[bytes]]


def open_format(module: ModuleType) -> Callable[[bytes], None]:
    """Open and read everything, as for a file that holds these bytes."""

    def read(data: bytes) -> None:
        content = np.frombuffer(data, dtype=np.uint8)
        with reading(PATH, module.NAME):
            for tensor in module.open_checkpoint(content, None).tensors:
                if tensor.nbytes <= MOST_READ:
                    array = tensor.open()
                    assert array.shape == tensor.shape
                    array.tobytes()

    return read


def open_zip(data: bytes) -> None:
    with reading(PATH, "zip archive"):
        archive = archive_in(np.frombuffer(data, dtype=np.uint8))
        for name, member in archive.members.items():
            assert 0 <= member.start <= member.start + member.stored <= len(data)
            if member.size <= MOST_READ:
                try:
                    content = archive.bytes_of(name, whole=True)
                except Damaged:  # the next member may be sound
                    continue
                assert len(content) == member.size


def sound_archives() -> list[bytes]:
    members = {"a/b": RAW, "empty": b"", "words.txt": b"the cat\n" * 40}
    kinds = [archive_of(members, how) for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)]
    return [*kinds, checkpoint(tensor_program(), RAW[:24])]


def sound_pickles() -> list[bytes]:
    array = np.arange(12, dtype="f4").reshape(4, 3)
    value = {"W": array, "id_to_word": dict(enumerate("abcd")), "more": [array.T]}
    return [pickle.dumps(value, protocol) for protocol in range(6)]


PARSERS = {
    "safetensors": Parser(open_format(safetensors), lambda: [SEEDS["safetensors"].make(PATH)]),
    "npy": Parser(open_format(npy), lambda: [SEEDS["npy"].make(PATH)]),
    "gguf": Parser(open_format(gguf), lambda: [SEEDS["gguf"].make(PATH)]),
    "zip": Parser(open_zip, sound_archives),
    "pickle 4": Parser(open_format(pickled), sound_pickles),
}
