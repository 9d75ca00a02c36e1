"""Find the file or folder for a path or name: on disk, in a cache, or over the network.

Only a name with a scheme leads to the network.
"""

from dataclasses import dataclass
from pathlib import Path

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import argument
from embgeo.files.guard import refuse, suggest_file
from embgeo.io.places import names
from embgeo.io.places.cache import find_revision, find_whole_snapshot
from embgeo.io.places.kept import KeptFolder, find_kept, open_kept

#: ``org/name`` with one of these endings is a path, not a model of the Hub.
FILE_ENDINGS = frozenset(
    {".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".npy", ".npz", ".gguf", ".h5", ".keras"}
    | {".parquet", ".feather", ".arrow", ".csv", ".tsv", ".txt", ".vec", ".json", ".jsonl", ".gz"}
)


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Where to read a source."""

    #: File or folder on this machine; of a remote one the folder of its configuration.
    path: Path
    #: Path or name as the user wrote it.
    given: str
    #: Name of the matrix; empty to take it from the path.
    name: str = ""
    #: Note on the commit in the Hub's cache, or empty.
    note: str = ""
    #: The remote folder, of which no file has to be on this machine.
    kept: KeptFolder | None = None


def find_place(path: Path | str) -> SourcePlace:
    """Find a file or folder: on disk, in a cache, or over the network if `path` has a scheme."""
    given = names.as_written(path)
    refuse_if(not given, argument("path"), "is empty", "name a file or a folder")
    if names.is_remote(given):
        hub = names.read_hub_name(given)
        if hub is not None and (snapshot := find_whole_snapshot(hub)) is not None:
            return _of_cache(snapshot / hub.path, given, hub.text)
        return _of_kept(open_kept(given), names.hide_secrets(given))
    path = Path(given)
    try:
        if path.exists():
            return _of_path(path, given)
        bare = None if path.parent.exists() else names.read_bare_name(given)
    except OSError:  # a name that is too long, for instance: opening it gives the error
        bare = None
    # Neither stdin nor a member of an archive.
    is_word = path.name == given and not path.suffix and given != "-" and ":" not in given
    if bare is None and is_word:
        raise refuse(
            given,
            "there is no such file",
            suggest_file(
                path,
                "a model on the Hub is named with its organization, as in "
                "hf://openai-community/gpt2",
            ),
        )
    if bare is None:
        return SourcePlace(path, given)
    if (snapshot := find_whole_snapshot(bare)) is not None:
        return _of_cache(snapshot, given, bare.text)
    if (kept := find_kept(bare)) is not None:
        return _of_kept(kept.without_network(), given)
    if path.suffix in FILE_ENDINGS:
        return SourcePlace(path, given)
    raise refuse(
        given,
        "there is no such file, and no such model in the cache",
        f"if it is a model on the Hub, name it {bare.text}",
    )


def _of_kept(kept: KeptFolder, given: str) -> SourcePlace:
    return SourcePlace(kept.path, given, names.short_name(given), kept=kept)


def _of_path(path: Path, given: str) -> SourcePlace:
    """Return the path itself, or the snapshot in a folder ``models--org--name``."""
    snapshot = find_revision(path) if path.name.startswith("models--") else None
    if snapshot is None:
        return SourcePlace(path, given)
    return _of_cache(snapshot, given, path.name.rpartition("--")[2])


def _of_cache(found: Path, given: str, name: str) -> SourcePlace:
    commit = next((p.name for p in (found, *found.parents) if p.parent.name == "snapshots"), "")
    return SourcePlace(
        found, given, names.short_name(name), f"commit {commit[:12]} of the Hub's cache"
    )
