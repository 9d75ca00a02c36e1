"""A model that lies whole in the Hub's cache, as a folder that parts are read of."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from embgeo.io.bounded.companions import is_foreign_link
from embgeo.io.remote.names import HubName
from embgeo.io.remote.ranges import PIECE_BYTES, RemoteFile


class SnapshotFolder:
    """The files of a snapshot; see :class:`embgeo.io.remote.ranges.RemoteFolder`.

    Parameters
    ----------
    name : HubName
    snapshot : Path
        The folder of the commit.
    """

    def __init__(self, name: HubName, snapshot: Path) -> None:
        self.name, self.commit = name.text, snapshot.name
        inside = snapshot / name.path
        self.chosen = inside.name if inside.is_file() else ""
        self._folder = inside.parent if self.chosen else inside
        self.files: dict[str, RemoteFile] = {
            file.name: RemoteFile(file.stat().st_size)
            for file in self._folder.iterdir()
            if file.is_file() and not is_foreign_link(file)
        }

    def stream(self, file: str, start: int, stop: int) -> Iterator[bytes]:
        """A piece after the other."""
        with (self._folder / file).open("rb") as opened:
            opened.seek(start)
            while start < stop and (piece := opened.read(min(PIECE_BYTES, stop - start))):
                start += len(piece)
                yield piece

    def save(self, file: str, target: Path) -> None:
        """A copy."""
        shutil.copyfile(self._folder / file, target)

    def close(self) -> None:
        """Nothing is open."""
