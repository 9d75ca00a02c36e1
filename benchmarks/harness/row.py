"""A line of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.harness.contest import Runs


@dataclass(frozen=True)
class Row:
    """What was seen of one thing.

    Attributes
    ----------
    what : str
    value : float or None
        A ratio, seconds, gigabytes or an exponent; None where it could not be measured.
    unit : str
        Empty for ratios and exponents.
    spread : tuple of two floats or None
        Lowest and highest of the rounds.
    bound : float or None
        What the value must not exceed; None: shown for information.
    rounds : int
    sides : tuple of dict
        Times of the contenders in every round, embgeo first.
    note : str
        How it was measured, or why not.
    """

    what: str
    value: float | None
    unit: str = ""
    spread: tuple[float, float] | None = None
    bound: float | None = None
    rounds: int = 0
    sides: tuple[dict[str, Any], ...] = ()
    note: str = ""

    @property
    def verdict(self) -> str:
        """ "met", "missed", "not measured", or nothing where there is no bound."""
        if self.bound is None:
            return ""
        if self.value is None:
            return "not measured"
        return "met" if self.value <= self.bound else "missed"

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"verdict": self.verdict}


def ratio(what: str, ours: Runs, other: Runs, bound: float | None = None, note: str = "") -> Row:
    """Median over the rounds of our time over the other's in the same round."""
    ratios = [a / b for a, b in zip(ours.seconds, other.seconds, strict=True)]
    what = f"{what}, against {other.name}"
    return over_rounds(what, ratios, (ours, other), bound=bound, note=note)


def seconds(what: str, ours: Runs, bound: float | None = None, note: str = "") -> Row:
    return over_rounds(what, ours.seconds, (ours,), unit="s", bound=bound, note=note)


def over_rounds(
    what: str,
    values: Sequence[float],
    sides: Sequence[Runs] = (),
    *,
    unit: str = "",
    bound: float | None = None,
    note: str = "",
) -> Row:
    """The median of one value a round."""
    return Row(
        what,
        median(values),
        unit=unit,
        spread=(min(values), max(values)),
        bound=bound,
        rounds=len(values),
        sides=tuple(side.to_json() for side in sides),
        note=note,
    )


def absent(what: str, why: str, bound: float | None = None) -> Row:
    """A line for what could not be measured here."""
    return Row(what, None, bound=bound, note=why)
