"""Values of settings, checked by msgspec as the types of a dataclass; errors say what it takes.

The one check of options: those of Python and of the command line as of settings files.
"""

import math
import re
import types
from collections.abc import Collection, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta

from embgeo.core.arguments import find_nearest, suggest
from embgeo.core.errors import BadOption, argument
from embgeo.core.text import join_words

Where = Path | str | None
Natural: TypeAlias = Annotated[int, Meta(ge=0)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]

#: The place at the end of an error of msgspec: a key, or the rest of the path behind it.
_PLACE = re.compile(r" - at `\$(?:\.(\w+))?([^`]*)`$")
_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
_LIMITS = {"ge": "from", "gt": "above", "le": "to", "lt": "and below"}


def parse_value(value: Any, hint: Any, name: str, where: Where = None) -> Any:
    """Parse a value as the type of a setting, whose limits are ``Annotated[int, Meta(ge=1)]``.

    A whole number is also accepted as a float, a list as a tuple, and a number of numpy as one of
    Python. ``true`` is not a number, and a number must be finite. Raises BadOption.
    """
    if type(value) not in (bool, int, float) and isinstance(value, Real):
        value = int(value) if isinstance(value, Integral) else float(value)
    try:
        found = msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        raise _explain(str(error), value, hint, name, where) from error
    except BadOption as error:  # of settings that do not go together
        raise error.add_place(name) from error
    _refuse_infinite(value, name, where)
    return found


def parse_fields(made: Any, without: Collection[str] = ()) -> None:
    """Parse the fields of a frozen dataclass, in its ``__post_init__``, as their types."""
    for name, hint in type_hints(type(made)).items():
        if name not in without:
            value = parse_value(getattr(made, name), hint, argument(name))
            object.__setattr__(made, name, value)


def type_hints(kind: Any) -> dict[str, Any]:
    """Return the types of the fields of a dataclass or a structure, with their limits."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}


def _explain(problem: str, value: Any, hint: Any, name: str, where: Where) -> BadOption:
    """Return the error of msgspec, with the value and the type of the setting."""
    place = _PLACE.search(problem)
    key = place[1] if place else None
    hints = type_hints(hint) if isinstance(hint, type) else {}
    if key in hints and isinstance(value, Mapping) and key in value:
        hint = hints[key]
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
    kinds = get_args(hint) if _is_union(hint) or get_origin(hint) is Annotated else (hint,)
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
        limits = " ".join(
            f"{word} {limit:,}"
            for meta in entries[1:]
            for name, word in _LIMITS.items()
            if (limit := getattr(meta, name, None)) is not None
        )
        longest = next((m.max_length for m in entries[1:] if getattr(m, "max_length", None)), None)
        limits += f"of at most {longest:,} values" if longest else ""
        return f"{describe(entries[0])} {limits}".rstrip()
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
            way_out = suggest(near, sorted(known)) if known else "it has none"
            raise BadOption(f"{name}: unknown setting {key!r}", where=where, way_out=way_out)
