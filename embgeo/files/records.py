"""Records: frozen dataclasses in a JSON file, with an archive of arrays next to it.

Fields are saved in the order of the dataclass, arrays either as lists of the JSON file or, for
fields with :func:`in_archive`, as arrays of a compressed NumPy archive, which the JSON file names.
"""

import hashlib
import json
import math
import re
import types
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import UnreadableFile, writing
from embgeo.files.guard import Damaged, suggest_file
from embgeo.files.saved import DAMAGE, atomic_file, require_plain, write_file
from embgeo.files.zip_members import open_archive

T = TypeVar("T")
Json = dict[str, Any]
Arrays = dict[str, npt.NDArray[Any]]

ARRAYS_NAME = "arrays.npz"
#: Key of the archive's SHA-256 in the JSON file. A record without arrays has none: it may lie
#: next to the archive of another.
DIGEST = "arrays_sha256"
_NO_DIGEST = "0" * 64
#: Arrays of more bytes than this, and this many times the size of their file, are refused: they
#: were made to fill the memory.
SMALL_ARRAYS = 256 * 2**20
MOST_GROWTH = 20
#: The largest archive.
MOST_ARCHIVE = 2**40
#: An exponent of a number beyond the range of float.
_HUGE = re.compile(r"[eE]\+?\d{3}")


def in_archive(suffix: str = "", key: str | None = None) -> Mapping[str, Any]:
    """Return the metadata of a dataclass field whose array goes into the archive.

    The array's name is the path of the dataclass in the record and `suffix`; entries of tuples are
    called by their ``name`` or their index. `key` is the key in the JSON file.
    """
    return {"archive": suffix} if key is None else {"archive": suffix, "key": key}


