"""Prefetching of the next block of a mapped file."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np


def read_ahead(data: Any, start: int, stop: int) -> None:
    """Ask the system to read the pages of some rows of a memory map; ignore any other array."""
    mapped = _find_map(data)
    if mapped is None or not hasattr(mmap, "MADV_WILLNEED") or start >= stop:
        return
    rows = data[start:stop]
    base = np.frombuffer(mapped, dtype=np.uint8, count=1)
    offset = rows.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    page = offset - offset % mmap.PAGESIZE
    if 0 <= page < len(mapped) and rows.flags.c_contiguous:
        length = min(offset + rows.nbytes, len(mapped)) - page
        mapped.madvise(mmap.MADV_WILLNEED, page, length)


def _find_map(array: Any) -> mmap.mmap | None:
    """The map that an array is a view of, directly or through other views."""
    while array is not None and not isinstance(array, mmap.mmap):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return array
