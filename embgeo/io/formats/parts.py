"""The files of a checkpoint that is spread over several: found by name, inside one folder only."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.guard import Damaged, short


def find_shard(folder: Path, name: str, what: str = "shard") -> Path:
    """The file `name` of `folder`, as an index or other metadata beside it names it.

    Parameters
    ----------
    folder : Path
    name : str
    what : str
        What it is called in errors.

    Raises
    ------
    Damaged
        A name with folders in it, or a link that leads out of the folder.
    UnreadableFile
        There is no such file.
    """
    shard = folder / _plain_file_name(name, what)
    if not shard.is_file():
        raise UnreadableFile(
            f"the {what} {short(name)} is missing",
            where=folder,
            way_out=f"put every {what} that the index names beside it",
        )
    _refuse_foreign_link(folder, shard, what)
    return shard


def _plain_file_name(name: str, what: str) -> str:
    whole = PurePosixPath(name).name == name == PureWindowsPath(name).name
    if not whole or name in ("", ".", "..") or not name.isprintable():
        raise Damaged(f"the index names the {what} {short(name)}, which is no plain file name")
    return name


def _refuse_foreign_link(folder: Path, shard: Path, what: str) -> None:
    """A link may not lead out of the folder, except into the blobs of Hugging Face's cache."""
    target = shard.resolve()
    allowed = [folder.resolve()]
    if folder.resolve().parent.name == "snapshots":
        allowed.append(folder.resolve().parent.parent / "blobs")
    if target.parent not in allowed:
        raise Damaged(
            f"the {what} {shard.name} is a link that leads out of the folder",
            "put the file itself into the folder",
        )
