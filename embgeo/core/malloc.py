"""How the C library allocates memory."""

from __future__ import annotations

import ctypes

#: M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of glibc's malloc.h, in bytes.
MALLOC_OPTIONS = {-3: 32 << 20, -1: 64 << 20}


def keep_freed_memory() -> None:
    """Let the C library keep the blocks of a pass, of a few MB each, when they are freed.

    Otherwise glibc hands them back and takes them again: page faults for a tenth of the time.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return
    for option, size in MALLOC_OPTIONS.items():
        mallopt(option, size)
