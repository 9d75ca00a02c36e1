"""Stamps of files, to detect changes after they were opened."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from embgeo.core.errors import UnreadableFile


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Size, time of the last change and inode of a file."""

    path: str
    size: int
    changed: int
    inode: int

    @classmethod
    def of(cls, path: Path | str) -> Self:
        """The present stamp of a file; OSError if it cannot be read."""
        found = os.stat(path)
        return cls(str(path), found.st_size, found.st_mtime_ns, found.st_ino)

    def check(self) -> None:
        """Refuse a file that was written to; a replaced file can still be read from its map."""
        try:
            now = FileStamp.of(self.path)
        except OSError:
            return
        if now.inode == self.inode and now != self:
            raise UnreadableFile(
                "the file was changed while it was measured", where=self.path, way_out="run again"
            )
