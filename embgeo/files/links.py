"""Links in folders of unknown origin: files that lead out of their folder are not read."""

import os
from pathlib import Path

from embgeo.files.guard import refuse

FOREIGN_LINK = "is a link that leads out of the folder"
COPY_IT = "copy the file itself with cp -L"

#: Paths that were looked at and are not foreign links.
_LOOKED_AT: set[str] = set()


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
    if holder not in allowed:
        return True
    _LOOKED_AT.add(str(path))
    return False


def require_same(path: Path, handle: int) -> None:
    """Refuse an open file that was put there after `is_foreign_link` had looked at its name.

    What is open now cannot be exchanged any more: it has to be the file that the name leads to
    inside the folder. A file that the user names may be any link.
    """
    if str(path) not in _LOOKED_AT:
        return
    if is_foreign_link(path) or not os.path.samestat(os.fstat(handle), path.resolve().lstat()):
        raise refuse(path, FOREIGN_LINK, COPY_IT)
