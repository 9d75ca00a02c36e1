"""Checks of single settings, which return the value or raise `BadOption`, and of states."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from embgeo.core.arguments import is_number
from embgeo.core.errors import BadOption
from embgeo.core.text import join_words

if TYPE_CHECKING:
    from torch.optim import Optimizer


@contextmanager
def name_table(table: str) -> Iterator[None]:
    """Name the table of settings in refusals that name no place."""
    try:
        yield
    except BadOption as error:
        raise error.add_place(table) from error


def require(name: str, value: object, fits: bool, way_out: str) -> None:
    """Raise `BadOption` unless the value of a setting fits."""
    if not fits:
        raise BadOption(f"{name} is {value!r}", way_out=way_out)


def require_whole(least: int) -> Callable[[str, int], int]:
    """Return the check of a whole number from `least`."""

    def check(name: str, value: int) -> int:
        fits = isinstance(value, int) and is_number(value) and value >= least
        require(name, value, fits, f"give a whole number from {least}")
        return value

    return check


natural, whole = require_whole(0), require_whole(1)


def require_real(range_: str, fits: Callable[[float], bool]) -> Callable[[str, float], float]:
    """Return the check of a finite number in a range, which is named in the way out."""

    def check(name: str, value: float) -> float:
        require(name, value, is_number(value) and fits(value), f"give a number {range_}")
        return float(value)

    return check


share = require_real("from 0 to below 1", lambda value: 0.0 <= value < 1.0)
nonnegative = require_real("from 0", lambda value: value >= 0.0)
positive = require_real("above 0", lambda value: value > 0.0)


def flag(name: str, value: bool) -> bool:
    """Check that a setting is true or false."""
    require(name, value, isinstance(value, bool), "give true or false")
    return value


def choice(name: str, value: str, known: Collection[str]) -> str:
    """Check that a setting is one of the known values."""
    require(name, value, value in known, f"give {join_words([*known], 'or')}")
    return value


def texts(name: str, value: Sequence[str], way_out: str) -> tuple[str, ...]:
    """Check that a setting is a list of texts."""
    listed = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    require(name, value, listed, way_out)
    return tuple(value)


def list_defaults(source: Callable[..., Any]) -> dict[str, Any]:
    """List the settings of a function or a class: its keyword-only parameters with their defaults.

    Of a class they are those of `list_constructors`.
    """
    found: dict[str, Any] = {}
    for function in list_constructors(source) if isinstance(source, type) else (source,):
        for p in inspect.signature(function).parameters.values():
            if p.kind is p.KEYWORD_ONLY:
                found.setdefault(p.name, p.default)
    return found


def list_constructors(kind: type) -> list[Callable[..., Any]]:
    """List the constructor of a class and, as far as it passes keywords on, those of its bases."""
    found: list[Callable[..., Any]] = []
    for function in (vars(base)["__init__"] for base in kind.__mro__ if "__init__" in vars(base)):
        found.append(function)
        if inspect.getfullargspec(function).varkw is None:
            break
    return found


def check_state(optimizer: Optimizer) -> None:
    """Raise ValueError for a state that would be broadcast over a parameter.

    Entries are numbers, or have the shape of the parameter or of one of its rows.
    """
    for p in (p for group in optimizer.param_groups for p in group["params"]):
        shape = tuple(p.shape)
        for name, value in optimizer.state[p].items() if p in optimizer.state else ():
            if (found := tuple(getattr(value, "shape", ()))) not in ((), shape, shape[1:]):
                raise ValueError(f"{name} {found} of a parameter {shape}")
