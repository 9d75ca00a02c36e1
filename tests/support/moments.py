"""What a folder holds at every moment of a program that writes to it.

A process that is killed leaves what is on the disk. So the folder is read before each call that
changes files, and each state it was in is what being killed there would have left.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from embgeo.files.saved import PREFIX

#: Contents of files by their paths in the folder; None of a folder.
State = dict[str, bytes | None]

_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
#: What hears of each call; a hook cannot be removed.
_LISTENERS: list[Callable[[], None]] = []


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _LISTENERS and (event in _CHANGES or (event == "open" and arguments[2] & _WRITES)):
        for listener in _LISTENERS:
            listener()


@contextmanager
def moments(folder: Path) -> Iterator[list[State]]:
    """The states that the folder goes through, in order; the last one is that at the end."""
    if not hasattr(sys, "_hears_changes"):
        sys.addaudithook(_hear)
        sys._hears_changes = True  # type: ignore[attr-defined]
    states = [state_of(folder)]

    def look() -> None:
        found = state_of(folder)
        if found != states[-1]:
            states.append(found)

    _LISTENERS.append(look)
    try:
        yield states
    finally:
        _LISTENERS.remove(look)
        look()


def state_of(folder: Path) -> State:
    found: State = {}
    for path in sorted(folder.rglob("*")):
        found[path.relative_to(folder).as_posix()] = path.read_bytes() if path.is_file() else None
    return found


def put(state: State, folder: Path) -> Path:
    """Make a folder that is in a state."""
    folder.mkdir(parents=True)
    for name, content in state.items():
        if content is None:
            (folder / name).mkdir(exist_ok=True)
        else:
            (folder / name).write_bytes(content)
    return folder


def drop_temporary(state: State) -> State:
    """Without temporary files and folders, which nobody reads."""
    return {
        name: content
        for name, content in state.items()
        if not any(part.startswith(PREFIX) for part in name.split("/"))
    }
