"""Parameters that Flax wrote with msgpack (``flax_model.msgpack``), mapped.

The walker is the file's own subset of msgpack: maps by name down to arrays, which are extension
values of type 1 that hold a shape, a type and the bytes. Arrays beyond 1 GiB come in chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.io.bounded import scratch
from embgeo.io.bounded.guard import Damaged, guarded, plain, reading, short
from embgeo.io.bounded.maps import Array, count, is_numeric, map_file, number_type, view
from embgeo.io.bounded.maps import whole_numbers as sizes_of
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.formats.frameworks.msgpack_walker import Extension, Walker
from embgeo.io.left_out import LeftOut

NAME = "Flax msgpack"
RECOGNIZED = "a msgpack map of names, nested, that leads to one of Flax's arrays"
READ = "arrays are mapped; those in chunks (beyond 1 GiB) are put together in a scratch file"
EXTRA = ""

_ARRAY_TYPE = 1
_CHUNKED = "__msgpack_chunked_array__"
_MOST_CHUNKS = 4096


@dataclass(frozen=True, slots=True)
class _Stored:
    """An array in the file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    raw: memoryview


def sniff(head: bytes) -> bool:
    """A map with names for keys, in which the first array is seen; numbers may come before it."""
    return Walker(memoryview(head)).begins_with_names(_ARRAY_TYPE)


def open_checkpoint(path: Path) -> Checkpoint:
    """Every array of the tree; names are joined by dots.

    Parameters
    ----------
    path : Path

    Raises
    ------
    UnreadableFile
    """
    with reading(path, NAME):
        tree = Walker(map_file(path).data).whole()
        left_out = LeftOut()
        tensors = tuple(_tensors(tree, "", path, left_out))
        if not tensors:
            raise Damaged(f"the file holds no array of numbers{left_out.because()}")
    return Checkpoint(path, NAME, tensors, (path,), notes=left_out.notes())


def _tensors(tree: object, name: str, path: Path, left_out: LeftOut) -> Iterator[Tensor]:
    if isinstance(tree, Mapping) and _CHUNKED in tree:
        yield _chunked(tree, name, path)
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _tensors(
                value, f"{name}.{plain(key)}" if name else plain(key), path, left_out
            )
    elif isinstance(tree, Extension) and tree.type == _ARRAY_TYPE:
        stored = _stored(tree, name)
        if is_numeric(stored.dtype):
            yield _plain_tensor(stored, name, path)
        else:
            left_out.add(name, "it holds no numbers")


def _plain_tensor(stored: _Stored, name: str, path: Path) -> Tensor:
    opened = guarded(path, NAME, lambda: _array(stored))
    return Tensor(name, stored.shape, stored.dtype.name, opened)


def _stored(extension: Extension, name: str) -> _Stored:
    label = short(name)
    described = Walker(extension.raw).whole()
    if not isinstance(described, list) or len(described) != 3:
        raise Damaged(f"{label} has no description")
    shape, kind, raw = described
    if not isinstance(kind, str) or not isinstance(raw, memoryview):
        raise Damaged(f"{label} has a damaged description")
    try:
        dtype = number_type("bfloat16" if kind == "V2" else kind)
    except TypeError:
        raise Damaged(f"{label} has the unknown type {short(kind)}") from None
    sizes = sizes_of(shape, f"the shape of {label}")
    if dtype.hasobject or count(sizes) * dtype.itemsize != len(raw):
        raise Damaged(f"{label} has other than the bytes that its shape asks for")
    return _Stored(sizes, dtype, raw)


def _array(stored: _Stored) -> Array:
    # Types without a mark of their own are little-endian, as every machine that runs JAX.
    return view(
        np.frombuffer(stored.raw, dtype=np.uint8),
        stored.dtype,
        stored.shape,
        swapped=not np.little_endian,
    )


def _chunked(tree: Mapping[Any, Any], name: str, path: Path) -> Tensor:
    label = short(name)
    chunks = [
        _stored(part, name)
        for part in _numbered(tree.get("chunks"), f"the chunks of {label}")
        if isinstance(part, Extension) and part.type == _ARRAY_TYPE
    ]
    shape = sizes_of(_numbered(tree.get("shape"), f"the shape of {label}"), f"the shape of {label}")
    if not chunks or len({chunk.dtype for chunk in chunks}) > 1 or not is_numeric(chunks[0].dtype):
        raise Damaged(f"{label} has damaged chunks")
    if sum(count(chunk.shape) for chunk in chunks) != count(shape):
        raise Damaged(f"the chunks of {label} do not fill its shape")
    dtype = chunks[0].dtype

    def joined() -> Array:
        out = scratch.empty(shape, path, dtype)
        flat = out.reshape(-1)
        filled = 0
        for chunk in chunks:
            values = _array(chunk).reshape(-1)
            flat[filled : filled + len(values)] = values
            filled += len(values)
        out.flags.writeable = False
        return out

    return Tensor(name, shape, dtype.name, guarded(path, NAME, joined))


def _numbered(entries: object, what: str) -> list[Any]:
    """The values of a map ``{"0": …, "1": …}``, as which Flax writes tuples, in order."""
    if isinstance(entries, list):
        return entries
    if not isinstance(entries, Mapping) or len(entries) > _MOST_CHUNKS:
        raise Damaged(f"{what} are no list")
    if set(entries) != {str(place) for place in range(len(entries))}:
        raise Damaged(f"{what} are not numbered")
    return [entries[str(place)] for place in range(len(entries))]
