"""Stamps of files, to detect changes after they were opened."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from embgeo.core.errors import UnreadableFile


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Size, time of the last change, and identity of a file."""

    path: str
    size: int
    changed: int
    inode: int
    device: int

    @classmethod
    def of(cls, path: Path | str) -> Self:
        """Return the present stamp of a file; OSError if it cannot be read."""
        found = os.stat(path)
        return cls(str(path), found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev)

    def check(self, *, at_end: bool = False) -> None:
        """Refuse a file that was written to, and `at_end` one that another has replaced.

        Until then a replaced file can be read from its map.
        """
        try:
            now = FileStamp.of(self.path)
        except OSError:  # removed: nothing is taken for what it is not
            return
        is_same = (now.device, now.inode) == (self.device, self.inode)
        if now != self and (is_same or at_end):
            how = "changed" if is_same else "replaced"
            raise UnreadableFile(
                f"the file was {how} while it was measured", where=self.path, way_out="run again"
            )
