"""Remote folders of which everything that was read is kept on this machine.

In the folder of embgeo's cache for a repository or store:

- ``refs/REVISION`` holds a commit;
- ``snapshots/COMMIT/`` holds configuration and tokenizer, with ``listing.json`` of all files there;
- ``parts/VERSION/START-STOP.SHA256`` is a range of a file, under the version of the file.

A part gets its name when it is complete, and is believed if its bytes have that SHA-256.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import EmbgeoError, UnreadableFile, argument, writing
from embgeo.core.progress import announce
from embgeo.files.guard import Missing, reading, refuse, short
from embgeo.files.maps import Bytes, Ranged, map_file
from embgeo.files.records import RecordFormat, digest_of
from embgeo.files.saved import DAMAGE, atomic_file, remove_left, write_file
from embgeo.io.formats.format import Folder
from embgeo.io.places import cache, ranges
from embgeo.io.places.hub import HubFolder
from embgeo.io.places.local import CONFIGURATIONS
from embgeo.io.places.names import HubName, as_written, read_hub_name
from embgeo.io.places.source_record import (
    SourceFile,
    bytes_text,
    list_files,
    not_as_fetched,
)
from embgeo.io.places.stores import StoreFolder

#: Configuration and tokenizer.
SMALL_FILES = (
    *CONFIGURATIONS,
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.json",
    "chat_template.jinja",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "spiece.model",
    "spm.model",
    "sentencepiece.model",
    "sentencepiece.bpe.model",
    "trainer_state.json",
)
#: Larger downloads by ranges are announced; those of whole files always are.
ANNOUNCED_BYTES = 10**9
#: Fewest bytes of a request: a header is read in one.
LEAST_BYTES = 16 * 2**10
# Other programs write to the same disk while a model is fetched.
_SPARE_BYTES = 64 * 2**20
_PART = re.compile(r"(\d{1,19})-(\d{1,19})\.([0-9a-f]{64})")
_WAY_OUT = "choose another folder with the environment variable EMBGEO_CACHE"


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a remote folder at one commit, and those that are kept whole."""

    commit: str
    files: tuple[SourceFile, ...]
    kept: tuple[SourceFile, ...]


LISTING = RecordFormat(
    name="embgeo.listing",
    version=1,
    kind=Listing,
    file="listing.json",
    what="a listing of a remote folder",
    again="remove this folder and fetch it again",
)


