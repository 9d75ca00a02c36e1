"""HDF5 files, as Keras and pandas write them.

The HDF5 library reads the file in a limited process (`hdf5_datasets`); contiguous datasets are
mapped here.
"""

import importlib.util
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.io.bounded.guard import Damaged, plain
from embgeo.io.bounded.maps import Array, count, map_file, number_type, view, whole_numbers
from embgeo.io.bounded.scratch import ScratchFile
from embgeo.io.checkpoint import Checkpoint, Omissions, Tensor
from embgeo.io.convert.limited import fetch_array, run_limited
from embgeo.io.labels.word_lists import is_vocabulary_name, tokens_for
from embgeo.io.stacked import stack_vectors

NAME = "HDF5"
RECOGNIZED = "begins with `\\x89HDF`; also `model.weights.h5` in a `.keras` archive"
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
#: The dataset of row labels in files of pandas.
_ROW_LABELS = "axis1"


def sniff(head: bytes) -> bool:
    return head.startswith(_MAGIC)


def open_checkpoint(path: Path) -> Checkpoint:
    """Open every dataset of numbers, named by its path in the file."""
    if importlib.util.find_spec("h5py") is None:
        raise Damaged(
            "is an HDF5 file (Keras, pandas), which needs an extra package",
            "pip install 'embgeo[hdf5]'",
        )
    answer = run_limited("hdf5_datasets:describe", _LIBRARY, _DESCRIBING, path=str(path.resolve()))
    left_out = Omissions()
    for keys, reason in answer["left_out"]:
        left_out.add(_name(keys), reason)
    found = answer["datasets"]
    tensors = tuple(_tensor(facts, path) for facts in found if facts["dtype"] != "words")
    lists = [facts for facts in found if _holds_labels(facts)]
    vocabularies = [(_name(facts["keys"]), _words(facts, path)) for facts in lists]
    tokens, source = tokens_for(tensors, vocabularies)
    return stack_vectors(
        Checkpoint(path, NAME, tensors, (path,), tokens, source, notes=left_out.notes())
    )


def _name(keys: Sequence[str]) -> str:
    return plain("/".join(keys))


def _holds_labels(facts: dict[str, Any]) -> bool:
    key = facts["keys"][-1]
    return facts["dtype"] == "words" and (key == _ROW_LABELS or is_vocabulary_name(key))


def _words(facts: dict[str, Any], path: Path) -> list[str]:
    output = ScratchFile()
    try:
        run_limited(
            "hdf5_datasets:words",
            _LIBRARY,
            _READING + facts["shape"][0] / _SLOWEST_WORDS,
            path=str(path.resolve()),
            output=str(output.path),
            keys=facts["keys"],
            most=_MOST_WORD_BYTES,
        )
        with output.path.open(encoding="ascii") as lines:
            return [word for line in lines for word in json.loads(line)]
    finally:
        output.remove()


def _tensor(facts: dict[str, Any], path: Path) -> Tensor:
    name = _name(facts["keys"])
    shape = whole_numbers(facts["shape"], f"the shape of {name}")
    dtype = number_type(facts["dtype"])
    opened = partial(_array, facts, shape, dtype, path)
    return Tensor(name, shape, dtype.name, opened, _name(facts["alias_of"]))


def _array(
    facts: dict[str, Any], shape: tuple[int, ...], dtype: np.dtype[Any], path: Path
) -> Array:
    size = count(shape) * dtype.itemsize
    if size == 0:
        return view(np.zeros(0, dtype=np.uint8), dtype, shape)
    place = facts["offset"]
    if place is not None:
        return view(map_file(path)[place : place + size], dtype, shape, swapped=facts["swapped"])
    found = fetch_array(
        "hdf5_datasets:values",
        _LIBRARY,
        _READING + size / _SLOWEST,
        dtype,
        shape,
        path=str(path.resolve()),
        keys=facts["keys"],
    )
    assert not isinstance(found, int)
    return found
