"""Checks of single settings; each gives the value back, or says what it has to be."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterable
from typing import Any

from embgeo.core.errors import BadOption
from embgeo.core.typed import is_number


def require(name: str, value: object, fits: bool, way_out: str) -> None:
    """`BadOption` unless the value of a setting fits."""
    if not fits:
        raise BadOption(f"{name} is {value!r}", way_out=way_out)


def require_whole(least: int) -> Callable[[str, int], int]:
    """The check of a whole number from `least`."""

    def check(name: str, value: int) -> int:
        fits = isinstance(value, int) and is_number(value) and value >= least
        require(name, value, fits, f"give a whole number from {least}")
        return value

    return check


natural, whole, several = map(require_whole, (0, 1, 2))


def share(name: str, value: float) -> float:
    """A number from 0 to below 1."""
    require(name, value, is_number(value) and 0.0 <= value < 1.0, "give a number from 0 to below 1")
    return float(value)


def nonnegative(name: str, value: float) -> float:
    """A number from 0."""
    require(name, value, is_number(value) and 0.0 <= value < math.inf, "give a number from 0")
    return float(value)


def positive(name: str, value: float) -> float:
    """A number above 0."""
    require(name, value, is_number(value) and 0.0 < value < math.inf, "give a number above 0")
    return float(value)


def rates(name: str, value: tuple[float, ...]) -> tuple[float, ...]:
    """Numbers above 0, each once."""
    for rate in value:
        positive(name, rate)
    require(name, list(value), len(set(value)) == len(value), "give each rate once")
    return value


def flag(name: str, value: bool) -> bool:
    """True or false."""
    require(name, value, isinstance(value, bool), "give true or false")
    return value


def choice(name: str, value: str, known: Collection[str]) -> str:
    """One of those that are known."""
    require(name, value, value in known, f"give {' or '.join(known)}")
    return value


def unit(name: str, value: float) -> float:
    """A number from 0 to 1."""
    require(name, value, is_number(value) and 0.0 <= value <= 1.0, "give a number from 0 to 1")
    return float(value)


def list_defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """The settings of a function: its keyword-only parameters with their defaults."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def refuse_others(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """`BadOption` for the first setting that is not known."""
    for name in given:
        if name not in known:
            way_out = f"it has {', '.join(known)}" if known else "it has none"
            raise BadOption(f"{what} has no setting {name!r}", way_out=way_out)
