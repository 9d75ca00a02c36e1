"""Reads HDF5 files with h5py, in a limited process; see `limited`.

Links, external storage and virtual datasets, which may name other files, are left out, and so are
filters that HDF5 would load as plug-ins.
"""

import json
import math
import os
import zlib
from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np

from embgeo.files.guard import Damaged

_MOST_OBJECTS = 100_000
_DEEPEST = 64
#: A chunk is unpacked as a whole.
_LARGEST_CHUNK = 256 * 2**20
#: A dataset above this size may take at most `_MOST_RATIO` times its bytes in the file.
_LARGE = 16 * 2**20
_MOST_RATIO = 100
_MOST_WORDS = 4_000_000
_WORDS_AT_A_TIME = 4096

_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF = 1, 2, 3, 32000
#: HDF5's szip, nbit and scale-offset read beyond the end of damaged data; others are plug-ins.
_FILTERS = frozenset({_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF})
_CHECKSUM_BYTES = 4
_PIECE = 2**20
_OPTIMIZER = frozenset({"optimizer_weights", "optimizer"})

Keys = tuple[str, ...]
#: Keys of what cannot be read, why, a clause such as "holds no numbers", and its shape.
Unread = list[tuple[Keys, str, tuple[int, ...]]]


def _open(path: str) -> h5py.File:
    return h5py.File(path, "r", locking="best-effort")


def describe(path: str) -> dict[str, Any]:
    """Write every dataset of numbers or words, with its offset if its bytes are contiguous."""
    size = os.stat(path).st_size
    found: list[dict[str, Any]] = []
    unread: Unread = []
    with _open(path) as file:
        for keys, dataset, alias_of in datasets(file, unread):
            words = is_words(dataset)
            reason = reason_to_refuse(dataset, size, words)
            if reason:
                unread.append((keys, reason, dataset.shape or ()))
                continue
            facts = {
                "keys": keys,
                "shape": dataset.shape,
                "dtype": "words" if words else number_name(dataset),
                "swapped": not dataset.dtype.isnative,
                "offset": dataset.id.get_offset() if is_stored_plainly(dataset) else None,
                "alias_of": alias_of,
            }
            found.append(facts)
    return {"datasets": found, "unread": unread}


def values(path: str, output: str, keys: list[str]) -> None:
    """Write the numbers of a dataset in native byte order to the output file."""
    with _open(path) as file:
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
    packers = [kind for kind in filters if kind in (_DEFLATE, _LZF)]
    if len(packers) > 1 or _FLETCHER32 in filters[:-1]:
        raise Damaged("its filters come in an order that is not read")
    size = math.prod(dataset.chunks) * dataset.id.get_type().get_size()
    chunks: list[Any] = []
    dataset.id.chunk_iter(chunks.append)
    for chunk in chunks:
        used = [kind for place, kind in enumerate(filters) if not chunk.filter_mask >> place & 1]
        found = chunk.size - (_CHECKSUM_BYTES if _FLETCHER32 in used else 0)
        if _DEFLATE in used or _LZF in used:
            packed = dataset.id.read_direct_chunk(chunk.chunk_offset)[1][:found]
            found = inflated_size(packed, size) if _DEFLATE in used else unpacked_size(packed)
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


def unpacked_size(packed: bytes) -> int:
    """Count the bytes that an LZF stream unpacks to.

    A control byte below 32 is followed by one literal byte more than it says. Others are a copy of
    earlier bytes: two more than their upper three bits say, with a byte of extra length after 7,
    and a byte of its place.
    """
    place = size = 0
    while place < len(packed):
        control = packed[place]
        if control < 32:
            place += control + 2
            size += control + 1
        else:
            length = control >> 5
            if length == 7:
                place += 1
                length += packed[place]
            place += 2
            size += length + 2
    return size


def words(path: str, output: str, keys: list[str], most: int) -> None:
    """Write the strings of a dataset to the output file, a JSON list on each line."""
    with _open(path) as file, open(output, "w", encoding="ascii") as out:
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


def reason_to_refuse(dataset: h5py.Dataset, file_size: int, words: bool) -> str:
    """Explain why a dataset is not read; empty if it is."""
    properties = dataset.id.get_create_plist()
    if properties.get_external_count():
        return "has its numbers in another file"
    if properties.get_layout() == h5py.h5d.VIRTUAL:
        return "is a virtual dataset, put together from others"
    used = {properties.get_filter(place)[0] for place in range(properties.get_nfilters())}
    if not used <= _FILTERS or not all(map(h5py.h5z.filter_avail, used)):
        return "is compressed by a filter that is not read"
    if dataset.shape is None or not (words or number_name(dataset)):
        return "holds no numbers"
    if words and (len(dataset.shape) != 1 or dataset.shape[0] > _MOST_WORDS):
        return "holds no numbers"
    size = math.prod(dataset.shape) * dataset.dtype.itemsize
    stored = dataset.id.get_storage_size()
    if stored > file_size or size > max(_LARGE, _MOST_RATIO * stored):
        return f"promises {size:,} bytes, and the file holds {stored:,} of them"
    if dataset.chunks and math.prod(dataset.chunks) * dataset.dtype.itemsize > _LARGEST_CHUNK:
        return "has implausibly large chunks"
    return ""


def is_stored_plainly(dataset: h5py.Dataset) -> bool:
    """Tell whether the bytes of a dataset are contiguous and of exactly the numpy type.

    HDF5 has floats of any bias and normalization and integers that do not fill their bytes, for
    which h5py gives the numpy type of that size; they need a conversion.
    """
    stored = dataset.id.get_type()
    return not dataset.chunks and bool(stored == h5py.h5t.py_create(dataset.dtype, logical=True))


def is_words(dataset: h5py.Dataset) -> bool:
    """Tell whether a dataset holds strings, of fixed or variable length."""
    try:
        return h5py.check_string_dtype(dataset.dtype) is not None
    except TypeError:
        return False


def number_name(dataset: h5py.Dataset) -> str:
    """Return the name of the number type; empty for other types."""
    try:
        dtype = dataset.dtype
    except TypeError:
        return ""
    if dtype.kind in "biufc":
        return str(dtype.name)
    return "bfloat16" if is_bfloat16(dataset) else ""


def is_bfloat16(dataset: h5py.Dataset) -> bool:
    """Tell whether Keras wrote bfloat16, as two opaque bytes with an attribute."""
    dtype = dataset.dtype
    return bool(
        dtype.kind == "V"
        and dtype.itemsize == 2
        and dtype.names is None
        and "dtype" in dataset.attrs
        and dataset.attrs["dtype"] == "bfloat16"
    )
