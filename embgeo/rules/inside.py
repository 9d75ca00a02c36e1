"""Names in a settings file stay inside its folder, or inside the repository that holds it.

A settings file may come with a stranger's checkout, and what is read goes into public logs.
"""

import os
from pathlib import Path

from embgeo.core.errors import BadOption, argument


def find_root(folder: Path) -> Path:
    """Find the root of the repository that holds a folder, else the folder itself.

    A repository of the whole home folder does not count.
    """
    folder, home = folder.absolute(), Path(os.path.expanduser("~"))
    for one in (folder, *folder.parents):
        if one == home or one in home.parents:
            break
        if (one / ".git").exists():
            return one
    return folder


def require_inside(name: str, path: Path, what: str) -> None:
    """Raise BadOption for a name in the settings file `path` that leads out of its root.

    `what` is the setting, as in "tokens of [analyze]".
    """
    root = find_root(path.parent)
    if cause := describe_escape(name, path.parent.absolute(), root):
        way_out = f"name a file inside, or trust the settings with {argument('trust_settings')}"
        raise BadOption(f"{what} {cause}: {name!r:.200}", where=path, way_out=way_out)


def describe_escape(name: str, folder: Path, root: Path) -> str:
    """Describe how a name leads out of `root`; empty if it stays inside."""
    # Also in the middle: a path relative to the working folder can begin there.
    if ":/" in name:
        return "is a remote name"
    if "\0" in name:
        return "is no name of a file"
    # A member of an archive is called ARCHIVE::MEMBER.
    for text in (name, name.partition("::")[0]):
        if Path(text).anchor:
            return "is not a relative path"
        if not Path(os.path.normpath(folder / text)).is_relative_to(root):
            return f"leads out of {root}"
        try:
            real = (folder / text).resolve()
        except (OSError, RuntimeError):
            return "is a circle of links"
        if not real.is_relative_to(root.resolve()):
            return f"is a link out of {root}"
    return ""
