"""Files next to a named file or in a named folder, which the user did not name."""

from pathlib import Path, PurePosixPath, PureWindowsPath

from embgeo.io.bounded.guard import refuse

FOREIGN_LINK = "is a link that leads out of the folder"
COPY_IT = "put the file itself into the folder"


def is_plain_name(name: str) -> bool:
    """Tell whether a name from an index or a listing is a file in its own folder on any system."""
    is_whole = PurePosixPath(name).name == name == PureWindowsPath(name).name
    return is_whole and name not in ("", ".", "..") and name.isprintable()


def is_foreign_link(path: Path) -> bool:
    """Tell whether a file is a link out of its folder, except into the blobs of a Hub cache.

    A downloaded folder may hold ``vocab.txt -> /etc/passwd``, and what is read goes into reports.
    """
    folder, holder = path.parent.resolve(), path.resolve().parent
    allowed = [folder]
    for above in folder.parents:
        if above.name == "snapshots":
            # Blobs of one model, and those of all models, in folders of two digits.
            shared = above.parent.parent / "blobs" / holder.name
            allowed += [above.parent / "blobs", *([shared] if len(holder.name) == 2 else [])]
    return holder not in allowed


def is_companion(path: Path) -> bool:
    """Tell whether there is such a file.

    Raises UnreadableFile if it is a link out of its folder.
    """
    if not path.is_file():
        return False
    if is_foreign_link(path):
        raise refuse(path, FOREIGN_LINK, COPY_IT)
    return True
