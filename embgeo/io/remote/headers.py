"""A remote checkpoint as its headers show it; no tensor is read."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

from embgeo.core.source import Source
from embgeo.io.bounded.guard import reading
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.formats.model_folder import read_configuration
from embgeo.io.remote.choice import list_weights
from embgeo.io.remote.fetching import open_remote
from embgeo.io.remote.ranges import RemoteFolder
from embgeo.io.remote.source_record import bytes_text

_CONFIGURATION = "config.json"


def open_headers(name: str) -> Checkpoint:
    """The tensors of the files that may hold the embedding and the output projection."""
    with closing(open_remote(name)) as folder, reading(folder.name, "model"):
        tensors, weights = list_weights(folder, Source())
        first_names: dict[object, str] = {}
        listed = tuple(one.as_tensor(first_names) for one in tensors)
        size = sum(folder.files[file].size for file in weights)
        seen = len({one.file for one in tensors})
        files = "1 file" if len(weights) == 1 else f"{len(weights):,} files"
        notes = [f"commit {folder.commit[:12]}; {bytes_text(size)} in {files}"]
        if seen < len(weights):
            notes.append(f"of these files {seen:,} are listed: no others hold what is analyzed")
        path = Path(folder.name.partition("://")[2])
        return Checkpoint(
            path, "headers of a remote model", listed, (), tied=_is_tied(folder), notes=tuple(notes)
        )


def _is_tied(folder: RemoteFolder) -> bool | None:
    if _CONFIGURATION not in folder.files:
        return None
    with tempfile.TemporaryDirectory(prefix="embgeo-") as scratch:
        folder.save(_CONFIGURATION, Path(scratch) / _CONFIGURATION)
        return read_configuration(Path(scratch)).tied
