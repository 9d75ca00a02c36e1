"""Checks of arguments of Python callers, with errors that name the argument."""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from embgeo.core.errors import BadOption, argument

#: Bytes by unit. A size needs one: a plain number could mean bytes or megabytes.
UNITS = {"MB": 10**6, "MIB": 2**20, "GB": 10**9, "GIB": 2**30, "TB": 10**12, "TIB": 2**40}
#: Known names that an error lists.
MOST_CHOICES = 8


def refuse_type(value: object, name: str, way_out: str) -> BadOption:
    """Return the error for an argument of a wrong type."""
    return BadOption(
        f"type {type(value).__name__} is not accepted",
        where=argument(name),
        way_out=f"give {way_out}",
    )


def refuse_name(
    what: str, name: object, known: Iterable[str], where: str | None = None
) -> BadOption:
    """Return the error for an unknown name, with the nearest known name and the first of all.

    >>> refuse_name("section", "cosin", ["spectrum", "cosine"]).way_out
    'did you mean cosine? choose from spectrum, cosine'
    """
    known = list(known)
    way_out = suggest(find_nearest(str(name).lower(), known), known)
    return BadOption(f"unknown {what} {name!r}", where=where, way_out=way_out)


def suggest(near: str, known: Sequence[str]) -> str:
    """Suggest the nearest of the known names, if any, and list the first of them."""
    suggested = f"did you mean {near}? " if near else ""
    more = [f"and {len(known) - MOST_CHOICES} more"] if len(known) > MOST_CHOICES else []
    return f"{suggested}choose from {', '.join([*known[:MOST_CHOICES], *more])}"


def find_nearest(name: str, known: Iterable[str]) -> str:
    """Find the known name that was probably meant, first one of the same letters; else empty.

    >>> find_nearest("minnorm", ["seed", "min_norm"]), find_nearest("lable", ["table", "label"])
    ('min_norm', 'label')
    """
    import difflib

    near = difflib.get_close_matches(name, list(known))
    return next((one for one in near if sorted(one) == sorted(name)), "".join(near[:1]))


def refuse_if(applies: bool, where: str, cause: str, way_out: str) -> None:
    """Raise BadOption if the condition applies."""
    if applies:
        raise BadOption(cause, where=where, way_out=way_out)


def as_path(value: Any, name: str) -> Path:
    """Return a path from a text or an object with a path."""
    if isinstance(value, str | os.PathLike) and isinstance(os.fspath(value), str):
        return Path(value)
    raise refuse_type(value, name, "a path")


def as_texts(value: Any, name: str) -> tuple[str, ...]:
    """Return the texts of an argument that takes one or several.

    >>> as_texts("cosine", "sections"), as_texts(["cosine", "tokens"], "sections")
    (('cosine',), ('cosine', 'tokens'))
    """
    texts = (value,) if isinstance(value, str) else value
    if isinstance(texts, Iterable) and not isinstance(texts, bytes):
        texts = tuple(texts)
        if all(isinstance(text, str) for text in texts):
            return texts
    raise refuse_type(value, name, "a text, or several in a list")


def parse_size(text: str, name: str) -> int:
    """Parse a size with a unit in bytes: ``2GB`` is 2,000,000,000."""
    number = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?) ?([A-Za-z]{2,3})", text.strip())
    unit = UNITS.get(number[2].upper()) if number else None
    if number is None or unit is None:
        wrong = "has no unit" if text.strip().isdecimal() else "is not a size"
        raise BadOption(f"{text!r} {wrong}", where=argument(name), way_out="write it as in 2GB")
    return int(float(number[1]) * unit)


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number within the range of float, and not a bool."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def require_number(value: Any, name: str) -> None:
    """Refuse a value that is not a real number."""
    if not isinstance(value, Real):
        raise refuse_type(value, name, "a number")
