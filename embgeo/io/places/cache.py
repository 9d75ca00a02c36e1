"""Two caches on this machine: the Hub's, and embgeo's own, which has the same layout.

The layout of the Hub's cache is public: ``models--org--name/refs/REVISION`` holds a commit, and
``snapshots/COMMIT`` is a model folder. This module reads it without huggingface_hub.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

from embgeo.core.errors import UnreadableFile, writing
from embgeo.files.links import is_foreign_link
from embgeo.files.saved import copy_file, write_file
from embgeo.files.small_files import read_json
from embgeo.io.formats.model_folder import WEIGHTS
from embgeo.io.places.names import HubName
from embgeo.io.places.ranges import PIECE_BYTES, RemoteFile

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# The shortest commit that git prints; fewer digits may be the name of a branch.
_FEWEST_DIGITS = 7
_LONGEST_REFERENCE = 1000
_OFF = ("", "0", "OFF", "NO", "FALSE")


def hub_cache() -> Path:
    """Return the Hub's cache folder, by the environment variables of huggingface_hub."""
    for variable, below in (
        ("HF_HUB_CACHE", ""),
        ("HUGGINGFACE_HUB_CACHE", ""),
        ("HF_HOME", "hub"),
        ("XDG_CACHE_HOME", "huggingface/hub"),
    ):
        if value := os.environ.get(variable):
            return Path(os.path.expandvars(value)).expanduser() / below
    return Path.home() / ".cache/huggingface/hub"


def own_cache() -> Path:
    """Return the folder of what embgeo keeps: ``$EMBGEO_CACHE``, or in the user's cache."""
    if value := os.environ.get("EMBGEO_CACHE"):
        return Path(value).expanduser()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "embgeo"


def hash_text(text: str) -> str:
    """Return a short hexadecimal hash of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_offline() -> bool:
    """Tell whether the environment forbids the network: ``HF_HUB_OFFLINE``."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() not in _OFF


def is_commit(revision: str) -> bool:
    """Tell whether a revision is the full hash of a commit, which never moves."""
    return _COMMIT.fullmatch(revision) is not None


def repository_folder(name: HubName) -> str:
    """Name of a repository's folder in a cache."""
    return f"{name.kind}s--{name.repo.replace('/', '--')}"


def find_revision(folder: Path, revision: str = "main") -> Path | None:
    """Find the snapshot of a branch, tag, commit or unique start of a commit in a repository."""
    snapshots = folder / "snapshots"
    commit = read_reference(folder, revision) or revision
    found = []
    if is_commit(commit):
        found = [snapshots / commit]
    elif re.fullmatch(rf"[0-9a-f]{{{_FEWEST_DIGITS},63}}", commit) and snapshots.is_dir():
        found = [one for one in snapshots.iterdir() if one.name.startswith(commit)]
    if len(found) != 1 or not found[0].is_dir():
        return None
    # The user may name the folder of a stranger, whose links would lead to other models.
    is_inside = found[0].resolve() == folder.resolve() / "snapshots" / found[0].name
    return found[0] if is_inside else None


def read_reference(folder: Path, revision: str) -> str | None:
    """Read the commit that a branch or tag had when it was fetched."""
    for name in (revision, quote(revision, safe="")):
        file = folder / "refs" / name
        try:
            # A stranger's folder may hold a pipe or an endless file.
            if not file.is_file() or file.stat().st_size > _LONGEST_REFERENCE:
                continue
            commit = file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        return commit if is_commit(commit) else None
    return None


def list_kept_revisions(name: HubName) -> dict[str, str]:
    """List commits by branch or tag, for all of a repository in either cache."""
    own = repository_folder(name)
    found: dict[str, str] = {}
    for home in (hub_cache() / own, own_cache() / own):
        for file in sorted((home / "refs").rglob("*")):
            revision = unquote(file.relative_to(home / "refs").as_posix())
            commit = read_reference(home, revision)
            if commit is not None and not is_commit(revision):
                found.setdefault(revision, commit)
    return found


def keep_reference(home: Path, revision: str, commit: str) -> None:
    """Record the commit of a revision in a repository's folder of the own cache."""
    reference = home / "refs" / quote(revision, safe="")
    with writing(reference, "set EMBGEO_CACHE to another folder"):
        reference.parent.mkdir(parents=True, exist_ok=True)
        write_file(reference, commit)


def find_whole_snapshot(name: HubName) -> Path | None:
    """Find the snapshot of a name in the Hub's cache if all of its files are there."""
    snapshot = find_revision(hub_cache() / repository_folder(name), name.revision)
    return snapshot if snapshot is not None and is_complete(snapshot / name.path) else None


def is_complete(folder: Path) -> bool:
    """Tell whether `folder` is a file, or a model folder with all of its weights."""
    if not folder.is_dir():
        return folder.is_file()
    weights = next((file for name in WEIGHTS if (file := folder / name).is_file()), None)
    if weights is None:
        return False
    if not weights.name.endswith(".json"):
        return True
    try:
        index = read_json(weights)
        return all((folder / shard).is_file() for shard in index["weight_map"].values())
    except (UnreadableFile, LookupError, TypeError, AttributeError):
        return False


class SnapshotFolder:
    """Files of a snapshot in the Hub's cache; a `RemoteFolder`."""

    def __init__(self, name: HubName, snapshot: Path) -> None:
        self.name, self.commit = name.text, snapshot.name
        inside = snapshot / name.path
        self.chosen = inside.name if inside.is_file() else ""
        self._folder = inside.parent if self.chosen else inside
        self.files: dict[str, RemoteFile] = {
            file.name: RemoteFile(file.stat().st_size)
            for file in self._folder.iterdir()
            if file.is_file() and not is_foreign_link(file)
        }

    def stream(self, file: str, start: int, stop: int) -> Iterator[bytes]:
        with (self._folder / file).open("rb") as opened:
            opened.seek(start)
            while start < stop and (piece := opened.read(min(PIECE_BYTES, stop - start))):
                start += len(piece)
                yield piece

    def save(self, file: str, target: Path) -> None:
        copy_file((self._folder / file).resolve(), target, link=True)
