"""Temporary files and folders of runs that were killed: the next run in that folder removes them.

A running process holds a lock on each of its own, which the system releases when it ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: What the names of temporary files and folders next to results begin with.
PREFIX = ".embgeo."
#: Seconds that a process has between making one and locking it.
GRACE = 60.0


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock on a file or folder; False where another process has it or none can be had."""
    if sys.platform == "win32":
        yield False
        return
    import fcntl

    descriptor = -1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        got = True
    except OSError:
        got = False
    try:
        yield got
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files and folders in `folder` that no process holds."""
    for path in folder.glob(f"{PREFIX}*"):
        # What cannot be removed stays; another process may have removed it.
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > GRACE:
                with locked(path) as free:
                    if free and path.is_dir():
                        shutil.rmtree(path, ignore_errors=True)
                    elif free:
                        path.unlink(missing_ok=True)