class NewerFormat(UnreadableFile):
    """A file of a later version of its format."""


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

    def to_json(self, record: T, arrays: Arrays | None = None) -> Json:
        """Return the content of the JSON file; add the arrays of the archive to `arrays`."""
        head = {"format": self.name, "format_version": self.version}
        return {**head, **plain(record, {} if arrays is None else arrays)}

    def from_json(self, content: Json, arrays: Arrays | None = None) -> T:
        """Make the record of a file's content; raises one of `DAMAGE` if it is damaged."""
        import msgspec

        held = {} if arrays is None else arrays
        table = {k: v for k, v in content.items() if k not in ("format", "format_version", DIGEST)}
        record = msgspec.convert(
            arrange(table, self.kind),
            self.kind,
            dec_hook=lambda hint, value: _array(value, hint, held),
        )
        if self.check is not None:
            self.check(record)
        return record

    def text(self, record: T, arrays: Arrays | None = None) -> str:
        """Return the text of the JSON file; raises ValueError for a number that is not finite."""
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
                with atomic_file(folder / ARRAYS_NAME) as temporary:
                    write_archive(temporary, arrays)
                    before, _, after = text.rpartition(_NO_DIGEST)
                    text = f"{before}{digest_of(temporary)}{after}"
            write_file(folder / self.file, text)
        return folder / self.file

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
            require_plain(path)
            content = parse(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            where = named or path
            cause = "there is no such file" if where == path else f"no {path.name} here"
            way_out = self.again if where.exists() else suggest_file(where, self.again)
            raise UnreadableFile(cause, where=where, way_out=way_out) from error
        except (OSError, ValueError, RecursionError) as error:
            reason = "a binary file" if isinstance(error, UnicodeDecodeError) else error
            cause = f"not readable as {self.what} ({reason})"
            raise UnreadableFile(cause, where=path, way_out=self.again) from error
        if not isinstance(content, dict) or content.get("format") != self.name:
            cause = f"not {self.what} that embgeo wrote"
            way_out = "name a folder with results of embgeo"
            raise UnreadableFile(cause, where=path, way_out=way_out)
        version = content.get("format_version")
        if version != self.version or isinstance(version, bool):
            newer = type(version) is int and version > self.version
            cause = f"format version {version!r}, this embgeo reads {self.version}"
            raise (NewerFormat if newer else UnreadableFile)(cause, where=path, way_out=self.again)
        return content


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def parse(text: str) -> Any:
    """Parse the content of a JSON file.

    Raises ValueError for a number that is not finite, and for a key that stands twice in an object.
    """
    # Calling a function for every number would take most of the time.
    return json.loads(
        text,
        parse_constant=_refuse,
        parse_float=_finite if _HUGE.search(text) else None,
        object_pairs_hook=_pair_once,
    )


def _pair_once(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"{twice!r:.100} stands twice")
    return found


def as_text(content: Json) -> str:
    """Return the text of a JSON file; raises ValueError for a number that is not finite."""
    return json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def digest_of(path: Path) -> str:
    """Return SHA-256 of a file in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_arrays(path: Path, content: Json) -> Arrays:
    """Read the archive next to a JSON file with this content; raises one of `DAMAGE`."""
    require_plain(path, MOST_ARCHIVE)
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


@cache
def list_fields(kind: type) -> tuple[tuple[Field[Any], str, Any], ...]:
    """Return the saved fields of a dataclass with their keys and resolved types."""
    hints = get_type_hints(kind)
    saved = (entry for entry in fields(kind) if entry.metadata.get("saved", True))
    return tuple((e, str(e.metadata.get("key", e.name)), hints[e.name]) for e in saved)


@cache
def _keys(kind: type) -> tuple[str, ...]:
    """Return the keys of the table of a dataclass, those of its inline fields among them."""
    found: list[str] = []
    for entry, key, hint in list_fields(kind):
        found += _keys(hint) if entry.metadata.get("inline") else (key,)
    return tuple(found)


def arrange(value: Any, hint: Any, path: str = "") -> Any:
    """Plain values as msgspec converts them: by field, and inline fields as tables of their own.

    Raises ValueError for unknown and for missing keys, except those of fields that earlier files
    have not (``later`` in their metadata).
    """
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    for kind in kinds:
        origin, inner = get_origin(kind), get_args(kind)
        if is_dataclass(kind) and isinstance(value, dict):
            return _arrange_table(value, kind, path)  # type: ignore[arg-type]
        if origin is tuple and isinstance(value, list) and _holds_tables(inner[0]):
            entries = inner[:1] * len(value) if Ellipsis in inner else inner
            return [
                arrange(entry, kind, f"{path}[{place}]")
                for place, (entry, kind) in enumerate(zip(value, entries, strict=True))
            ]
        if isinstance(value, dict) and len(inner) == 2 and _holds_tables(inner[1]):
            return {k: arrange(entry, inner[1], f"{path}.{k}") for k, entry in value.items()}
    return value


def _holds_tables(hint: Any) -> bool:
    return is_dataclass(hint) or any(map(_holds_tables, get_args(hint)))


def _arrange_table(table: Json, kind: type, path: str) -> Json:
    known, found = _keys(kind), {}
    later = {key for entry, key, _ in list_fields(kind) if entry.metadata.get("later")}
    for key in (*known, *table):
        if key not in table and key not in later:
            raise ValueError(f"{path} lacks the field {key!r}".lstrip(". "))
        if key not in known:
            raise ValueError(f"{path} has an unknown field {key!r:.60}".lstrip(". "))
    for entry, key, hint in list_fields(kind):
        if entry.metadata.get("inline"):
            found[entry.name] = {key: table[key] for key in _keys(hint)}
        elif key in table:
            found[entry.name] = arrange(table[key], hint, f"{path}.{key}")
    return found


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
    for entry, key, _ in list_fields(record.__class__):
        value = getattr(record, entry.name)
        if entry.metadata.get("inline"):
            found |= _plain_fields(value, arrays, path)
        elif value is not None and "archive" in entry.metadata:
            found[key] = f"{path}/{entry.metadata['archive']}".strip("/")
            arrays[found[key]] = value
        else:
            found[key] = plain(value, arrays, f"{path}/{entry.name}")
    return found


def write_archive(path: Path, arrays: Arrays) -> None:
    """Write a compressed NumPy archive at zlib's fastest level: 4% larger than its usual one."""
    with ZipFile(path, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


def _array(value: Any, hint: Any, arrays: Arrays) -> npt.NDArray[Any]:
    """Make an array of a list, or take it from the archive; `hint` names the kind of numbers."""
    kind = np.dtype(*get_args(get_args(hint)[1]))
    if isinstance(value, str):
        if value not in arrays:
            raise ValueError(f"{ARRAYS_NAME} does not hold {value!r:.60}")
        array = arrays[value]
        if array.dtype.kind != kind.kind:
            raise ValueError(f"{value!r} in {ARRAYS_NAME} holds {array.dtype}")
        return array
    if not isinstance(value, list):
        raise ValueError(f"{value!r:.60} is no array")
    return np.asarray(value, dtype=kind)
