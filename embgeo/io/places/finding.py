"""Find the file or folder for a path or name: on disk, in a cache, or over the network.

Only a name with a scheme leads to the network.
"""

from dataclasses import dataclass
from pathlib import Path

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import EmbgeoError, argument
from embgeo.files.guard import refuse, suggest_file
from embgeo.files.maps import number_type
from embgeo.files.small_files import read_json
from embgeo.io.places import names
from embgeo.io.places.cache import find_revision, find_snapshot, find_whole_snapshot
from embgeo.io.places.kept import KeptFolder, find_kept, open_kept
from embgeo.io.places.local import read_facts
from embgeo.io.places.source_record import bytes_text

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
        return _of_kept(open_kept(given), given)
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
        f"if it is a model on the Hub, name it {bare.text}{_expected_size(bare)}",
    )


def _of_kept(kept: KeptFolder, given: str) -> SourcePlace:
    return SourcePlace(kept.path, given, names.short_name(given), kept=kept)


def _expected_size(name: names.HubName) -> str:
    """Estimate the bytes to fetch for a model from its small files in the Hub's cache."""
    snapshot = find_snapshot(name)
    if snapshot is None:
        return ""
    try:
        known = read_facts(snapshot)
        width = number_type(known.dtype or "float32").itemsize
        entries = (known.vocabulary or 0) * (known.columns or 0)
        needed = bytes_text((2 if known.tied is False else 1) * entries * width)
        index = snapshot / "model.safetensors.index.json"
        total = read_json(index)["metadata"]["total_size"] if index.is_file() else 0
        stated = f" of {bytes_text(int(total))}" if total else ""
    except (EmbgeoError, ArithmeticError, LookupError, TypeError, ValueError):
        return ""
    return f" (fetches about {needed}{stated})" if entries else ""


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
