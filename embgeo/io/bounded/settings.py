"""Settings in TOML as dataclasses; errors name the setting and the way out."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.core.typed import BadValue, UnknownKey, WrongType, convert, describe, keys_of

T = TypeVar("T")
Where = Path | str | None


def read_document(path: Path, way_out: str = "") -> str:
    """Read the text of a settings file."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UnreadableFile("no such file", where=path, way_out=way_out) from error
    except OSError as error:
        cause = f"cannot be read: {error.strerror or error}"
        raise UnreadableFile(cause, where=path, way_out=way_out) from error
    except ValueError as error:
        raise UnreadableFile("not UTF-8 text", where=path, way_out=way_out) from error


def parse_document(text: str, where: Where, way_out: str) -> dict[str, Any]:
    """Parse a TOML document; raises UnreadableFile if it is not one."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"not TOML: {error}", where=where, way_out=way_out) from error


def parse_table(kind: type[T], table: Any, name: str, where: Where) -> T:
    """Convert a table to the dataclass `kind`; `name`, as in ``[training]``, is for errors."""
    if isinstance(table, Mapping):
        refuse_unknown(table, keys_of(cast(type, kind)), name, where)
    try:
        return cast(T, convert(table, kind))
    except BadValue as error:
        inner = name if not error.path else f"{error.path[0]} of {name}"
        raise explain(error, inner, where) from error


def parse_value(value: Any, hint: Any, name: str, where: Where) -> Any:
    """Convert a value to the type of a setting; raises BadOption if it has another type."""
    try:
        return convert(value, hint)
    except BadValue as error:
        raise explain(error, name, where) from error


def explain(error: BadValue, name: str, where: Where) -> BadOption:
    """Error for the setting called `name`."""
    if isinstance(error, UnknownKey):
        return unknown_key(error.key, error.known, name, where)
    if isinstance(error, WrongType):
        return BadOption(
            f"{name} is {error.value!r}",
            where=where,
            way_out=f"it has to be {describe(error.hint)}",
        )
    return BadOption(f"{name} {error.problem}", where=where)


def refuse_unknown(
    table: Mapping[str, Any], known: Collection[str], name: str, where: Where
) -> None:
    """Raise BadOption for an unknown key."""
    for key in table:
        if key not in known:
            raise unknown_key(key, known, name, where)


def unknown_key(key: str, known: Collection[str], name: str, where: Where) -> BadOption:
    near = difflib.get_close_matches(key, known, n=1)
    way_out = f"did you mean {near[0]}? " if near else ""
    return BadOption(
        f"{name}: unknown setting {key!r}",
        where=where,
        way_out=f"{way_out}choose from {', '.join(sorted(known))}",
    )


def to_toml(value: Any) -> Any:
    """Convert a value to TOML's types: tables without None, and lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return to_toml({entry.name: getattr(value, entry.name) for entry in fields(value)})
    if isinstance(value, Mapping):
        return {str(key): to_toml(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [to_toml(entry) for entry in value]
    return value
