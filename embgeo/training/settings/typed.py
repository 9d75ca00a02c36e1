"""Tables of plain values as the types that settings have, and back."""

from __future__ import annotations

import difflib
import sys
import types
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from embgeo.core.errors import BadOption


def section(kind: type, table: Mapping[str, Any], name: str, where: Path | str | None) -> Any:
    """A dataclass from a table; `BadOption` for a key that it has not."""
    hints = get_type_hints(kind)
    refuse_unknown(table, hints, name, where)
    return kind(
        **{key: typed(value, hints[key], f"{key} of {name}", where) for key, value in table.items()}
    )


def refuse_unknown(
    table: Mapping[str, Any], known: Collection[str], name: str, where: Path | str | None
) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            way_out = f"is {near[0]} meant? " if near else ""
            raise BadOption(
                f"{name}: no setting {key!r}",
                where=where,
                way_out=f"{way_out}known are {', '.join(sorted(known))}",
            )


def typed(value: Any, hint: Any, name: str, where: Path | str | None) -> Any:
    """The value as the type that the setting has; `BadOption` where it is another one."""
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    for kind in kinds:
        origin = get_origin(kind)
        if origin is Literal and value in get_args(kind):
            return value
        if origin is tuple and isinstance(value, list | tuple):
            inner = get_args(kind)
            if inner[-1] is Ellipsis:
                return tuple(typed(entry, inner[0], name, where) for entry in value)
            if len(inner) == len(value):
                pairs = zip(value, inner, strict=True)
                return tuple(typed(entry, each, name, where) for entry, each in pairs)
        if isinstance(value, bool):
            if kind is bool:
                return value
        elif kind is float and is_number(value):
            return float(value)
        elif kind in (int, str) and isinstance(value, kind):
            return value
    raise BadOption(f"{name} is {value!r}", where=where, way_out=f"it has to be {wanted(hint)}")


def is_number(value: Any) -> bool:
    """Whether it is a number that a float holds; true, false, inf and nan are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def wanted(hint: Any) -> str:
    words: dict[Any, str] = {int: "a whole number", float: "a number", str: "text"}
    words[bool] = "true or false"
    if get_origin(hint) is Literal:
        return " or ".join(get_args(hint))
    if get_origin(hint) is tuple:
        return "a list"
    if get_origin(hint) in (Union, types.UnionType):
        return wanted(get_args(hint)[0])
    return words[hint]


def plain(value: Any) -> Any:
    """Without None, with lists for tuples: what TOML can hold."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "__dataclass_fields__"):
        return plain({entry.name: getattr(value, entry.name) for entry in fields(value)})
    return value


#: A setting that chooses, and what belongs to the choice; None for all else in the table.
CHOICES: tuple[tuple[str, str, tuple[str, ...] | None], ...] = (
    ("data", "tokenizer", ("size", "min_count")),
    ("model", "name", None),
    ("optimizer", "kind", ("lr", "weight_decay", "betas", "eps", "momentum")),
    ("optimizer", "schedule", ("warm_up", "start", "end", "after", "rate")),
)


def merged(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with some of their values replaced; None takes a key away.

    Where another model, optimizer or schedule is chosen, the settings of the one before go; with a
    tokenizer, which has a vocabulary of its own, those of the vocabulary.
    """
    found = dict(tables)
    for name, key, belonging in CHOICES:
        table, new = found.get(name), changes.get(name)
        if not isinstance(table, Mapping) or not isinstance(new, Mapping):
            continue
        if new.get(key, table.get(key)) != table.get(key):
            kept = {k: v for k, v in table.items() if belonging and k not in belonging}
            found[name] = kept
    return replaced(found, changes)


def replaced(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Tables with some of their values replaced, at any depth; None takes a key away."""
    found = dict(tables)
    for key, value in changes.items():
        if isinstance(value, Mapping):
            inner = found.get(key)
            found[key] = replaced(inner if isinstance(inner, Mapping) else {}, value)
        elif value is None:
            found.pop(key, None)
        else:
            found[key] = value
    return found
