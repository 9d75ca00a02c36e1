"""Files that embgeo writes, whole or not at all, and reads back with suspicion."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

from embgeo.core.errors import UnreadableFile

#: What reading damaged JSON or a damaged archive raises.
DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


class AtomicFile:
    """A temporary path beside `target`, renamed to it on success and removed otherwise."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __enter__(self) -> Path:
        handle, name = tempfile.mkstemp(prefix=f".{self.target.name}.", dir=self.target.parent)
        os.close(handle)
        self.temporary = Path(name)
        return self.temporary

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            # mkstemp makes files private; results are meant to be shared like any other file.
            mask = os.umask(0)
            os.umask(mask)
            self.temporary.chmod(0o666 & ~mask)
            self.temporary.replace(self.target)
        else:
            self.temporary.unlink(missing_ok=True)


def write_text(target: Path, text: str) -> None:
    """Write UTF-8 text with Unix line ends, whole or not at all."""
    with AtomicFile(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def read_json(
    path: Path, given: Path, version: tuple[str, int], what: str, again: str
) -> dict[str, Any]:
    """The content of a file that embgeo wrote, in the format and version that are wanted.

    Parameters
    ----------
    path : Path
    given : Path
        What the user named: where there is no file, the message is about that.
    version : tuple of str and int
        Format and format version.
    what : str
        What the file holds, as in "an analysis".
    again : str
        How to make another one.

    Raises
    ------
    UnreadableFile
    """
    try:
        d = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UnreadableFile(f"no {path.name} here", where=given, way_out=again) from error
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableFile(f"not readable as {what} ({error})", where=path) from error
    if not isinstance(d, dict) or d.get("format") != version[0]:
        raise UnreadableFile(f"not {what} that embgeo wrote", where=path)
    if d.get("format_version") != version[1]:
        raise UnreadableFile(
            f"format version {d.get('format_version')!r}, this embgeo reads {version[1]}",
            where=path,
            way_out=again,
        )
    return d
