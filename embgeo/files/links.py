"""Opening files of folders of unknown origin: what leads out of its folder is not read."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from embgeo.core.errors import UnreadableFile
from embgeo.files.guard import cannot_read, refuse

FOREIGN_LINK = "is a link that leads out of the folder"
COPY_IT = "copy the file itself with cp -L"


def is_foreign_link(path: Path) -> bool:
    """Tell whether a file is a link out of its folder, except into the blobs of a Hub cache.

    A downloaded folder may hold ``vocab.txt -> /etc/passwd``, and what is read goes into reports.
    """
    return _find_inner(path) is None


def _find_inner(path: Path) -> Path | None:
    """Return the file that a path leads to, None for a foreign link."""
    folder, target = path.parent.resolve(), path.resolve()
    holder = target.parent
    allowed = [folder]
    for above in folder.parents:
        if above.name == "snapshots":
            # Blobs of one model, and those of all models, in folders of two digits.
            shared = above.parent.parent / "blobs" / holder.name
            allowed += [above.parent / "blobs", *([shared] if len(holder.name) == 2 else [])]
    return target if holder in allowed else None


def open_file(path: Path, *, inside: bool = False) -> BinaryIO:
    """Open a regular file to read; with `inside` none that is outside of its folder.

    What is checked is the open file, which cannot be exchanged any more: its name may be that of
    another file since. A file that the user names may be any link.
    """
    try:
        file = open(path, "rb", opener=_open_now)  # noqa: SIM115
    except OSError as error:
        raise _not_regular(path) if path.is_dir() else cannot_read(path, error) from error
    try:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise _not_regular(path)
        inner = _find_inner(path) if inside else None
        if inside and (inner is None or not os.path.samestat(found, inner.lstat())):
            raise refuse(path, FOREIGN_LINK, COPY_IT)
    except BaseException:
        file.close()
        raise
    return file


def _not_regular(path: Path) -> UnreadableFile:
    return refuse(path, "is not a regular file", "write it to a file with cat")


def _open_now(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe does not block


def name_opened(file: BinaryIO) -> str:
    """Return a path for libraries that leads to an open file, whatever has its name now."""
    path = f"/dev/fd/{file.fileno()}"
    return path if os.path.exists(path) else str(file.name)
