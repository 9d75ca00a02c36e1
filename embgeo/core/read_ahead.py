"""Ask the system to fetch the next block of a mapped file while this one is worked on."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def read_ahead(rows: npt.NDArray[Any]) -> None:
    """Begin to read the pages under a slice of a memory map; anything else is left alone.

    Parameters
    ----------
    rows : array
        Contiguous; usually a slice that nobody has touched yet.
    """
    mapped = _map_under(rows)
    if mapped is None or not hasattr(mmap, "MADV_WILLNEED") or not rows.size:
        return
    offset = rows.__array_interface__["data"][0] - _address(mapped)
    start = offset - offset % mmap.PAGESIZE
    if 0 <= start < len(mapped) and rows.flags.c_contiguous:
        length = min(offset + rows.nbytes, len(mapped)) - start
        mapped.madvise(mmap.MADV_WILLNEED, start, length)


def _map_under(array: Any) -> mmap.mmap | None:
    """The map that an array looks into, however many views lie between."""
    while array is not None and not isinstance(array, mmap.mmap):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return array


def _address(mapped: mmap.mmap) -> int:
    return int(np.frombuffer(mapped, dtype=np.uint8, count=1).__array_interface__["data"][0])
