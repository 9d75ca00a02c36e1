"""Options of commands and settings files, derived from the fields of a dataclass.

:class:`embgeo.core.source.Source` and :class:`embgeo.core.options.Options` declare every option
once; the docstrings of their modules explain the metadata of the fields.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from embgeo.core.errors import BadOption


def declare(default: Any, text: str, section: str | tuple[str, ...] = (), **more: Any) -> Any:
    """A field of a dataclass that is an option, with its help and further metadata."""
    return field(default=default, metadata={"help": text, "section": section, **more})


@dataclass(frozen=True, slots=True)
class OptionField:
    """One option."""

    name: str
    #: bool, int, float, str or Path.
    kind: type
    #: Whether it takes several values.
    repeats: bool
    #: Allowed values; empty if any value of the type is.
    choices: tuple[str, ...]
    default: Any
    help: str
    metavar: str
    least: int | None

    def accepts(self, value: object) -> bool:
        """Whether a value of a settings file has the right type."""
        if self.repeats:
            return isinstance(value, list) and all(isinstance(one, str) for one in value)
        if isinstance(value, bool) or self.kind is bool:
            return isinstance(value, bool) and self.kind is bool
        if self.kind in (float, int):
            return isinstance(value, int) or (self.kind is float and isinstance(value, float))
        # An option with a notation, such as N|all, also takes a plain number.
        return isinstance(value, str) or (bool(self.metavar) and isinstance(value, int))


@cache
def option_fields(of: type) -> Mapping[str, OptionField]:
    """The options of a dataclass by name, without those for Python only."""
    hints = get_type_hints(of)
    return {
        one.name: _option(one, hints[one.name])
        for one in fields(of)
        if one.name != "path" and "help" in one.metadata and not one.metadata.get("in_python_only")
    }


def _option(one: Field[Any], hint: Any) -> OptionField:
    kinds = _kinds(hint)
    metavar = one.metadata.get("metavar", "")
    repeats = tuple in kinds and isinstance(one.default, tuple)
    kind = next((k for k in (bool, int, float, Path, str) if k in kinds), str)
    default = None if repeats or one.default is MISSING else one.default
    if metavar:
        kind, default = str, None if default is None else str(default)
    return OptionField(
        one.name,
        kind,
        repeats,
        tuple(one.metadata.get("choices", ())),
        default,
        one.metadata["help"],
        metavar,
        None if metavar else one.metadata.get("least"),
    )


def _kinds(hint: Any) -> tuple[type, ...]:
    """The types in a hint, without None."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return tuple(kind for part in get_args(hint) for kind in _kinds(part))
    if origin is Literal:
        return (str,)
    return () if hint is type(None) else (origin or hint,)


def read_table(
    table: Mapping[str, Any], known: Mapping[str, OptionField], path: Path
) -> dict[str, Any]:
    """The options in the table ``analyze`` of a settings file; paths are relative to its folder."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise BadOption(
                f"analyze has no setting {key!r}", where=path, way_out=f"it has {', '.join(known)}"
            )
        option = known[key]
        if not option.accepts(value):
            raise BadOption(f"{key} of analyze is {value!r}, which does not fit", where=path)
        if option.kind is Path:
            value = path.parent / value
        found[key] = str(value) if option.metavar and isinstance(value, int) else value
    return found
