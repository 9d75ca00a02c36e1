"""Saved results: frozen dataclasses as JSON files with a format and a version.

The fields of a dataclass are the schema: written in their order, read strictly. Arrays are lists in
the JSON file or, for fields with :func:`in_archive`, arrays of a compressed NumPy archive next to
it, which the JSON file names. A new version of a format needs an entry in `upgrades`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar, get_args, get_origin

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import UnreadableFile, writing
from embgeo.core.typed import WrongType, convert, key_of, schema
from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.saved import DAMAGE, AtomicFile, write_text
from embgeo.io.bounded.zip_members import open_archive

T = TypeVar("T")
Json = dict[str, Any]
Arrays = dict[str, npt.NDArray[Any]]

ARRAYS_NAME = "arrays.npz"
#: Key of the archive's SHA-256 in the JSON file; earlier versions have none.
DIGEST = "arrays_sha256"
_NO_DIGEST = "0" * 64
#: Arrays of more bytes than this, and this many times the size of their file, are refused: they
#: were made to fill the memory.
SMALL_ARRAYS = 256 * 2**20
MOST_GROWTH = 20


def in_archive(suffix: str = "", key: str | None = None) -> Mapping[str, Any]:
    """Metadata of a dataclass field whose array goes into the archive.

    The array's name is the path of the dataclass in the record and `suffix`; entries of tuples are
    called by their ``name`` or their index. `key` is the key in the JSON file.
    """
    return {"archive": suffix} if key is None else {"archive": suffix, "key": key}


@dataclass(frozen=True, slots=True)
class RecordFormat(Generic[T]):
    """The file format of the frozen dataclass `kind`."""

    #: As in ``"format": "embgeo.training"``.
    name: str
    version: int
    kind: type[T]
    #: Name of the JSON file in its folder.
    file: str
    #: For messages, as in "not a comparison of methods that embgeo wrote".
    what: str
    #: Way out of errors: how to make a new file.
    again: str
    #: Raises ValueError for a record that contradicts itself.
    check: Callable[[T], object] | None = None
    #: By version, converts the content of a file to that of the next version.
    upgrades: Mapping[int, Callable[[Json], Json]] = field(default_factory=dict)

    def to_json(self, record: T, arrays: Arrays | None = None) -> Json:
        """Content of the JSON file; adds arrays of the archive to `arrays`."""
        head = {"format": self.name, "format_version": self.version}
        return {**head, **plain(record, {} if arrays is None else arrays)}

    def from_json(self, content: Json, arrays: Arrays | None = None) -> T:
        """Make the record of a file's content; raises one of `DAMAGE` if it is damaged."""
        held = {} if arrays is None else arrays
        for version in range(content["format_version"], self.version):
            content = self.upgrades[version](content)
        table = {k: v for k, v in content.items() if k not in ("format", "format_version", DIGEST)}
        record: T = convert(
            table, self.kind, lambda value, hint: _array(value, hint, held), complete=True
        )
        if self.check is not None:
            self.check(record)
        return record

    def text(self, record: T, arrays: Arrays | None = None) -> str:
        """Text of the JSON file; raises ValueError for a number that is not finite."""
        return as_text(self.to_json(record, arrays))

    def save(self, record: T, folder: Path, more: Arrays | None = None) -> Path:
        """Write each file whole or not at all, the JSON file last; `more` are further arrays."""
        arrays: Arrays = dict(more or {})
        content = self.to_json(record, arrays)
        # Made before anything is written; the digest is inserted afterwards.
        text = as_text(content | {DIGEST: _NO_DIGEST} if arrays else content)
        with writing(folder, "choose another folder"):
            folder.mkdir(parents=True, exist_ok=True)
            if arrays:
                with AtomicFile(folder / ARRAYS_NAME) as temporary:
                    with temporary.open("wb") as stream:
                        np.savez_compressed(stream, allow_pickle=False, **arrays)
                    before, _, after = text.rpartition(_NO_DIGEST)
                    text = f"{before}{digest_of(temporary)}{after}"
            write_text(folder / self.file, text)
        return folder / self.file

    def mark_unfinished(self, folder: Path, **kept: Any) -> None:
        """Replace the JSON file by a damaged one with the entries `kept`, until :meth:`save`."""
        head = {"format": self.name, "format_version": self.version}
        write_text(folder / self.file, as_text({**head, **kept}))

    def load(self, place: Path) -> T:
        """Read a record; `place` is its folder or JSON file."""
        path = place / self.file if place.is_dir() else place
        content = self.read(path, place)
        archive = path.parent / ARRAYS_NAME
        where = archive
        try:
            arrays = read_arrays(archive, content) if archive.is_file() else {}
            where = path
            return self.from_json(content, arrays)
        except DAMAGE as error:
            raise UnreadableFile(f"damaged ({error})", where=where, way_out=self.again) from error

    def read(self, path: Path, named: Path | None = None) -> Json:
        """Read a JSON file and check format and version; `named` is the path for errors."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
        except FileNotFoundError as error:
            where = named or path
            cause = "there is no such file" if where == path else f"no {path.name} here"
            raise UnreadableFile(cause, where=where, way_out=self.again) from error
        except (OSError, ValueError, RecursionError) as error:
            reason = "a binary file" if isinstance(error, UnicodeDecodeError) else error
            cause = f"not readable as {self.what} ({reason})"
            raise UnreadableFile(cause, where=path, way_out=self.again) from error
        if not isinstance(content, dict) or content.get("format") != self.name:
            raise UnreadableFile(f"not {self.what} that embgeo wrote", where=path)
        version = content.get("format_version")
        if version not in (*self.upgrades, self.version) or isinstance(version, bool):
            raise UnreadableFile(
                f"format version {version!r}, this embgeo reads {self.version}",
                where=path,
                way_out=self.again,
            )
        return content


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def as_text(content: Json) -> str:
    """Text of a JSON file; raises ValueError for a number that is not finite."""
    return json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def digest_of(path: Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_arrays(path: Path, content: Json) -> Arrays:
    """Read the archive next to a JSON file with this content; raises one of `DAMAGE`."""
    if content.get(DIGEST, saved := digest_of(path)) != saved:
        raise ValueError("the two files are of different runs")
    try:
        size = sum(member.size for member in open_archive(path).members.values())
    except Damaged as error:
        raise ValueError(str(error)) from error
    if size > max(SMALL_ARRAYS, MOST_GROWTH * path.stat().st_size):
        raise ValueError(f"the archive would grow to {size:,} bytes")
    # np.load would leave a file open if the archive is damaged.
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


def plain(value: Any, arrays: Arrays, path: str = "") -> Any:
    """Convert a value to JSON's types."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_fields(value, arrays, path)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(entry, arrays, f"{path}/{key}") for key, entry in value.items()}
    if isinstance(value, tuple | list):
        names = [getattr(entry, "name", place) for place, entry in enumerate(value)]
        pairs = zip(value, names, strict=True)
        return [plain(entry, arrays, f"{path}/{name}") for entry, name in pairs]
    return value


