"""Arguments of Python callers, refused by name where their type means nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Real
from pathlib import Path
from typing import Any

from embgeo.core.errors import BadOption, argument


def refuse_type(value: object, name: str, way_out: str) -> BadOption:
    """The error for an argument of a type that means nothing there."""
    return BadOption(
        f"type {type(value).__name__} is not accepted",
        where=argument(name),
        way_out=f"give {way_out}",
    )


def refuse_if(applies: bool, where: str, cause: str, way_out: str) -> None:
    """Raise BadOption where options do not go together."""
    if applies:
        raise BadOption(cause, where=where, way_out=way_out)


def as_path(value: Any, name: str) -> Path:
    """A path from text, or from what knows its path.

    Raises
    ------
    BadOption
        Anything else, refused as the argument `name`.
    """
    if isinstance(value, str | os.PathLike) and isinstance(os.fspath(value), str):
        return Path(value)
    raise refuse_type(value, name, "a path")


def as_texts(value: Any, name: str) -> tuple[str, ...]:
    """One text or several.

    Raises
    ------
    BadOption
        Anything else, refused as the argument `name`.

    >>> as_texts("cosine", "sections"), as_texts(["cosine", "tokens"], "sections")
    (('cosine',), ('cosine', 'tokens'))
    """
    texts = (value,) if isinstance(value, str) else value
    if isinstance(texts, Iterable) and not isinstance(texts, bytes):
        texts = tuple(texts)
        if all(isinstance(text, str) for text in texts):
            return texts
    raise refuse_type(value, name, "a text, or several in a list")


def require_number(value: Any, name: str) -> None:
    """Refuse, as the argument `name`, what is not a real number."""
    if not isinstance(value, Real):
        raise refuse_type(value, name, "a number")
