"""Limits of the number of BLAS threads.

The number applies to the whole process. The smallest limit of all present callers is set; after the
last of them ends, in any order, the number before the first is restored.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
#: The present limits, and the threads of each library before the first of them.
_bounds: list[int] = []
_before: list[int] = []


@cache
def _libraries() -> list[Any]:
    import numpy.linalg  # noqa: F401  (its BLAS has to be loaded to be found)
    import scipy.linalg.blas  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def blas_threads() -> int:
    """Return the threads of BLAS without limits, as the environment sets them."""
    with _lock:
        counts = _before if _bounds else _counts()
        return max(1, min(counts)) if counts else (os.cpu_count() or 1)


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """Limit BLAS to this many threads for each call, in the whole process."""
    with _lock:
        if not _bounds:
            _before[:] = _counts()
        _bounds.append(threads)
        _apply()
    try:
        yield
    finally:
        with _lock:
            _bounds.remove(threads)
            _apply()


def _counts() -> list[int]:
    return [library.num_threads for library in _libraries()]


def _apply() -> None:
    for library, before in zip(_libraries(), _before, strict=True):
        library.set_num_threads(min([before, *_bounds]))
