"""Conversion of plain values of JSON and TOML to annotated dataclasses.

Annotations may contain numbers, text, ``bool``, ``Any``, ``Literal``, unions, tuples, mappings,
arrays and other dataclasses. Records and settings both use :func:`convert`, and word its errors
themselves.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

#: Metadata of a field whose value is a dataclass: the fields of that replace it.
INLINE: Mapping[str, Any] = {"inline": True}
#: Metadata of a field with a default that is not saved.
UNSAVED: Mapping[str, Any] = {"saved": False}

#: Converts a value to a type that :func:`convert` does not know, such as an array.
Decode = Callable[[Any, Any], Any]


def keyed(key: str) -> Mapping[str, Any]:
    """Metadata of a field that is saved under another name."""
    return {"key": key}


class BadValue(ValueError):
    """A plain value that does not fit its type; `path` holds the keys and indices to it."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str | int] = []

    def __str__(self) -> str:
        return f"{format_path(self.path)} {self.problem}".lstrip()


class WrongType(BadValue):
    """A value that does not fit the type `hint`."""

    def __init__(self, value: Any, hint: Any) -> None:
        super().__init__(f"is {value!r:.60} instead of {describe(hint)}")
        self.value, self.hint = value, hint


class UnknownKey(BadValue):
    """A key that is none of the `known` keys of a dataclass."""

    def __init__(self, key: str, known: tuple[str, ...]) -> None:
        super().__init__(f"has an unknown field {key!r:.60}")
        self.key, self.known = key, known


@dataclass(frozen=True, slots=True)
class _Rules:
    """How to convert; see :func:`convert`."""

    decode: Decode | None
    complete: bool


def convert(value: Any, hint: Any, decode: Decode | None = None, *, complete: bool = False) -> Any:
    """`value` as the type `hint`.

    A whole number is also accepted as a float, and a list as a tuple. ``true`` is not a number, and
    a number must be finite. Unknown fields are refused; if `complete`, so are missing fields with a
    default. ``decode(value, hint)`` converts to all other types. Raises BadValue.
    """
    return _convert(value, hint, _Rules(decode, complete))


def _convert(value: Any, hint: Any, rules: _Rules) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _convert_union(value, hint, rules)
    if origin is Literal:
        if any(value == choice and type(value) is type(choice) for choice in get_args(hint)):
            return value
        raise WrongType(value, hint)
    if origin is tuple:
        return _convert_tuple(value, hint, rules)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise WrongType(value, hint)
        inner = get_args(hint)[1]
        return {key: _convert_at(key, entry, inner, rules) for key, entry in value.items()}
    if is_dataclass(hint):
        return _convert_dataclass(value, cast(type, hint), rules)
    if hint is Any or ((hint is None or hint is type(None)) and value is None):
        return value
    if hint is float and is_number(value):
        return float(value)
    if hint in (int, str, bool):
        if isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
            return value
    elif rules.decode is not None and hint is not float:
        return rules.decode(value, hint)
    raise WrongType(value, hint)


def _convert_at(place: str | int, value: Any, hint: Any, rules: _Rules) -> Any:
    try:
        return _convert(value, hint, rules)
    except BadValue as error:
        error.path.insert(0, place)
        raise


def _convert_union(value: Any, hint: Any, rules: _Rules) -> Any:
    kinds = get_args(hint)
    if value is None and type(None) in kinds:
        return None
    if type(value) in kinds:
        kinds = (type(value),)
    problem: BadValue = WrongType(value, hint)
    for kind in kinds:
        try:
            return _convert(value, kind, rules)
        except BadValue as error:
            # A problem deeper inside is more specific than "no type fits".
            problem = error if error.path else problem
    raise problem


def _convert_tuple(value: Any, hint: Any, rules: _Rules) -> Any:
    inner = get_args(hint)
    if not isinstance(value, list | tuple):
        raise WrongType(value, hint)
    if inner[-1] is Ellipsis:
        inner = (inner[0],) * len(value)
    if len(inner) != len(value):
        raise WrongType(value, hint)
    pairs = enumerate(zip(value, inner, strict=True))
    return tuple(_convert_at(place, entry, kind, rules) for place, (entry, kind) in pairs)


def _convert_dataclass(table: Any, kind: type, rules: _Rules) -> Any:
    if not isinstance(table, Mapping):
        raise WrongType(table, kind)
    found = {}
    for entry, hint in schema(kind):
        if not entry.init:
            continue
        if entry.metadata.get("inline"):
            own = {key: table[key] for key in keys_of(hint) if key in table}
            found[entry.name] = _convert(own, hint, rules)
            continue
        key = key_of(entry)
        if key in table:
            found[entry.name] = _convert_at(key, table[key], hint, rules)
        elif rules.complete or (entry.default is MISSING and entry.default_factory is MISSING):
            raise BadValue(f"lacks the field {key!r}")
    for key in table:
        if key not in keys_of(kind):
            raise UnknownKey(key, keys_of(kind))
    return kind(**found)


@cache
def schema(kind: type) -> tuple[tuple[Field[Any], Any], ...]:
    """The saved fields of a dataclass with their resolved types.

    Fields that are not parameters of the constructor are written, but not read.
    """
    hints = get_type_hints(kind)
    saved = (entry for entry in fields(kind) if entry.metadata.get("saved", True))
    return tuple((entry, hints[entry.name]) for entry in saved)


@cache
def keys_of(kind: type) -> tuple[str, ...]:
    """The keys of a saved dataclass."""
    found: list[str] = []
    for entry, hint in schema(kind):
        found += keys_of(hint) if entry.metadata.get("inline") else (key_of(entry),)
    return tuple(found)


def key_of(entry: Field[Any]) -> str:
    return str(entry.metadata.get("key", entry.name))


def is_number(value: Any) -> bool:
    """Whether a value is a finite number within the range of float, and not a bool."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def describe(hint: Any) -> str:
    """A type in words, such as "a whole number"."""
    origin = get_origin(hint)
    if origin is Literal:
        return " or ".join(map(str, get_args(hint)))
    entries = get_args(hint)
    if origin is tuple:
        return "a list" if Ellipsis in entries else f"a list of {len(entries)} values"
    if origin in (Union, types.UnionType):
        return " or ".join(describe(entry) for entry in entries if entry is not types.NoneType)
    if is_dataclass(hint) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return "a table"
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    return words.get(hint, getattr(hint, "__name__", str(hint)))


def format_path(path: list[str | int]) -> str:
    """``runs[0].seed``."""
    text = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in path)
    return text.removeprefix(".")
