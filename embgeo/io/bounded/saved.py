"""Files that embgeo writes, whole or not at all, and reads back with suspicion."""

from __future__ import annotations

import os
import tempfile
import zipfile
import zlib
from pathlib import Path

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
