"""HDF5 files, and the weights in the archives of Keras 3.

The HDF5 library, a large one in C, reads the file in a limited process; contiguous datasets are
mapped here. Links, external storage and virtual datasets, which may name other files, are left out,
and so are filters that HDF5 would load as plug-ins.
"""

from __future__ import annotations

import importlib.util
import json
import math
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from embgeo.core.matrix import FileStamp
from embgeo.files import zip_members
from embgeo.files.guard import Damaged, plain
from embgeo.files.limited import fetch_array, run_limited
from embgeo.files.links import name_opened
from embgeo.files.maps import (
    TEXT,
    Array,
    Bytes,
    count,
    map_file,
    number_type,
    stamp_of,
    view,
    whole_numbers,
)
from embgeo.files.scratch import ScratchFile, write_scratch
from embgeo.io.formats.format import Beside
from embgeo.io.formats.stacked import stack_vectors
from embgeo.io.formats.word_lists import LOOKED_AT, are_words, is_vocabulary_name, tokens_for
from embgeo.io.model.checkpoint import SAVE_FLOATS, Checkpoint, Tensor, unreadable

if TYPE_CHECKING:
    import h5py

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
#: In place of the type of a dataset of strings.
_WORDS = "words"
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
    weights = _unpack(data) if is_archive else None
    held = _Held(weights, stamp_of(data if weights is None else map_file(weights.path)))
    answer = run_limited(f"{__name__}:describe", _LIBRARY, _DESCRIBING, stamp=astuple(held.stamp))
    found = answer["datasets"]
    tensors = [_tensor(facts, held) for facts in found if facts["dtype"] != _WORDS]
    texts = [facts for facts in found if facts["dtype"] == _WORDS]
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
    stamp: FileStamp


def _unpack(data: Bytes) -> ScratchFile:
    archive = zip_members.archive_in(data)
    if _KERAS_WEIGHTS not in archive.members:
        raise Damaged(f"an archive of Keras without {_KERAS_WEIGHTS}")
    return write_scratch(archive.pieces_of(_KERAS_WEIGHTS), "the weights in the archive")


def _name(keys: Sequence[str]) -> str:
    return plain("/".join(keys))


def _words(facts: dict[str, Any], held: _Held) -> list[str]:
    with ScratchFile() as output:
        run_limited(
            f"{__name__}:write_words",
            _LIBRARY,
            _READING + facts["shape"][0] / _SLOWEST_WORDS,
            stamp=astuple(held.stamp),
            output=str(output),
            keys=facts["keys"],
            most=_MOST_WORD_BYTES,
        )
        with output.open(encoding="ascii") as lines:
            return [word for line in lines for word in json.loads(line)]


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
        with held.stamp.open() as file:
            whole = np.asarray(np.memmap(file, dtype=np.uint8, mode="r"))
        return view(whole[place : place + size], dtype, shape, swapped=facts["swapped"])
    return fetch_array(
        f"{__name__}:write_values",
        _LIBRARY,
        _READING + size / _SLOWEST,
        dtype,
        shape,
        stamp=astuple(held.stamp),
        keys=facts["keys"],
    )


# In the limited process

# Keras writes some thousands; the listing of more would be a large answer of the process.
_MOST_OBJECTS = 100_000
_DEEPEST = 64
#: A chunk is unpacked as a whole.
_LARGEST_CHUNK = 256 * 2**20
#: A dataset above this size may take at most `_MOST_RATIO` times its bytes in the file.
_LARGE = 16 * 2**20
_MOST_RATIO = 100
_MOST_WORDS = 4_000_000
# Strings of variable length are objects of Python until they are written.
_WORDS_AT_A_TIME = 4096

_DEFLATE, _SHUFFLE, _FLETCHER32 = 1, 2, 3
#: HDF5's szip, nbit and scale-offset read beyond the end of damaged data; others are plug-ins.
_FILTERS = frozenset({_DEFLATE, _SHUFFLE, _FLETCHER32})
# Fletcher32 adds its checksum behind the packed bytes of a chunk.
_CHECKSUM_BYTES = 4
_PIECE = 2**20
_OPTIMIZER = frozenset({"optimizer_weights", "optimizer"})

