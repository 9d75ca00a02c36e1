"""Settings in TOML as dataclasses, checked by msgspec; errors name the setting and the way out."""

import math
import re
import tomllib
import types
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from embgeo.core.arguments import find_nearest
from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.core.text import join_words
from embgeo.io.bounded.saved import require_plain

T = TypeVar("T")
#: The longest file of settings.
MOST_BYTES = 2**20
Where = Path | str | None

#: The place at the end of an error of msgspec: a key, or the rest of the path behind it.
_PLACE = re.compile(r" - at `\$(?:\.(\w+))?([^`]*)`$")
#: A string of TOML, or a comment, in which quotes and dots mean nothing.
LITERAL = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|\#[^\n]*',
    re.DOTALL,
)
#: A key of more parts: the parser takes time that grows with their square.
_DEEP = re.compile(r"(?<![\w-])(?:[\w-]+[ \t]*\.[ \t]*){32}")
_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
_LIMITS = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}


def read_document(path: Path, way_out: str = "") -> str:
    """Read the text of a settings file."""
    try:
        require_plain(path, MOST_BYTES)
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UnreadableFile("no such file", where=path, way_out=way_out) from error
    except OSError as error:
        cause = f"cannot be read: {error.strerror or error}"
        raise UnreadableFile(cause, where=path, way_out=way_out) from error
    except UnicodeDecodeError as error:
        raise UnreadableFile("not UTF-8 text", where=path, way_out=way_out) from error
    except ValueError as error:
        raise UnreadableFile(f"cannot be read: {error}", where=path, way_out=way_out) from error


def parse_document(text: str, where: Where, way_out: str) -> dict[str, Any]:
    """Parse a TOML document; raises UnreadableFile if it is not one."""
    if _DEEP.search(LITERAL.sub("x", text)):
        cause = "not settings: a key has more than 32 parts"
        raise UnreadableFile(cause, where=where, way_out=way_out)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"not TOML: {error}", where=where, way_out=way_out) from error


def parse_table(
    kind: type[T], table: Any, name: str, where: Where, derived: Collection[str] = ()
) -> T:
    """Parse a table as the dataclass `kind`; `name`, as in ``[training]``, is for errors.

    The file cannot set the `derived` fields.

    Raises BadOption for an unknown key, with the nearest known one, or a value of the wrong type.
    """
    if isinstance(table, Mapping):
        known = {entry.name for entry in fields(kind)} - {*derived}  # type: ignore[arg-type]
        refuse_unknown(table, known, name, where)
    found: T = parse_value(table, kind, name, where)
    return found


def parse_value(value: Any, hint: Any, name: str, where: Where) -> Any:
    """Parse a value as the type of a setting, whose limits are ``Annotated[int, Meta(ge=1)]``.

    A whole number is also accepted as a float, and a list as a tuple. ``true`` is not a number, and
    a number must be finite. Raises BadOption.
    """
    import msgspec

    try:
        found = msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        raise _explain(str(error), value, hint, name, where) from error
    _refuse_infinite(value, name, where)
    return found


def _explain(problem: str, value: Any, hint: Any, name: str, where: Where) -> BadOption:
    """Return the error of msgspec, with the value and the type of the setting."""
    place = _PLACE.search(problem)
    key = place[1] if place else None
    if is_dataclass(hint) and key is not None and isinstance(value, Mapping) and key in value:
        hint = get_type_hints(hint, include_extras=True)[key]
        value, name = value[key], f"{key} of {name}"
    if problem.startswith("Object missing"):
        return BadOption(f"{name}: {problem[: place.start() if place else None]}", where=where)
    for index in re.findall(
        r"\[(\d+)\]", place[2] if place else ""
    ):  # to the wrong entry of a list
        inner = _entry_hint(hint, int(index))
        if inner is None or not isinstance(value, list | tuple):
            break
        value, hint = value[int(index)], inner
    return BadOption(
        f"{name} is {value!r:.200}", where=where, way_out=f"it has to be {describe(hint)}"
    )


def _entry_hint(hint: Any, index: int) -> Any:
    """Return the type of an entry of a tuple; None for other types."""
    kinds = get_args(hint) if _is_union(hint) else (hint,)
    entries = next((get_args(kind) for kind in kinds if get_origin(kind) is tuple), ())
    return entries[0] if Ellipsis in entries else dict(enumerate(entries)).get(index)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def describe(hint: Any) -> str:
    """Write a type in words.

    >>> describe(int | None), describe(float | Literal["a", "b"]), describe(tuple[str, ...])
    ('a whole number', 'a number, a or b', 'a list')
    """
    origin, entries = get_origin(hint), get_args(hint)
    if origin is Annotated:
        limits = (
            f"{word} {limit:,}"
            for meta in entries[1:]
            for name, word in _LIMITS.items()
            if (limit := getattr(meta, name, None)) is not None
        )
        return " ".join((describe(entries[0]), *limits))
    if origin is Literal or _is_union(hint):
        return join_words(_list_alternatives(hint), "or")
    if origin is tuple:
        return "a list" if Ellipsis in entries else f"a list of {len(entries)} values"
    return _WORDS.get(hint, "a table")


def _list_alternatives(hint: Any) -> list[str]:
    """List in words what a type allows: each value, and each type but None."""
    if get_origin(hint) is Literal:
        return [*map(str, get_args(hint))]
    if _is_union(hint):
        kinds = (kind for kind in get_args(hint) if kind is not types.NoneType)
        return [word for kind in kinds for word in _list_alternatives(kind)]
    return [describe(hint)]


def _refuse_infinite(value: Any, name: str, where: Where) -> None:
    if isinstance(value, Mapping):
        for key, entry in value.items():
            _refuse_infinite(entry, f"{key} of {name}", where)
    elif isinstance(value, list | tuple):
        for entry in value:
            _refuse_infinite(entry, name, where)
    elif isinstance(value, float) and not math.isfinite(value):
        raise BadOption(f"{name} is {value}", where=where, way_out="it has to be a number")


def refuse_unknown(
    table: Iterable[str],
    known: Collection[str],
    name: str,
    where: Where = None,
    inner: Iterable[str] = (),
) -> None:
    """Raise BadOption for an unknown key, with the nearest known one.

    Of the dotted names `inner`, one that ends in the key is meant before any other.
    """
    for key in table:
        if key not in known:
            ends = (one for one in inner if one.rpartition(".")[2] == key)
            near = next(ends, find_nearest(key, known))
            way_out = f"did you mean {near}? " if near else ""
            way_out += f"choose from {', '.join(sorted(known))}" if known else "it has none"
            raise BadOption(f"{name}: unknown setting {key!r}", where=where, way_out=way_out)


def to_toml(value: Any) -> Any:
    """Convert a value to TOML's types: tables without None, and lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return to_toml({entry.name: getattr(value, entry.name) for entry in fields(value)})
    if isinstance(value, Mapping):
        return {str(key): to_toml(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [to_toml(entry) for entry in value]
    return value
