"""What a file was when it was opened, by which a change is seen."""

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
        """The stamp of a file as it is now.

        Raises
        ------
        OSError
        """
        found = os.stat(path)
        return cls(str(path), found.st_size, found.st_mtime_ns, found.st_ino)

    def check(self) -> None:
        """Refuse a file that was written to; one that another has replaced can still be read."""
        try:
            now = FileStamp.of(self.path)
        except OSError:
            return
        if now.inode == self.inode and now != self:
            raise UnreadableFile(
                "the file was changed while it was measured", where=self.path, way_out="run again"
            )