Keys = tuple[str, ...]
#: Keys of what cannot be read, why, a clause such as "holds no numbers", and its shape.
Unread = list[tuple[Keys, str, tuple[int, ...]]]


@contextmanager
def _open(stamp: list[Any]) -> Iterator[h5py.File]:
    import h5py

    with (
        FileStamp(*stamp).open() as opened,
        h5py.File(name_opened(opened), "r", locking="best-effort") as file,
    ):
        yield file


def describe(stamp: list[Any]) -> dict[str, Any]:
    """Describe every dataset of numbers or words, with its offset if its bytes are contiguous."""
    size = FileStamp(*stamp).size
    found: list[dict[str, Any]] = []
    unread: Unread = []
    with _open(stamp) as file:
        for keys, dataset, alias_of in datasets(file, unread):
            kind = kind_of(dataset)
            if reason := reason_to_refuse(dataset, size, kind):
                unread.append((keys, reason, dataset.shape or ()))
                continue
            facts = {
                "keys": keys,
                "shape": dataset.shape,
                "dtype": kind,
                "swapped": not dataset.dtype.isnative,
                "offset": dataset.id.get_offset() if is_stored_plainly(dataset) else None,
                "alias_of": alias_of,
            }
            found.append(facts)
    return {"datasets": found, "unread": unread}


def write_values(stamp: list[Any], output: str, keys: list[str]) -> None:
    """Write the numbers of a dataset in native byte order to the output file."""
    with _open(stamp) as file:
        dataset = at(file, keys)
        check_chunks(dataset)
        dtype = dataset.dtype.newbyteorder("=")
        out = np.memmap(output, dtype=dtype, mode="w+", shape=dataset.shape or (1,))
        dataset.read_direct(out if dataset.shape else out.reshape(()))
        out.flush()


def check_chunks(dataset: h5py.Dataset) -> None:
    """Refuse chunks that unpack to another size than a chunk has.

    HDF5 takes what is missing from memory that nothing was written to.
    """
    if not dataset.chunks:
        return
    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(place)[0] for place in range(properties.get_nfilters())]
    if filters.count(_DEFLATE) > 1 or _FLETCHER32 in filters[:-1]:
        raise Damaged("its filters come in an order that is not read")
    size = math.prod(dataset.chunks) * dataset.id.get_type().get_size()
    chunks: list[Any] = []
    dataset.id.chunk_iter(chunks.append)
    for chunk in chunks:
        used = [kind for place, kind in enumerate(filters) if not chunk.filter_mask >> place & 1]
        found = chunk.size - (_CHECKSUM_BYTES if _FLETCHER32 in used else 0)
        if _DEFLATE in used:
            packed = dataset.id.read_direct_chunk(chunk.chunk_offset)[1][:found]
            found = inflated_size(packed, size)
        if found != size:
            raise Damaged(f"a chunk unpacks to {found:,} bytes in place of {size:,}")


def inflated_size(packed: bytes, most: int) -> int:
    """Count the bytes that a deflate stream inflates to, up to the piece that passes `most`."""
    machine, size = zlib.decompressobj(), 0
    while not machine.eof and size <= most:
        piece = machine.decompress(packed, _PIECE)
        packed = machine.unconsumed_tail
        if not piece and not packed:
            break
        size += len(piece)
    return size


def write_words(stamp: list[Any], output: str, keys: list[str], most: int) -> None:
    """Write the strings of a dataset to the output file, a JSON list on each line."""
    with _open(stamp) as file, open(output, "w", encoding="ascii") as out:
        dataset = at(file, keys)
        check_chunks(dataset)
        for start in range(0, len(dataset), _WORDS_AT_A_TIME):
            block = dataset[start : start + _WORDS_AT_A_TIME].tolist()
            out.write(json.dumps([word.decode("utf-8", "backslashreplace") for word in block]))
            out.write("\n")
            if out.tell() > most:
                raise Damaged("its words take implausibly much room")


def at(file: h5py.File, keys: list[str]) -> h5py.Dataset:
    """Return the dataset under these keys, which are hard links."""
    item: Any = file
    for key in keys:
        item = item[key]
    return item


