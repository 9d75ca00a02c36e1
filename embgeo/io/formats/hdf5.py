"""HDF5 files, and the weights in the archives of Keras 3.

The HDF5 library reads the file in a limited process (`hdf5_datasets`); contiguous datasets are
mapped here.
"""

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.files import zip_members
from embgeo.files.guard import Damaged, plain
from embgeo.files.maps import (
    TEXT,
    Array,
    Bytes,
    count,
    map_file,
    number_type,
    path_of,
    view,
    whole_numbers,
)
from embgeo.files.scratch import ScratchFile, write_scratch
from embgeo.io.checkpoint import SAVE_FLOATS, Checkpoint, Tensor, unreadable
from embgeo.io.formats.format import Beside
from embgeo.io.formats.limited import fetch_array, run_limited
from embgeo.io.formats.stacked import stack_vectors
from embgeo.io.labels.word_lists import is_vocabulary_name, tokens_for

NAME = "HDF5"
RECOGNIZED = (
    "begins with `\\x89HDF`; of Keras a zip archive with `metadata.json` first, and in it "
    "`model.weights.h5`"
)
READ = (
    "contiguous datasets are mapped; chunked and compressed ones are unpacked into a temporary "
    "file when opened; links, external and virtual datasets are not followed"
)
EXTRA = "hdf5"

_MAGIC = b"\x89HDF\r\n\x1a\n"
_LIBRARY = "the HDF5 library"
#: Processor seconds for the description of a file and for a dataset, and in addition bytes and
#: words per second. Together they limit the cost of a file that is refused.
_DESCRIBING, _READING = 5, 2
_SLOWEST, _SLOWEST_WORDS = 20 * 2**20, 500_000
_MOST_WORD_BYTES = 512 * 2**20
#: The first member of an archive of Keras, and that of its weights.
_KERAS_FIRST, _KERAS_WEIGHTS = "metadata.json", "model.weights.h5"


def sniff(head: bytes) -> bool:
    return head.startswith(_MAGIC) or zip_members.first_name(head) == _KERAS_FIRST


def open_checkpoint(data: Bytes, _beside: Beside) -> Checkpoint:
    """Open every dataset of numbers, named by its path in the file."""
    if importlib.util.find_spec("h5py") is None:
        raise Damaged(
            "is an HDF5 file (Keras), which needs an extra package", "pip install 'embgeo[hdf5]'"
        )
    is_archive = data[: len(_MAGIC)].tobytes() != _MAGIC
    held = _Held(_unpack(data)) if is_archive else _Held(None, path_of(data))
    answer = run_limited(
        "hdf5_datasets:describe", _LIBRARY, _DESCRIBING, path=str(held.file.resolve())
    )
    found = answer["datasets"]
    tensors = [_tensor(facts, held) for facts in found if facts["dtype"] != "words"]
    texts = [facts for facts in found if facts["dtype"] == "words"]
    vocabularies = [
        (_name(facts["keys"]), _words(facts, held))
        for facts in texts
        if is_vocabulary_name(facts["keys"][-1])
    ]
    tokens, source = tokens_for(tensors, vocabularies)
    for facts in texts:
        shape = whole_numbers(facts["shape"], "a shape")
        tensors.append(unreadable(_name(facts["keys"]), shape, TEXT, "holds text", SAVE_FLOATS))
    for keys, problem, sizes in answer["unread"]:
        shape = whole_numbers(sizes, "a shape")
        tensors.append(unreadable(_name(keys), shape, "", problem, SAVE_FLOATS))
    return stack_vectors(Checkpoint(NAME, tuple(tensors), tokens, source))


@dataclass(frozen=True, slots=True)
class _Held:
    """The HDF5 file: what the user named, or the weights in an archive of Keras."""

    weights: ScratchFile | None
    path: Path = Path()

    @property
    def file(self) -> Path:
        return self.path if self.weights is None else self.weights.path


def _unpack(data: Bytes) -> ScratchFile:
    archive = zip_members.archive_in(data)
    if _KERAS_WEIGHTS not in archive.members:
        raise Damaged(f"an archive of Keras without {_KERAS_WEIGHTS}", "save the model again")
    return write_scratch(archive.pieces_of(_KERAS_WEIGHTS), "the weights in the archive")


def _name(keys: Sequence[str]) -> str:
    return plain("/".join(keys))


def _words(facts: dict[str, Any], held: _Held) -> list[str]:
    output = ScratchFile()
    try:
        run_limited(
            "hdf5_datasets:words",
            _LIBRARY,
            _READING + facts["shape"][0] / _SLOWEST_WORDS,
            path=str(held.file.resolve()),
            output=str(output.path),
            keys=facts["keys"],
            most=_MOST_WORD_BYTES,
        )
        with output.path.open(encoding="ascii") as lines:
            return [word for line in lines for word in json.loads(line)]
    finally:
        output.remove()


def _tensor(facts: dict[str, Any], held: _Held) -> Tensor:
    name = _name(facts["keys"])
    shape = whole_numbers(facts["shape"], f"the shape of {name}")
    dtype = number_type(facts["dtype"])
    opened = partial(_array, facts, shape, dtype, held)
    return Tensor(name, shape, dtype.name, opened, _name(facts["alias_of"]))


def _array(
    facts: dict[str, Any], shape: tuple[int, ...], dtype: np.dtype[Any], held: _Held
) -> Array:
    size = count(shape) * dtype.itemsize
    if size == 0:
        return view(np.zeros(0, dtype=np.uint8), dtype, shape)
    place = facts["offset"]
    if place is not None:
        return view(
            map_file(held.file)[place : place + size], dtype, shape, swapped=facts["swapped"]
        )
    found = fetch_array(
        "hdf5_datasets:values",
        _LIBRARY,
        _READING + size / _SLOWEST,
        dtype,
        shape,
        path=str(held.file.resolve()),
        keys=facts["keys"],
    )
    assert not isinstance(found, int)
    return found
