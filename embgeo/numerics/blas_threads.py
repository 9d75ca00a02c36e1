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
    from threadpoolctl import ThreadpoolController

    with without_idle_modules():
        import scipy.linalg.blas  # noqa: F401
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def without_idle_modules() -> Iterator[None]:
    """Keep scipy from importing modules of numpy that it does not use.

    It reads every attribute of numpy, which imports these two: a quarter of scipy's own import.
    """
    import numpy as np

    idle = [name for name in ("f2py", "testing") if name not in vars(np)]
    for name in idle:
        setattr(np, name, None)
    try:
        yield
    finally:
        for name in idle:
            if vars(np)[name] is None:
                delattr(np, name)


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
