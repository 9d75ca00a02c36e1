"""What embgeo saves: frozen dataclasses as a JSON file with a format and a version.

A :class:`RecordFormat` says how a dataclass is called on disk. Its fields are the schema: written
in their order, read strictly. Arrays are lists in the JSON file, or, for fields with
:func:`in_archive`, arrays of a compressed NumPy archive next to it, which the JSON file names.

A format evolves by a new version and an entry in `upgrades`, so that files of each earlier version
are still read.
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

from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.core.typed import WrongType, convert, key_of, schema
from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.saved import DAMAGE, AtomicFile, write_text
from embgeo.io.bounded.zip_members import open_archive

T = TypeVar("T")
Json = dict[str, Any]
Arrays = dict[str, npt.NDArray[Any]]

ARRAYS_NAME = "arrays.npz"
#: Key of the JSON file with the SHA-256 of the archive; files of earlier versions have none.
DIGEST = "arrays_sha256"
_NO_DIGEST = "0" * 64
#: Arrays of more bytes than the first that are this many times as large as their file were made to
#: fill the memory.
SMALL_ARRAYS = 256 * 2**20
MOST_GROWTH = 20


def in_archive(suffix: str = "", key: str | None = None) -> Mapping[str, Any]:
    """Metadata of a dataclass field whose array belongs into the archive.

    Parameters
    ----------
    suffix : str
        Last part of the array's name; before it comes the path of the dataclass in the record,
        where an entry of a tuple is called by its ``name``, or else by its index.
    key : str, optional
        Of the array's name in the JSON file.
    """
    return {"archive": suffix} if key is None else {"archive": suffix, "key": key}


@dataclass(frozen=True, slots=True)
class RecordFormat(Generic[T]):
    """A dataclass on disk.

    Attributes
    ----------
    name : str
        As in ``"format": "embgeo.training"``.
    version : int
    kind : type
        A frozen dataclass.
    file : str
        Name of the JSON file in its folder.
    what : str
        As in "not a comparison of methods that embgeo wrote".
    again : str
        How to make another one.
    check : callable, optional
        Raises ValueError where the parts of a record do not belong together.
    upgrades : dict of int to callable
        By version: the content of a file of this version as that of the next one.
    bare : bool
        Whether ``"format": 1`` alone is a file of version 1, as embgeo 0.1 wrote it.
    """

    name: str
    version: int
    kind: type[T]
    file: str
    what: str
    again: str
    check: Callable[[T], object] | None = None
    upgrades: Mapping[int, Callable[[Json], Json]] = field(default_factory=dict)
    bare: bool = False

    def to_json(self, record: T, arrays: Arrays | None = None) -> Json:
        """The content of the JSON file; arrays of the archive are added to `arrays`."""
        head = {"format": self.name, "format_version": self.version}
        return {**head, **plain(record, {} if arrays is None else arrays)}

    def from_json(self, content: Json, arrays: Arrays | None = None) -> T:
        """The record of a JSON file's content, which may be of an earlier version.

        Raises
        ------
        ValueError, LookupError, TypeError
            Damaged.
        """
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
        """The JSON file; ValueError for a number that is not finite."""
        return as_text(self.to_json(record, arrays))

    def save(self, record: T, folder: Path, beside: Arrays | None = None) -> Path:
        """Write the files into `folder`, each whole or not at all, the JSON file last.

        Parameters
        ----------
        record : dataclass
        folder : Path
        beside : dict of str to array, optional
            Arrays for the archive that no field of the record names.
        """
        arrays: Arrays = dict(beside or {})
        content = self.to_json(record, arrays)
        # Once, before anything is written: the digest, which comes last, is put in afterwards.
        text = as_text(content | {DIGEST: _NO_DIGEST} if arrays else content)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if arrays:
                with AtomicFile(folder / ARRAYS_NAME) as temporary:
                    with temporary.open("wb") as stream:
                        np.savez_compressed(stream, allow_pickle=False, **arrays)
                    before, _, after = text.rpartition(_NO_DIGEST)
                    text = f"{before}{digest_of(temporary)}{after}"
            write_text(folder / self.file, text)
        except OSError as error:
            raise EmbgeoError(
                f"cannot be written: {error.strerror or error}",
                where=folder,
                way_out="choose another folder",
            ) from error
        return folder / self.file

    def mark_unfinished(self, folder: Path, **kept: Any) -> None:
        """Put a file in the place of an earlier one that is refused as damaged until :meth:`save`.

        Parameters
        ----------
        folder : Path
        **kept
            Entries that :meth:`read` still gives.
        """
        head = {"format": self.name, "format_version": self.version}
        write_text(folder / self.file, as_text({**head, **kept}))

    def load(self, place: Path) -> T:
        """Read what :meth:`save` wrote; `place` is the folder or the JSON file."""
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
        """The content of a JSON file, its format and version checked; `named` is for errors."""
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
        if self.bare and isinstance(content, dict) and content.get("format") == 1:
            content |= {"format": self.name, "format_version": 1}
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
    """The text of a JSON file; ValueError for a number that is not finite."""
    return json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def digest_of(path: Path) -> str:
    """SHA-256 in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_arrays(path: Path, content: Json) -> Arrays:
    """All arrays of the archive that belongs to the JSON file with this content.

    Raises
    ------
    One of `DAMAGE`
        Damaged, of another run, or much larger than its file.
    """
    if content.get(DIGEST, saved := digest_of(path)) != saved:
        raise ValueError("the two files are of different runs")
    try:
        size = sum(member.size for member in open_archive(path).members.values())
    except Damaged as error:
        raise ValueError(str(error)) from error
    if size > max(SMALL_ARRAYS, MOST_GROWTH * path.stat().st_size):
        raise ValueError(f"the archive would grow to {size:,} bytes")
    # Opened here: np.load leaves its own file open where the archive turns out to be damaged.
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


def plain(value: Any, arrays: Arrays, path: str = "") -> Any:
    """A value as JSON has it."""
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
    """An array from a list or from the archive, of the kind of numbers that `hint` names."""
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
