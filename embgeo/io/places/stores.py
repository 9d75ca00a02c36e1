"""Object stores and web servers, read by ranges or whole files through fsspec."""

import hashlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from embgeo.files.guard import fetching, refuse
from embgeo.files.saved import write_file
from embgeo.files.small_files import is_plain_name
from embgeo.io.places import ranges
from embgeo.io.places.names import hide_secrets
from embgeo.io.places.ranges import RemoteFile

#: fsspec's names for what identifies a version of a file.
_VERSIONS = (
    "ETag",
    "etag",
    "Content-MD5",
    "md5Hash",
    "mtime",
    "Last-Modified",
    "LastModified",
    "last_modified",
    "created",
)


class StoreFolder:
    """Files of a folder, or one file and its siblings; a `RemoteFolder`."""

    def __init__(self, name: str) -> None:
        self.name = hide_secrets(name)
        with fetching(self.name, extra="remote"):
            from fsspec.core import url_to_fs

            self._is_web = name.startswith(("http://", "https://"))
            self._store, root = url_to_fs(name, **_limit_waiting() if self._is_web else {})
            entry = self._store.info(root)
            self.chosen = "" if entry["type"] == "directory" else _file_name(root)
            folder = root if not self.chosen else root.rpartition("/")[0]
            # A web server lists no folders.
            alone = self.chosen and self._is_web
            entries = [entry] if alone else self._store.ls(folder, detail=True)
        self.files: dict[str, RemoteFile] = {}
        #: By plain name, as the store names them; a URL with its query, which may be a signature.
        self._places: dict[str, str] = {}
        self._versions: dict[str, str] = {}
        for one in entries:
            size, file = one.get("size"), _file_name(str(one["name"]))
            if one["type"] == "file" and isinstance(size, int) and size > 0 and is_plain_name(file):
                self.files[file] = RemoteFile(size)
                self._places[file] = str(one["name"])
                self._versions[file] = _describe_version(one)
        if not self.files or (self.chosen and self.chosen not in self.files):
            raise refuse(self.name, "no file of a known size is there")
        versions = sorted(f"{file} {version}" for file, version in self._versions.items())
        self.commit = hashlib.sha256("\n".join(versions).encode()).hexdigest()

    def stream(self, file: str, start: int, stop: int) -> Iterator[bytes]:
        with fetching(self.name, extra="remote"):
            if self._is_web:
                yield from self._stream_web(file, start, stop)
            else:
                # Without a cache, fsspec reads the requested bytes and no others.
                with self._store.open(self._places[file], "rb", cache_type="none") as opened:
                    opened.seek(start)
                    yield opened.read(stop - start)

    def _stream_web(self, file: str, start: int, stop: int) -> Iterator[bytes]:
        """Yield bytes as they come, so that the caller gives up a server that is too slow."""
        from fsspec.asyn import sync

        url, size = self._places[file], self.files[file].size
        headers = {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
        with self._store.open(url, "rb", block_size=0, size=size, headers=headers) as opened:
            visited = (*opened.r.history, opened.r)
            ranges.require_encryption(url, (str(one.url) for one in visited))
            status, stated = opened.r.status, opened.r.headers.get("Content-Range", "")
            if status != 200 or start:  # the start of a file that comes whole will do
                ranges.check_range(file, status, stated, start, stop, size)
            # A timeout of the connection starts anew with what frames a body: sizes of chunks.
            read, loop = opened.r.content.read, self._store.loop
            while start < stop and (
                piece := sync(loop, read, min(stop - start, 2**20), timeout=ranges.PATIENCE)
            ):
                start += len(piece)
                yield piece
        self._require_same(file)

    def save(self, file: str, target: Path) -> None:
        if self._is_web:
            write_file(target, ranges.stream_all(self, file, 0, self.files[file].size))
            return
        with fetching(self.name, extra="remote"):
            self._store.get_file(self._places[file], str(target))

    def _require_same(self, file: str) -> None:
        """Refuse bytes of a file that a web server has replaced since it was listed."""
        with fetching(self.name, extra="remote"):
            now = _describe_version(self._store.info(self._places[file]))
        if now != self._versions[file]:
            raise refuse(self.name, "the server changed the file while it was read", "run it again")


def _limit_waiting() -> dict[str, Any]:
    """Limit the time to all headers of a response, in place of that to its end."""
    from aiohttp import ClientTimeout

    return {"client_kwargs": {"timeout": ClientTimeout(), "middlewares": [_await_headers]}}


async def _await_headers(request: Any, ask: Callable[[Any], Awaitable[Any]]) -> Any:
    import asyncio

    async with asyncio.timeout(ranges.PATIENCE):
        return await ask(request)


def _describe_version(entry: dict[str, Any]) -> str:
    stated = [f"{key}={entry[key]}" for key in _VERSIONS if entry.get(key)]
    return f"{entry.get('size')} {' '.join(stated)}"


def _file_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].partition("?")[0]
