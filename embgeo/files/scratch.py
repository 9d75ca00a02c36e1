"""Memory or temporary files for content that cannot be a map of the user's file."""

import atexit
import math
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.files.guard import Damaged

#: Larger arrays are in an unnamed temporary file.
MEMORY_BYTES = 256 * 2**20


def empty(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """Return an array to be filled, in memory or in an unnamed temporary file."""
    size = np.dtype(dtype).itemsize * math.prod(shape)
    if size <= MEMORY_BYTES:
        return np.empty(shape, dtype=dtype)
    with _find_room(f"{size / 2**20:,.0f} MiB of vectors"), tempfile.TemporaryFile() as file:
        # Reserve the blocks now: a full disk behind a map ends the process with SIGBUS.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)


def fill_rows(
    blocks: Iterable[npt.NDArray[Any]],
    shape: tuple[int, ...],
    dtype: npt.DTypeLike = np.float32,
) -> npt.NDArray[Any]:
    """Copy blocks of rows into a read-only array; raises Damaged if they do not have its shape."""
    out = empty(shape, dtype)
    row = 0
    for block in blocks:
        if block.shape[1:] != shape[1:] or row + len(block) > shape[0]:
            break
        out[row : row + len(block)] = block
        row += len(block)
    if row != shape[0]:
        raise Damaged("the file changed while it was read")
    out.flags.writeable = False
    return out


class ScratchFile:
    """A temporary file that is removed with this object, at the latest with the process.

    As a context manager it is removed at the end of the block.
    """

    def __init__(self) -> None:
        handle, name = tempfile.mkstemp(prefix="embgeo-")
        os.close(handle)
        self.path = Path(name)
        self._finalizer = weakref.finalize(self, _remove, self.path)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the file now; a second call has no effect."""
        self._finalizer()


def write_scratch(pieces: Iterable[bytes], what: str) -> ScratchFile:
    """Write `pieces` to a scratch file, which an error removes; `what` names them in errors."""
    with _find_room(what):
        scratch = ScratchFile()
    try:
        # Without a buffer, whose last bytes would fail when the file is closed.
        with scratch.path.open("wb", buffering=0) as target:
            for piece in pieces:
                left = memoryview(piece)
                while left:
                    with _find_room(what):
                        left = left[target.write(left) :]
    except BaseException:
        scratch.remove()
        raise
    return scratch


@contextmanager
def _find_room(what: str) -> Iterator[None]:
    """Turn what a full disk raises into an error that names the folder for temporary files."""
    try:
        yield
    except OSError as error:
        raise Damaged(
            f"no room for {what} in {tempfile.gettempdir()} ({error.strerror or error})",
            "set TMPDIR to a folder with more space",
        ) from error


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
