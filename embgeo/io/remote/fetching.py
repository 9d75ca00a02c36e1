"""From a remote name to a model folder in the own cache; the only way to the network."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from embgeo.core.errors import writing
from embgeo.core.source import Source
from embgeo.io.bounded.saved import write_text
from embgeo.io.remote.cache import (
    choice_key,
    find_revision,
    find_whole_snapshot,
    hash_text,
    own_cache,
    repository_folder,
)
from embgeo.io.remote.hub import HubFolder
from embgeo.io.remote.names import as_written, read_hub_name
from embgeo.io.remote.ranges import Hear, RemoteFile, RemoteFolder
from embgeo.io.remote.reduced import Fetching
from embgeo.io.remote.snapshots import SnapshotFolder
from embgeo.io.remote.source_record import read_source
from embgeo.io.remote.stores import StoreFolder


def open_remote(name: str) -> RemoteFolder:
    """The files under a remote name, at this moment.

    Raises
    ------
    UnreadableFile, BadOption
        There is nothing, it may not be read, or ``HF_HUB_OFFLINE`` forbids to look.
    """
    hub = read_hub_name(name)
    if hub is None:
        return StoreFolder(as_written(name))
    return HubFolder(hub)


def fetch_into_cache(
    name: str,
    source: Source,
    *,
    whole: bool = False,
    refresh: bool = False,
    hear: Hear | None = None,
    known: Sequence[Path] = (),
) -> Path:
    """The reduced model folder of a remote name; what is in the cache is not fetched again.

    Parameters
    ----------
    name : str
        With a scheme.
    source : Source
        Which tensors, and how many bytes at most.
    whole : bool
        Fetch the files with weights whole.
    refresh : bool
        Look whether the branch or tag has moved since it was fetched.
    hear : callable, optional
        ``hear(done, total)``, in bytes.
    known : sequence of Path
        Reduced folders of other commits; the one of the same weights is given, by the SHA-256 that
        the Hub states, and nothing is fetched.

    Raises
    ------
    UnreadableFile, BadOption
        In one line, whatever the other side sends.
    """
    hub = read_hub_name(name)
    key = choice_key("" if hub is None else hub.path, source, whole=whole)
    own = f"store--{hash_text(name)}" if hub is None else repository_folder(hub)
    home = own_cache() / key / own
    if hub is not None and not refresh and (found := find_revision(home, hub.revision)):
        return found
    snapshot = None if hub is None or refresh else find_whole_snapshot(hub)
    folder = open_remote(name) if hub is None or snapshot is None else SnapshotFolder(hub, snapshot)
    with closing(folder):
        same = next((one for one in known if has_same_weights(one, folder)), None)
        if same is not None:
            return same
        target = home / "snapshots" / folder.commit
        Fetching(folder, source, hear).run(target, whole=whole)
    if hub is not None:
        reference = home / "refs" / quote(hub.revision, safe="")
        with writing(reference, "set EMBGEO_CACHE to another folder"):
            reference.parent.mkdir(parents=True, exist_ok=True)
            write_text(reference, folder.commit)
    return target


def has_same_weights(known: Path, folder: RemoteFolder) -> bool:
    """Whether the files that a reduced folder was made of are in a remote folder, unchanged."""
    record = read_source(known)
    return record is not None and all(
        file.sha256 and folder.files.get(file.name) == RemoteFile(file.size, file.sha256)
        for file in record.files
    )