def _plain_fields(record: Any, arrays: Arrays, path: str) -> Json:
    found: Json = {}
    for entry, _ in schema(record.__class__):
        value, key = getattr(record, entry.name), key_of(entry)
        if entry.metadata.get("inline"):
            found |= _plain_fields(value, arrays, path)
        elif value is not None and "archive" in entry.metadata:
            found[key] = f"{path}/{entry.metadata['archive']}".strip("/")
            arrays[found[key]] = value
        else:
            found[key] = plain(value, arrays, f"{path}/{entry.name}")
    return found


def _array(value: Any, hint: Any, arrays: Arrays) -> npt.NDArray[Any]:
    """Make an array of a list, or take it from the archive; `hint` names the kind of numbers."""
    if get_origin(hint) is not np.ndarray:
        raise WrongType(value, hint)
    kind = np.dtype(*get_args(get_args(hint)[1]))
    if isinstance(value, str):
        if value not in arrays:
            raise ValueError(f"{ARRAYS_NAME} does not hold {value!r:.60}")
        array = arrays[value]
        if array.dtype.kind != kind.kind:
            raise ValueError(f"{value!r} in {ARRAYS_NAME} holds {array.dtype}")
        return array
    if not isinstance(value, list):
        raise WrongType(value, hint)
    return np.asarray(value, dtype=kind)
