"""Object stores and web servers, read by ranges or whole files through fsspec."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from embgeo.core.errors import EmbgeoError
from embgeo.files.guard import Damaged, refuse
from embgeo.files.small_files import is_plain_name
from embgeo.io.places.ranges import RemoteFile

#: fsspec's names for what identifies a version of a file.
_VERSIONS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "created")


class StoreFolder:
    """Files of a folder, or one file and its siblings; a `RemoteFolder`."""

    def __init__(self, name: str) -> None:
        self.name = name
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            way_out = "pip install 'embgeo[remote]'"
            raise refuse(name, "remote files need an extra package", way_out) from error
        with _translate_errors(name):
            self._store, root = url_to_fs(name)
            entry = self._store.info(root)
            self.chosen = "" if entry["type"] == "directory" else _file_name(root)
            self._root = root if not self.chosen else root.rpartition("/")[0]
            # A web server lists no folders.
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
        with _translate_errors(self.name), self._open(file) as opened:
            opened.seek(start)
            yield opened.read(stop - start)

    def save(self, file: str, target: Path) -> None:
        with _translate_errors(self.name):
            self._store.get_file(self._place(file), str(target))

    def _open(self, file: str) -> Any:
        # Without a cache, fsspec reads the requested bytes and no others; over HTTP it refuses a
        # response that is not the requested range.
        return self._store.open(self._place(file), "rb", cache_type="none")

    def _place(self, file: str) -> str:
        return f"{self._root}/{file}" if self._root else file


def _file_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].partition("?")[0]


@contextmanager
def _translate_errors(name: str) -> Iterator[None]:
    """Turn errors of fsspec and of the network into one line."""
    try:
        yield
    except (EmbgeoError, Damaged):
        raise
    except Exception as error:
        raise refuse(name, *_explain(name, error)) from error


def _explain(name: str, error: Exception) -> tuple[str, str]:
    """Explain an error of fsspec: its cause and a way out."""
    if isinstance(error, ImportError):
        return (
            f"{name.partition('://')[0]}:// needs a package of fsspec that is not installed",
            "pip install 'embgeo[remote]', and what fsspec names for it",
        )
    if isinstance(error, FileNotFoundError):
        return "there is no such file", "check the name"
    if isinstance(error, PermissionError):
        return "permission to read it is denied", "check the credentials of the store"
    why = " ".join(str(error).split())[:80] or type(error).__name__
    cause = f"it could not be read ({type(error).__name__}: {why})"
    return cause, "check the name and the connection"
