"""Folders of object stores and web servers, read by ranges through fsspec."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from embgeo.core.errors import EmbgeoError
from embgeo.io.bounded.companions import is_plain_name
from embgeo.io.bounded.guard import Damaged, refuse, short
from embgeo.io.bounded.small_files import JSON_BYTES
from embgeo.io.remote.ranges import RemoteFile, read_range

#: What a store says of a version of a file, by fsspec's names.
_VERSIONS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "created")


class StoreFolder:
    """The files of a folder, or one file and those next to it.

    Parameters
    ----------
    name : str
        ``s3://bucket/run``, for instance.

    Raises
    ------
    UnreadableFile
        fsspec or the package of the store is not installed, or there is no such file.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            way_out = "pip install 'embgeo[remote]'"
            raise refuse(name, "remote files need an extra package", way_out) from error
        with _answering(name):
            self._store, root = url_to_fs(name)
            entry = self._store.info(root)
            self.chosen = "" if entry["type"] == "directory" else _file_name(root)
            self._root = root if not self.chosen else root.rpartition("/")[0]
            # A web server lists nothing: the file alone is there.
            alone = self.chosen and name.startswith(("http://", "https://"))
            entries = [entry] if alone else self._store.ls(self._root, detail=True)
        self.files: dict[str, RemoteFile] = {}
        versions = []
        for one in entries:
            size, file = one.get("size"), _file_name(str(one["name"]))
            if one["type"] == "file" and isinstance(size, int) and size > 0 and is_plain_name(file):
                self.files[file] = RemoteFile(size)
                stated = [f"{key}={one[key]}" for key in _VERSIONS if one.get(key)]
                versions.append(f"{file} {size} {' '.join(stated)}")
        if not self.files or (self.chosen and self.chosen not in self.files):
            raise refuse(name, "no file of a known size is there", "check the name")
        self.commit = hashlib.sha256("\n".join(sorted(versions)).encode()).hexdigest()

    def stream(self, file: str, start: int, stop: int) -> Iterator[bytes]:
        """See :class:`embgeo.io.remote.ranges.RemoteFolder`."""
        with _answering(self.name), self._open(file) as opened:
            opened.seek(start)
            yield opened.read(stop - start)

    def save(self, file: str, target: Path) -> None:
        """Read whole, and written."""
        size = self.files[file].size
        if size > JSON_BYTES:
            raise Damaged(f"{short(file)} has {size:,} bytes, which is implausible")
        target.write_bytes(read_range(self, file, 0, size))

    def close(self) -> None:
        """fsspec keeps its connections."""

    def _open(self, file: str) -> Any:
        # Without a cache a file reads the requested bytes and no others; that of web servers
        # refuses an answer that is not the requested range.
        place = f"{self._root}/{file}" if self._root else file
        return self._store.open(place, "rb", cache_type="none")


def _file_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].partition("?")[0]


@contextmanager
def _answering(name: str) -> Iterator[None]:
    """What a store, or the way to it, refuses, in one line."""
    try:
        yield
    except (EmbgeoError, Damaged):
        raise
    except ImportError as error:
        scheme = name.partition("://")[0]
        cause = f"{scheme}:// needs a package of fsspec that is not installed"
        raise refuse(
            name, cause, "pip install 'embgeo[remote]', and what fsspec names for it"
        ) from error
    except FileNotFoundError as error:
        raise refuse(name, "there is no such file", "check the name") from error
    except PermissionError as error:
        way_out = "check the credentials of the store"
        raise refuse(name, "permission to read it is denied", way_out) from error
    except Exception as error:
        why = " ".join(str(error).split())[:80] or type(error).__name__
        cause = f"it could not be read ({type(error).__name__}: {why})"
        raise refuse(name, cause, "check the name and the connection") from error
