"""Mapped files, number types, and array views that stay inside their bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import ml_dtypes
import numpy as np
import numpy.typing as npt

from embgeo.core.matrix import FileStamp
from embgeo.files.guard import Damaged, short
from embgeo.files.links import open_file

Array = npt.NDArray[Any]


class Bytes(Protocol):
    """The bytes of a file or of a part of it: a map, or :class:`Ranged`.

    A slice reads nothing; `tobytes`, `data` and :func:`view` do.
    """

    def __len__(self) -> int: ...
    def __getitem__(self, index: slice, /) -> Bytes: ...
    def tobytes(self) -> bytes: ...
    @property
    def data(self) -> memoryview: ...


class Ranged:
    """Bytes that lie elsewhere.

    ``read(start, stop)`` fetches a map of some of them, and ``whole()`` the path of the whole file.
    """

    def __init__(
        self,
        read: Callable[[int, int], npt.NDArray[np.uint8]],
        whole: Callable[[], Path],
        start: int,
        stop: int,
    ) -> None:
        self._read, self.whole, self._start, self._stop = read, whole, start, stop

    def __len__(self) -> int:
        return self._stop - self._start

    def __getitem__(self, index: slice, /) -> Ranged:
        start, stop, step = index.indices(len(self))
        assert step == 1
        first = self._start + start
        return Ranged(self._read, self.whole, first, self._start + max(start, stop))

    def tobytes(self) -> bytes:
        return self.fetch().tobytes()

    @property
    def data(self) -> memoryview:
        return self.fetch().data

    def fetch(self) -> npt.NDArray[np.uint8]:
        if not len(self):
            return np.empty(0, dtype=np.uint8)
        return self._read(self._start, self._stop)


#: More than any table has; numpy before version 2 had the same limit.
MOST_DIMENSIONS = 32

#: Largest view that repeats its bytes (stride 0): to be listed, and to be opened. A small file must
#: not cause hours of work.
_MOST_REPEATED_ELEMENTS = 2**32
_MOST_OPENED_ELEMENTS = 2**26

# Products of two sizes stay within what a seek takes, 63 bits.
_LARGEST = 2**62

#: Type of a member that holds text; it may be words, and is a matrix only if its name says so.
TEXT = "str"

#: Whether little-endian numbers have to be swapped on this machine.
SWAPPED = not np.little_endian


class _Map(np.memmap[Any, np.dtype[np.uint8]]):
    """A map that knows which file it is of."""

    stamp: FileStamp


def map_file(path: Path, *, inside: bool = False) -> npt.NDArray[np.uint8]:
    """Map a file read-only; raises Damaged if it is empty.

    With `inside` the file has to be in its folder, see :func:`open_file`.
    """
    with open_file(path, inside=inside) as file:
        stamp = FileStamp.of(path.absolute(), file.fileno())
        if stamp.size == 0:
            raise Damaged("the file is empty")
        mapped = _Map(file, dtype=np.uint8, mode="r")
    mapped.stamp = stamp
    # Slices of a memmap are slow.
    return np.asarray(mapped)


def stamp_of(data: Bytes) -> FileStamp:
    """Return the stamp of a whole file, with which readers open it again."""
    base: Any = map_file(data.whole()) if isinstance(data, Ranged) else data
    while not isinstance(base, _Map):
        base = base.base
    return base.stamp


@lru_cache(maxsize=256)
def number_type(name: str) -> np.dtype[Any]:
    """Return the type of numpy or ml_dtypes with this name, such as ``float8_e4m3fn``."""
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


@lru_cache(maxsize=256)
def type_name(dtype: np.dtype[Any]) -> str:
    """Return numpy's name of a type, which it makes anew each time."""
    return str(dtype.name)


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Tell whether arrays of this type hold numbers; ml_dtypes' types have kind ``V``."""
    return dtype.kind in "biufc" or _is_ml_type(dtype)


def _is_ml_type(dtype: np.dtype[Any]) -> bool:
    return hasattr(ml_dtypes, dtype.name)


def whole_numbers(values: object, what: str) -> tuple[int, ...]:
    """Check a shape or strides: a short tuple of non-negative integers."""
    if not isinstance(values, (tuple, list)) or len(values) > MOST_DIMENSIONS:
        raise Damaged(f"{what} is not a list of at most {MOST_DIMENSIONS} sizes")
    for value in values:
        if not isinstance(value, int) or isinstance(value, bool):
            raise Damaged(f"{what} holds something that is not a whole number")
        if value < 0:
            raise Damaged(f"{what} holds a negative number")
        if value >= _LARGEST:
            raise Damaged(f"{what} holds a number beyond any file")
    return tuple(values)


def count(shape: Sequence[int]) -> int:
    """Number of elements, in Python integers, which do not wrap around."""
    return math.prod(shape)


def check_places(places: Iterable[tuple[str, int, int]], size: int) -> None:
    """Refuse pieces (name, start, stop) that leave the file or overlap."""
    end = 0
    for name, start, stop in sorted(places, key=lambda place: place[1:]):
        if stop > size:
            raise Damaged(f"{short(name)} reaches beyond the end of the file")
        if start < end:
            raise Damaged(f"{short(name)} overlaps another tensor")
        end = stop


def check_view(shape: Sequence[int], strides: Sequence[int], offset: int, elements: int) -> None:
    """Refuse a strided view, in elements, that leaves its storage."""
    if len(shape) != len(strides):
        raise Damaged("a tensor's shape and strides have different lengths")
    needed = count(shape)
    last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    if offset > elements or (needed > 0 and last >= elements):
        raise Damaged("a tensor reaches beyond its storage")
    if needed > max(elements, _MOST_REPEATED_ELEMENTS):
        raise Damaged("a tensor repeats its storage into an absurd size")


def view(
    buffer: Bytes,
    dtype: np.dtype[Any],
    shape: Sequence[int],
    strides: Sequence[int] | None = None,
    offset: int = 0,
    *,
    swapped: bool = False,
    fortran: bool = False,
) -> Array:
    """Return a read-only array over `buffer`; only swapped numbers of ml_dtypes are copied.

    `dtype` is in native byte order, and `swapped` says that the bytes are not. Strides and offset
    count elements. Without strides the array is contiguous, with `fortran` column-major.
    """
    size = dtype.itemsize
    elements = len(buffer) // size
    if strides is None:
        if offset + count(shape) > elements:
            raise Damaged("an array is longer than its bytes")
    else:
        check_view(shape, strides, offset, elements)
        if count(shape) > max(elements, _MOST_OPENED_ELEMENTS):
            raise Damaged("a tensor repeats its storage into an absurd size")
    # newbyteorder makes void of ml_dtypes' types: they are swapped as integers of the same width.
    as_integers = swapped and _is_ml_type(dtype)
    stored = np.dtype(f"u{size}") if as_integers else dtype
    array: Array = np.ndarray(
        tuple(shape),
        stored.newbyteorder() if swapped else stored,
        buffer=buffer if isinstance(buffer, np.ndarray) else buffer.data,
        offset=offset * size,
        strides=None if strides is None else tuple(step * size for step in strides),
        order="F" if fortran else "C",
    )
    if as_integers:
        array = array.astype(stored).view(dtype)
    array.flags.writeable = False
    return array
