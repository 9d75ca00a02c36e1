"""Ranges of remote files: read, retried where a response ends early, and resumed.

Implementations of :class:`RemoteFolder` check that each response is for the requested range.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from embgeo.files.guard import Damaged, short
from embgeo.files.records import digest_of
from embgeo.files.small_files import JSON_BYTES

#: Bytes per request, and the number of concurrent requests.
PIECE_BYTES = 32 * 2**20
WORKERS = 8
#: Attempts per range, and the seconds before the second one, doubled before each further one.
ATTEMPTS = 4
WAIT = 1.0
#: A connection that brings fewer bytes a second over these seconds is given up.
LEAST_RATE, PATIENCE = 1024, 60.0

ReportBytes = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """Size and SHA-256 as the server states them; the latter may be empty."""

    size: int
    sha256: str = ""


class RemoteFolder(Protocol):
    """The files of a remote folder at one commit."""

    #: Remote name, for messages.
    name: str
    #: Identifies the content of all files; hexadecimal.
    commit: str
    #: The file that the user named; empty for the whole folder.
    chosen: str
    #: Files by plain name.
    files: dict[str, RemoteFile]

    def stream(self, file: str, start: int, stop: int) -> Iterator[bytes]:
        """Yield bytes `start` to `stop`; fewer if the connection breaks."""
        ...

    def save(self, file: str, target: Path) -> None:
        """Write a whole file to `target`."""
        ...


@dataclass(frozen=True, slots=True)
class FilePart:
    """Bytes `start` to `stop` of a remote file, stored from byte `at` of a local one."""

    file: str
    start: int
    stop: int
    at: int

    @property
    def size(self) -> int:
        return self.stop - self.start

    def pieces(self) -> Iterator[FilePart]:
        """Split the part into pieces of one request each."""
        for start in range(self.start, self.stop, PIECE_BYTES):
            stop = min(start + PIECE_BYTES, self.stop)
            yield FilePart(self.file, start, stop, self.at + start - self.start)


def read_range(folder: RemoteFolder, file: str, start: int, stop: int) -> bytes:
    """Read a short range into memory; raises Damaged if it leaves the file or does not arrive."""
    return b"".join(stream_all(folder, file, start, stop))


def save_small(folder: RemoteFolder, file: str, target: Path) -> None:
    """Save a configuration, tokenizer or index; raises Damaged if it is implausibly large."""
    size = folder.files[file].size
    if size > JSON_BYTES:
        raise Damaged(f"{short(file)} has {size:,} bytes, which is implausible")
    folder.save(file, target)


def check_range(file: str, status: int, stated: str, start: int, stop: int, size: int) -> None:
    """Refuse a response that is not the requested range, before its first byte is read."""
    if status != 206:
        raise Damaged(
            f"the server ignores ranges (status {status}): all {size:,} bytes of {short(file)} "
            "would come",
            "fetch it with hf download or curl, and name its folder",
        )
    expected = f"bytes {start}-{stop - 1}/{size}"
    if stated != expected:
        cause = f"the server sends {short(stated) or 'no range'} in place of {expected}"
        raise Damaged(f"{short(file)}: {cause}")


def require_encryption(url: str, visited: Iterable[str]) -> None:
    """Refuse a response to which an address with encryption has led over one without."""
    if url.startswith("https:") and not all(one.startswith("https:") for one in visited):
        raise Damaged("the server redirects to an address without encryption")


def stream_all(folder: RemoteFolder, file: str, start: int, stop: int) -> Iterator[bytes]:
    """Yield all bytes of a range; request again what a broken connection left out."""
    if not 0 <= start <= stop <= folder.files[file].size:
        raise Damaged(f"{short(file)} promises bytes beyond its end")
    for attempt in range(ATTEMPTS):
        if start == stop:
            return
        if attempt:
            time.sleep(WAIT * 2 ** (attempt - 1))
        began, first = time.monotonic(), start
        for piece in folder.stream(file, start, stop):
            if len(piece) > stop - start:
                raise Damaged(f"the server sends more of {short(file)} than it was asked for")
            start += len(piece)
            yield piece
            seconds = time.monotonic() - began
            if seconds > PATIENCE and start - first < LEAST_RATE * seconds:
                raise Damaged(f"the server sends {short(file)} at less than 1 kB a second")
    if start < stop:
        raise Damaged(f"{short(file)} ends early, {ATTEMPTS} times")


def check_digest(path: Path, file: str, stated: str) -> str:
    """Return the SHA-256 of what was fetched of a file; refuse another than is stated, if any."""
    digest = digest_of(path)
    if stated and digest != stated:
        path.unlink()
        raise Damaged(f"{short(file)} has another SHA-256 than the Hub states")
    return digest


def download(
    folder: RemoteFolder, parts: Sequence[FilePart], target: Path, report: ReportBytes | None = None
) -> None:
    """Write parts of remote files into `target` with concurrent requests.

    Skips what an earlier call has written: pieces in the list next to `target`, or all of a file
    of full length that has no such list.
    """
    list_path = target.with_name(f"{target.name}.pieces")
    pieces = [piece for part in parts for piece in part.pieces()]
    total = sum(piece.size for piece in pieces)
    there: set[str] = set()
    if target.is_file() and list_path.is_file():
        there = set(list_path.read_text().split())
    elif target.is_file() and target.stat().st_size == max(
        (piece.at + piece.size for piece in pieces), default=0
    ):
        return
    lock, stopped = threading.Lock(), threading.Event()
    with target.open("r+b" if there else "wb") as out, list_path.open("a" if there else "w") as log:
        done = 0

        def fetch(piece: FilePart) -> None:
            nonlocal done
            at = piece.at
            if str(at) not in there:
                for data in stream_all(folder, piece.file, piece.start, piece.stop):
                    if stopped.is_set():
                        return
                    with lock:
                        out.seek(at)
                        out.write(data)
                    at += len(data)
            with lock:
                out.flush()
                os.fsync(out.fileno())
                log.write(f"{piece.at}\n")
                log.flush()
                done += piece.size
                if report is not None:
                    report(done, total)

        with ThreadPoolExecutor(WORKERS) as pool:
            try:
                for one in [pool.submit(fetch, piece) for piece in pieces]:
                    one.result()
            except BaseException:
                stopped.set()
                pool.shutdown(cancel_futures=True)
                raise
    list_path.unlink()
