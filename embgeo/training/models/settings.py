"""Checks of what a model is told by its settings."""

from __future__ import annotations

from collections.abc import Collection

from embgeo.core.errors import BadOption


def size(name: str, value: int) -> int:
    """`BadOption` unless it is a whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadOption(f"{name} is {value!r}", way_out="give a whole number from 1")
    return value


def share(name: str, value: float) -> float:
    """`BadOption` unless it is a number from 0 to below 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < 1.0:
        raise BadOption(f"{name} is {value!r}", way_out="give 0 ≤ p < 1")
    return float(value)


def weight(name: str, value: float) -> float:
    """`BadOption` unless it is a number from 0."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0.0 <= value < float("inf"):
        raise BadOption(f"{name} is {value!r}", way_out="give a number from 0")
    return float(value)


def flag(name: str, value: bool) -> bool:
    """`BadOption` unless it is true or false."""
    if not isinstance(value, bool):
        raise BadOption(f"{name} is {value!r}", way_out="give true or false")
    return value


def choice(name: str, value: str, known: Collection[str]) -> str:
    """`BadOption` unless it is one of those that are known."""
    if value not in known:
        raise BadOption(f"{name} is {value!r}", way_out=f"give {' or '.join(known)}")
    return value