class KeptFolder:
    """The files of a remote folder at one commit, a `Folder`; what is read is fetched once."""

    is_here = False

    def __init__(
        self,
        name: str,
        listing: Listing,
        path: Path,
        chosen: str,
        connect: Callable[[], ranges.RemoteFolder],
    ) -> None:
        #: As the user wrote it: files of one folder share a listing.
        self.name = name
        self.commit = listing.commit
        #: The folder of its configuration and tokenizer on this machine.
        self.path = path
        #: The file that the user named; empty for the whole folder.
        self.chosen = chosen
        self.files = {one.name: ranges.RemoteFile(one.size, one.sha256) for one in listing.files}
        self.report: ranges.ReportBytes | None = None
        #: The most bytes of tensors to fetch.
        self.most: int | None = None
        #: Indexes of shards that were opened.
        self.indexes: list[str] = []
        self._connect = connect
        self._remote: ranges.RemoteFolder | None = None
        #: Files that a library needed whole, by name.
        self.whole: dict[str, Path] = {}
        self._log: list[tuple[str, int, int]] = []
        self._checked: set[Path] = set()

    @property
    def weights(self) -> dict[str, ranges.RemoteFile]:
        """The files other than configuration and tokenizer."""
        return {name: one for name, one in self.files.items() if name not in SMALL_FILES}

    @property
    def sizes(self) -> dict[str, int]:
        return {name: one.size for name, one in self.weights.items()}

    def open(self, file: str) -> Bytes:
        """Return the bytes of a file, which are fetched where they are read."""
        whole = partial(self.fetch_whole, file)
        return Ranged(partial(self.read, file), whole, 0, self.files[file].size)

    def open_named(self, name: str, what: str) -> Bytes:
        if name not in self.files:
            raise Missing(f"{what} {short(name)} of the index was not found")
        return self.open(name)

    def siblings(self) -> dict[str, Folder]:
        return {}

    def read(self, file: str, start: int, stop: int) -> npt.NDArray[np.uint8]:
        """Map bytes `start` to `stop` of a file, after they were fetched."""
        self._log.append((file, start, stop))
        known = self._find_part(file, start, stop)
        if known is None:
            end = min(max(stop, start + LEAST_BYTES), self.files[file].size)
            known = start, self._fetch(file, start, end)
        first, path = known
        return map_file(path)[start - first : stop - first]

    def fetch_whole(self, file: str) -> Path:
        """Return the path of a whole file, after it was fetched and its size was said."""
        size, home = self.files[file].size, self._parts(file)
        known = self._find_part(file, 0, size)
        if known is None:
            self.check_room(size, size)
            announce(f"{self.name}: fetching {bytes_text(size)}")
            with self._storing(home):
                self._connected().save(file, home / "whole.part")
                known = 0, self._keep(file, home / "whole.part", 0, size)
        self.whole[file] = known[1]
        return known[1]

    @contextmanager
    def logging(self) -> Iterator[list[tuple[str, int, int]]]:
        """Collect the ranges that are read inside the block: file, start and stop."""
        self._log = []
        yield self._log

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Call the folder on this machine by its remote name in errors."""
        try:
            yield
        except EmbgeoError as error:
            if self.chosen:  # the name is that of the file
                error = error.rename(str(self.path / self.chosen), self.name)
            raise error.rename(str(self.path), self.name) from error

    def check_room(self, total: int, size: int) -> None:
        """Refuse to fetch more bytes than the user or the disk allows; `size` is of all files."""
        stated = f"{bytes_text(total)} of {bytes_text(size)} would be fetched"
        if self.most is not None and total > self.most:
            cause = f"{stated}, more than {bytes_text(self.most)}"
            raise refuse(self.name, cause, f"raise {argument('max_download', 'SIZE')}")
        free = shutil.disk_usage(self.path).free
        if total + _SPARE_BYTES > free:
            cause = f"{stated}, and {bytes_text(free)} are free in {cache.own_cache()}"
            raise refuse(self.name, cause, "make room, or set EMBGEO_CACHE to another disk")

    def _parts(self, file: str) -> Path:
        known = self.files[file]
        version = known.sha256 or cache.hash_text(str(self.path / file))
        return cache.own_cache() / "parts" / version

    def _find_part(self, file: str, start: int, stop: int) -> tuple[int, Path] | None:
        """Find the kept part that holds these bytes, with its first byte."""
        home = self._parts(file)
        for path in sorted(home.iterdir()) if home.is_dir() else ():
            found = _PART.fullmatch(path.name)
            if found is None or not int(found[1]) <= start <= stop <= int(found[2]):
                continue
            self._check_part(path, found)
            return int(found[1]), path
        return None

    def _check_part(self, path: Path, named: re.Match[str]) -> None:
        if path in self._checked:
            return
        if digest_of(path) != named[3] or path.stat().st_size != int(named[2]) - int(named[1]):
            raise not_as_fetched(path, "remove it and fetch the model again")
        self._checked.add(path)

    def _fetch(self, file: str, start: int, stop: int) -> Path:
        home, remote = self._parts(file), self._connected()
        target = home / f"{start}-{stop}.part"
        with self._storing(home):
            if stop - start <= ranges.PIECE_BYTES:
                write_file(target, ranges.read_range(remote, file, start, stop))
            else:
                ranges.download(
                    remote, [ranges.FilePart(file, start, stop, 0)], target, self.report
                )
            return self._keep(file, target, start, stop)

    def _keep(self, file: str, target: Path, start: int, stop: int) -> Path:
        """Give a complete part its name; a whole file has the SHA-256 that the server states."""
        known = self.files[file]
        stated = known.sha256 if stop - start == known.size else ""
        digest = ranges.check_digest(target, file, stated)
        path = target.with_name(f"{start}-{stop}.{digest}")
        target.replace(path)
        self._checked.add(path)
        return path

    @contextmanager
    def _storing(self, home: Path) -> Iterator[None]:
        with reading(self.name, "model"), writing(home, _WAY_OUT):
            home.mkdir(parents=True, exist_ok=True)
            yield

    def without_network(self) -> KeptFolder:
        """Return the folder; what is not kept of it is refused."""

        def refuse_connecting() -> ranges.RemoteFolder:
            cause = "is not in the cache as a whole"
            raise refuse(self.name, cause, f"to fetch the rest, name it {self.name}")

        self._connect = refuse_connecting
        return self

    def _connected(self) -> ranges.RemoteFolder:
        """Return the folder over the network, which is still of the same files."""
        if self._remote is None:
            found = self._connect()
            if found.commit != self.commit or found.files != self.files:
                raise refuse(self.name, "has changed since it was listed")
            self._remote = found
        return self._remote


def find_kept(name: HubName) -> KeptFolder | None:
    """Find a folder of the Hub whose listing is kept, without the network.

    Its bytes may be asked of the network unless it is forbidden.
    """
    home = _home(name)
    snapshot = cache.find_revision(home, name.revision)
    if snapshot is None:
        return None
    inside = snapshot / name.path
    for folder, chosen in ((inside, ""), (inside.parent, inside.name)):
        listing = read_listing(folder) if folder.is_relative_to(snapshot) else None
        if listing is not None and (not chosen or chosen in {one.name for one in listing.files}):
            at = HubName(name.repo, listing.commit, name.path, name.kind)
            return KeptFolder(name.text, listing, folder, chosen, partial(HubFolder, at))
    return None


def keep_revision(name: HubName, commit: str) -> None:
    """Record the commit of a branch or tag, so that it is found without the network."""
    if not cache.is_offline():
        cache.keep_reference(_home(name), name.revision, commit)


def read_listing(folder: Path) -> Listing | None:
    """Read the listing of a folder whose small files are as they were fetched; None without one."""
    path = folder / LISTING.file
    if not path.is_file():
        return None
    try:
        listing = LISTING.from_json(LISTING.read(path))
        is_same = list_files(folder, LISTING.file) == listing.kept
    except (UnreadableFile, OSError, *DAMAGE):
        is_same = False
    if not is_same:
        raise not_as_fetched(folder)
    return listing


def open_kept(name: str, *, refresh: bool = False) -> KeptFolder:
    """Open a remote folder: its listing and small files, from the cache or over the network.

    `refresh` checks whether the branch or tag has moved.
    """
    hub = read_hub_name(name)
    if hub is not None and not refresh and (found := find_kept(hub)) is not None:
        return found
    snapshot = None if hub is None or refresh else cache.find_whole_snapshot(hub)
    remote: ranges.RemoteFolder
    if hub is None:
        remote = StoreFolder(as_written(name))
    else:
        remote = HubFolder(hub) if snapshot is None else cache.SnapshotFolder(hub, snapshot)
    home = _home(hub) if hub is not None else cache.own_cache() / f"store--{cache.hash_text(name)}"
    below = "" if hub is None else hub.path.removesuffix(remote.chosen).strip("/")
    folder = home / "snapshots" / remote.commit / below
    if (listing := read_listing(folder)) is None:
        listing = _keep_small_files(remote, folder)
    if hub is not None:
        cache.keep_reference(home, hub.revision, remote.commit)
    kept = KeptFolder(remote.name, listing, folder, remote.chosen, lambda: remote)
    kept._remote = remote
    return kept


def _keep_small_files(remote: ranges.RemoteFolder, folder: Path) -> Listing:
    with reading(remote.name, "model"), writing(folder, _WAY_OUT):
        folder.mkdir(parents=True, exist_ok=True)
        for name in SMALL_FILES:
            if name in remote.files and not (folder / name).is_file():
                with atomic_file(folder / name) as temporary:
                    ranges.save_small(remote, name, temporary)
        remove_left(folder)
        files = tuple(SourceFile(n, one.size, one.sha256) for n, one in remote.files.items())
        listing = Listing(remote.commit, files, list_files(folder, LISTING.file))
        LISTING.save(listing, folder)
    return listing


def _home(name: HubName) -> Path:
    return cache.own_cache() / cache.repository_folder(name)
