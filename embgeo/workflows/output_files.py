"""Sets of files that belong together: written whole, and only over what embgeo wrote before."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embgeo.core.errors import BadOption, EmbgeoError, argument

ANOTHER = f"choose another folder with {argument('out')}"


def is_ours(record: Path, form: str) -> bool:
    """Whether `record` is a JSON file whose ``format`` is `form`."""
    try:
        said = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(said, dict) and said.get("format") == form


def check_free(folder: Path, name: str, suffixes: tuple[str, ...], form: str) -> None:
    """Refuse to write ``NAME.suffix`` over files without a record of ours beside them."""
    record = folder / f"{name}.json"
    try:
        if folder.exists() and not folder.is_dir():
            raise BadOption("is no folder", where=folder, way_out=ANOTHER)
        taken = [
            path
            for suffix in (*suffixes, ".json")
            if (path := folder / f"{name}{suffix}").exists() or path.is_symlink()
        ]
    except OSError as error:  # too long a name, a loop of links, a folder that may not be read
        cause = f"cannot be used: {error.strerror or error}"
        raise BadOption(cause, where=folder, way_out=ANOTHER) from error
    if taken and not is_ours(record, form):
        raise BadOption(
            "exists and was not made by this command",
            where=taken[0],
            way_out=ANOTHER,
        )


def write_set(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by name into `folder`, which is made if need be; each appears whole.

    All are written under another name first: nothing appears where one of them cannot be written.
    """
    fresh: Path | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".embgeo.", dir=folder))
        for name, content in files.items():
            (fresh / name).write_bytes(content)
        for name in files:
            os.replace(fresh / name, folder / name)
    except OSError as error:
        raise EmbgeoError(
            f"cannot be written: {error.strerror or error}",
            where=folder,
            way_out=ANOTHER,
        ) from error
    finally:
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)


def record_bytes(record: Mapping[str, Any]) -> bytes:
    """A record of how files came about, as JSON."""
    return (json.dumps(record, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode()
