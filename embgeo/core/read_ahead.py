"""Ask the system to fetch the next block of a mapped file while this one is worked on."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np


def read_ahead(data: Any, start: int, stop: int) -> None:
    """Begin to read the pages under some rows of a memory map; anything else is left alone.

    Parameters
    ----------
    data : array
        One of numpy, or what is indexed like it: its rows are made when they are asked for.
    start, stop : int
        Rows that nobody has touched yet.
    """
    mapped = _map_under(data)
    if mapped is None or not hasattr(mmap, "MADV_WILLNEED") or start >= stop:
        return
    rows = data[start:stop]
    offset = rows.__array_interface__["data"][0] - _address(mapped)
    page = offset - offset % mmap.PAGESIZE
    if 0 <= page < len(mapped) and rows.flags.c_contiguous:
        length = min(offset + rows.nbytes, len(mapped)) - page
        mapped.madvise(mmap.MADV_WILLNEED, page, length)


def _map_under(array: Any) -> mmap.mmap | None:
    """The map that an array looks into, however many views lie between."""
    while array is not None and not isinstance(array, mmap.mmap):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return array


def _address(mapped: mmap.mmap) -> int:
    return int(np.frombuffer(mapped, dtype=np.uint8, count=1).__array_interface__["data"][0])