def datasets(file: h5py.File, unread: Unread) -> Iterator[tuple[Keys, h5py.Dataset, Keys]]:
    """Yield every dataset under hard links, and the first keys of one that occurs again."""
    import h5py

    seen: dict[Any, Keys] = {h5py.h5o.get_info(file.id).addr: ()}
    pending: list[tuple[Keys, h5py.Group]] = [((), file)]
    entries = 0
    while pending:
        above, group = pending.pop()
        entries += len(group)
        if entries > _MOST_OBJECTS or len(above) > _DEEPEST:
            raise Damaged("the file holds implausibly many or deeply nested objects")
        inner = []
        for key in group:
            keys = (*above, key)
            if not above and key in _OPTIMIZER:
                unread.append((keys, "is the optimizer's state", ()))
                continue
            # h5py takes a name with a slash for a path, which may lead through any link.
            if "/" in key or not isinstance(group.get(key, getlink=True), h5py.HardLink):
                unread.append((keys, "is a link to another place or file", ()))
                continue
            item = group[key]
            address = h5py.h5o.get_info(item.id).addr
            if isinstance(item, h5py.Dataset):
                yield keys, item, seen.get(address, ())
            elif isinstance(item, h5py.Group) and address not in seen:
                inner.append((keys, item))
            seen.setdefault(address, keys)
        pending += reversed(inner)


def reason_to_refuse(dataset: h5py.Dataset, file_size: int, kind: str) -> str:
    """Explain why a dataset is not read; empty if it is."""
    import h5py

    properties = dataset.id.get_create_plist()
    if properties.get_external_count():
        return "has its numbers in another file"
    if properties.get_layout() == h5py.h5d.VIRTUAL:
        return "is a virtual dataset, put together from others"
    if any(name in dataset.attrs for name in ("scale_factor", "add_offset")):
        return "is packed (its attributes scale_factor, add_offset)"
    used = {properties.get_filter(place)[0] for place in range(properties.get_nfilters())}
    if not used <= _FILTERS or not all(map(h5py.h5z.filter_avail, used)):
        return "is compressed by a filter that is not read"
    if dataset.shape is None or not kind:
        return "holds no numbers"
    if kind == _WORDS and (len(dataset.shape) != 1 or dataset.shape[0] > _MOST_WORDS):
        return "holds text"
    size = math.prod(dataset.shape) * dataset.dtype.itemsize
    stored = dataset.id.get_storage_size()
    if stored > file_size or size > max(_LARGE, _MOST_RATIO * stored):
        return f"promises {size:,} bytes, and the file holds {stored:,} of them"
    if dataset.chunks and math.prod(dataset.chunks) * dataset.dtype.itemsize > _LARGEST_CHUNK:
        return "has implausibly large chunks"
    return "holds text" if kind == _WORDS and not are_words(first_words(dataset)) else ""


def first_words(dataset: h5py.Dataset) -> list[str] | None:
    """Read some strings; None if they are no text."""
    check_chunks(dataset)
    try:
        return [word.decode() for word in dataset[:LOOKED_AT].tolist()]
    except UnicodeDecodeError:
        return None


def is_stored_plainly(dataset: h5py.Dataset) -> bool:
    """Tell whether the bytes of a dataset are contiguous and of exactly the numpy type.

    HDF5 has floats of any bias and normalization and integers that do not fill their bytes, for
    which h5py gives the numpy type of that size; they need a conversion.
    """
    import h5py

    stored = dataset.id.get_type()
    return not dataset.chunks and bool(stored == h5py.h5t.py_create(dataset.dtype, logical=True))


def kind_of(dataset: h5py.Dataset) -> str:
    """Return the name of the number type, or `_WORDS` for strings; empty for other types."""
    import h5py

    try:
        dtype = dataset.dtype
    except TypeError:
        return ""
    if h5py.check_string_dtype(dtype) is not None:
        return _WORDS
    if dtype.kind in "biufc":
        return str(dtype.name)
    # Keras writes bfloat16 as two opaque bytes with an attribute.
    is_opaque = dtype.kind == "V" and dtype.itemsize == 2 and dtype.names is None
    is_bfloat16 = is_opaque and dataset.attrs.get("dtype") == "bfloat16"
    return "bfloat16" if is_bfloat16 else ""
