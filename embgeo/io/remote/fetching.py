"""From a remote name to its headers, or to a model folder in the own cache, over the network."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from embgeo.core.source import Source
from embgeo.io.bounded.guard import reading
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.formats.model_folder import read_configuration
from embgeo.io.remote.cache import (
    SnapshotFolder,
    choice_key,
    find_revision,
    find_whole_snapshot,
    hash_text,
    is_offline,
    keep_reference,
    own_cache,
    read_reference,
    repository_folder,
)
from embgeo.io.remote.choice import list_weights
from embgeo.io.remote.hub import HubFolder
from embgeo.io.remote.names import HubName, as_written, read_hub_name
from embgeo.io.remote.ranges import RemoteFile, RemoteFolder, ReportBytes, save_small
from embgeo.io.remote.reduced import Fetching
from embgeo.io.remote.source_record import bytes_text, read_source
from embgeo.io.remote.stores import StoreFolder
from embgeo.io.remote.tensors import as_checkpoint

_CONFIGURATION = "config.json"


def open_remote(name: str) -> RemoteFolder:
    """List the files under a remote name."""
    hub = read_hub_name(name)
    return StoreFolder(as_written(name)) if hub is None else HubFolder(hub)


def fetch_into_cache(
    name: str,
    source: Source,
    *,
    whole: bool = False,
    refresh: bool = False,
    report: ReportBytes | None = None,
    known: Sequence[Path] = (),
) -> Path:
    """Fetch a remote model into the own cache, unless it is there, and return its folder.

    `source` selects tensors and limits the bytes; `whole` fetches all weights files instead, and
    `refresh` checks whether the branch or tag has moved. Nothing is fetched if one of the reduced
    folders `known` has the same weights, by the SHA-256 that the Hub states.
    """
    hub = read_hub_name(name)
    key = choice_key("" if hub is None else hub.path, source, whole=whole)
    own = f"store--{hash_text(name)}" if hub is None else repository_folder(hub)
    home = own_cache() / key / own
    if hub is not None and not refresh and (found := find_revision(home, hub.revision)):
        return found
    snapshot = None if hub is None or refresh else find_whole_snapshot(hub)
    folder = open_remote(name) if hub is None or snapshot is None else SnapshotFolder(hub, snapshot)
    target = next((one for one in known if has_same_weights(one, folder)), None)
    if target is None:
        target = home / "snapshots" / folder.commit
        Fetching(folder, source, report).run(target, whole=whole)
    if hub is not None:
        keep_reference(home, hub.revision, target.name)
    return target


def open_headers(name: str) -> Checkpoint:
    """List the tensors of the files that may hold the embedding and the output projection."""
    folder = open_remote(name)
    with reading(folder.name, "model"):
        tensors, weights = list_weights(folder, Source())
        size = sum(folder.files[file].size for file in weights)
        seen = len({one.file for one in tensors})
        files = "1 file" if len(weights) == 1 else f"{len(weights):,} files"
        notes = [f"commit {folder.commit[:12]}; {bytes_text(size)} in {files}"]
        if seen < len(weights):
            notes.append(f"of these files {seen:,} are listed: no others hold what is analyzed")
        listed = as_checkpoint(folder, tensors)
        return replace(listed, tied=_is_tied(folder), notes=tuple(notes))


def _is_tied(folder: RemoteFolder) -> bool | None:
    if _CONFIGURATION not in folder.files:
        return None
    with tempfile.TemporaryDirectory(prefix="embgeo-") as scratch:
        save_small(folder, _CONFIGURATION, Path(scratch) / _CONFIGURATION)
        return read_configuration(Path(scratch)).tied


def keep_revision(name: HubName, source: Source, commit: str) -> None:
    """Record the commit of a branch or tag, so that it is found without the network."""
    if is_offline():
        return
    home = own_cache() / choice_key(name.path, source) / repository_folder(name)
    keep_reference(home, name.revision, read_reference(home, commit) or commit)


def has_same_weights(known: Path, folder: RemoteFolder) -> bool:
    """Whether a remote folder holds, unchanged, the files that a reduced folder was made of."""
    record = read_source(known)
    return record is not None and all(
        file.sha256 and folder.files.get(file.name) == RemoteFile(file.size, file.sha256)
        for file in record.files
    )
