"""Parts of remote files: read by ranges, tried again where a body ends early, and resumed.

Every byte is asked for by its place, and whoever answers has to say that it sends that place:
see the folders that implement :class:`RemoteFolder`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from embgeo.io.bounded.guard import Damaged, short

#: Bytes of one request, and how many are under way at a time.
PIECE_BYTES = 32 * 2**20
WORKERS = 8
#: Attempts for one range, and the seconds before the second one, doubled before each further one.
ATTEMPTS = 4
WAIT = 1.0
TRY_AGAIN = "try again: what has arrived is kept"

ReportBytes = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """Its size, and the SHA-256 that the server states; empty where it states none."""

    size: int
    sha256: str = ""


class RemoteFolder(Protocol):
    """The files of one folder somewhere else, at one moment.

    Attributes
    ----------
    name : str
        As the user writes it, for messages.
    commit : str
        What identifies the content of all files; hexadecimal.
    chosen : str
        The file that the user named; empty where it is the folder.
    files : dict of str to RemoteFile
        By plain file name.
    """

    name: str
    commit: str
    chosen: str
    files: dict[str, RemoteFile]

    def stream(self, file: str, start: int, stop: int) -> Iterator[bytes]:
        """Bytes `start` to `stop`; ends early where the connection does."""
        ...

    def save(self, file: str, target: Path) -> None:
        """A small file, whole."""
        ...

    def close(self) -> None:
        """Give connections back."""
        ...


@dataclass(frozen=True, slots=True)
class FilePart:
    """Bytes `start` to `stop` of a remote file, and where they begin in a local one."""

    file: str
    start: int
    stop: int
    at: int

    @property
    def size(self) -> int:
        return self.stop - self.start

    def pieces(self) -> Iterator[FilePart]:
        """The part in pieces of one request each."""
        for start in range(self.start, self.stop, PIECE_BYTES):
            stop = min(start + PIECE_BYTES, self.stop)
            yield FilePart(self.file, start, stop, self.at + start - self.start)


def read_range(folder: RemoteFolder, file: str, start: int, stop: int) -> bytes:
    """A short range in memory.

    Raises
    ------
    Damaged
        It leaves the file, or does not arrive.
    """
    return b"".join(_stream_all(folder, file, start, stop))


def _stream_all(folder: RemoteFolder, file: str, start: int, stop: int) -> Iterator[bytes]:
    """All bytes of a range; what a broken connection left out is asked for again."""
    if not 0 <= start <= stop <= folder.files[file].size:
        raise Damaged(f"{short(file)} promises bytes beyond its end")
    for attempt in range(ATTEMPTS):
        if start == stop:
            return
        if attempt:
            time.sleep(WAIT * 2 ** (attempt - 1))
        for piece in folder.stream(file, start, stop):
            if len(piece) > stop - start:
                raise Damaged(f"the server sends more of {short(file)} than it was asked for")
            start += len(piece)
            yield piece
    if start < stop:
        raise Damaged(f"{short(file)} ends early, {ATTEMPTS} times", TRY_AGAIN)


def download(
    folder: RemoteFolder, parts: Sequence[FilePart], target: Path, report: ReportBytes | None = None
) -> None:
    """Write parts of remote files into `target`, several at a time.

    What an earlier call has written is not fetched again: pieces in the list next to `target`, or a
    file of the full length that has no such list.

    Raises
    ------
    Damaged
        As :func:`read_range`.
    OSError
        The disk is full, for instance.
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
                for data in _stream_all(folder, piece.file, piece.start, piece.stop):
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
