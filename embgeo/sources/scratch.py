"""Room for what cannot be a map of the user's file: memory, or a temporary file."""

from __future__ import annotations

import atexit
import math
import os
import tempfile
import weakref
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.errors import UnreadableFile
from embgeo.sources.gzipped import BoundedGzip

#: Arrays up to this size are held in memory, larger ones in an unnamed temporary file.
MEMORY_BYTES = 256 * 2**20
_COPY_BYTES = 4 * 2**20


def empty(shape: tuple[int, int], path: Path) -> npt.NDArray[np.float32]:
    """A float32 array to be filled: in memory if small, else a map of a nameless file.

    Parameters
    ----------
    shape : tuple of two ints
    path : Path
        The file it is for, named in the error if there is no room.
    """
    size = 4 * math.prod(shape)
    if size <= MEMORY_BYTES:
        return np.empty(shape, dtype=np.float32)
    try:
        with tempfile.TemporaryFile() as file:
            # Reserve the blocks now: a full disk behind a map ends the process with SIGBUS.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)
    except OSError as error:
        raise _no_room(path, f"{size / 2**20:,.0f} MiB of vectors", error) from error


class ScratchFile:
    """A temporary file that vanishes with this object, or at the latest with the process."""

    def __init__(self, suffix: str = "") -> None:
        handle, name = tempfile.mkstemp(prefix="embgeo-", suffix=suffix)
        os.close(handle)
        self.path = Path(name)
        self._finalizer = weakref.finalize(self, _remove, self.path)

    def remove(self) -> None:
        """Remove the file now; a second call does nothing."""
        self._finalizer()


def unfolded(path: Path) -> ScratchFile:
    """The content of the gzipped file `path` in a scratch file, within gzip's budget."""
    scratch = ScratchFile()
    try:
        with BoundedGzip(path) as source, scratch.path.open("wb") as target:
            while block := source.read(_COPY_BYTES):
                target.write(block)
    except OSError as error:
        scratch.remove()
        raise _no_room(path, "its decompressed content", error) from error
    except UnreadableFile:
        scratch.remove()
        raise
    return scratch


def _no_room(path: Path, what: str, error: OSError) -> UnreadableFile:
    folder = tempfile.gettempdir()
    return UnreadableFile(
        f"no room for {what} in {folder} ({error.strerror or error})",
        where=path,
        way_out="free some space or let TMPDIR name a folder with more of it",
    )


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except PermissionError:  # Windows, while an array still maps the file
        atexit.register(_remove_quietly, path)


def _remove_quietly(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return
