"""A value as a rule sees it: the number, how far it may be off, or why it is undefined."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

from embgeo.core.arguments import require_number
from embgeo.core.errors import BadOption
from embgeo.core.numbers import join_unit, student_z
from embgeo.core.values import Scalar, format_number
from embgeo.diagnosis.verdict import Verdict

#: Digits that two machines agree on.
DIGITS = 10
#: Default confidence level.
LEVEL = 0.95

#: "sampled": within its standard errors; "least", "most": a lower or an upper bound; "unsure":
#: sampled without a standard error.
Known = Literal["exact", "sampled", "least", "most", "unsure"]
#: The name of the verdict in a rule.
VERDICT = "verdict"
#: Name of a value → its words, best first; a word counts as its place.
SCALES: dict[str, tuple[str, ...]] = {VERDICT: ("healthy", "mild", "degenerate")}


@dataclass(frozen=True, slots=True)
class RuleValue:
    """A value as a rule sees it."""

    value: float | None
    #: One standard error of a sampled value.
    standard_error: float | None = None
    known: Known = "exact"
    #: Why there is no value.
    undefined: str = ""
    title: str = ""
    unit: str = ""
    convention: str = ""
    #: The words that the numbers 0, 1, … stand for; empty for numbers.
    scale: tuple[str, ...] = ()
    #: Degrees of freedom of the standard error, if it comes from few draws.
    freedom: int | None = None
    #: The number of rows that the value depends on; None for values that do not.
    size: int | None = None
    #: The error over tokens: for the population that the rows are a sample of. Only limits in
    #: standard errors use it.
    population_error: float | None = None

    @classmethod
    def of(cls, scalar: Scalar) -> RuleValue:
        if scalar.value is not None and not math.isfinite(scalar.value):
            return cls.missing(f"the analysis says {scalar.value}")
        return cls(
            scalar.value,
            scalar.standard_error,
            find_doubt(scalar),
            scalar.undefined,
            scalar.quantity.title,
            scalar.quantity.unit,
            scalar.convention,
            freedom=scalar.freedom,
            size=scalar.size,
            population_error=scalar.population_error,
        )

    @classmethod
    def of_verdict(cls, verdict: Verdict) -> RuleValue:
        """Return the state as its place in the scale; undefined for "undecided"."""
        if verdict.state == "undecided":
            return cls.missing(verdict.headline)
        scale = SCALES[VERDICT]
        return cls(float(scale.index(verdict.state)), title="Verdict", scale=scale)

    @classmethod
    def missing(cls, reason: str) -> RuleValue:
        return cls(None, undefined=reason)

    def as_exact(self) -> RuleValue:
        """Return the value without its error."""
        return replace(self, standard_error=None, known="exact")

    def slack(self, z: float) -> tuple[float, float]:
        """Return how far the true value may lie below and above, at `z` standard errors.

        With few degrees of freedom, the interval of Student's t of the same confidence.
        """
        if self.known == "sampled":
            width = student_z(z, self.freedom) * (self.standard_error or 0.0)
            return width, width
        below = math.inf if self.known in ("most", "unsure") else 0.0
        above = math.inf if self.known in ("least", "unsure") else 0.0
        return below, above

    @property
    def why_undefined(self) -> str:
        """The reason; empty if there is a value."""
        return "" if self.value is not None else self.undefined or "no reason is given"

    @property
    def text(self) -> str:
        """The value with its standard error and unit, as people read it."""
        if self.value is None:
            return "not defined"
        shown = show(self.value, self.scale)
        if self.known == "sampled" and self.standard_error is not None:
            shown += f" ± {format_number(self.standard_error, 2)}"
        before = {"least": "≥ ", "most": "≤ ", "unsure": "about "}.get(self.known, "")
        return join_unit(f"{before}{shown}", self.unit)


def find_doubt(scalar: Scalar) -> Known:
    """Find how the value of a scalar is known."""
    if scalar.known == "at_least":
        return "least"
    if scalar.known == "at_most":
        return "most"
    error = scalar.standard_error
    if error is not None:
        return "sampled" if 0.0 <= error < math.inf else "unsure"
    return "exact" if scalar.known == "exact" else "unsure"


def deviations(level: float) -> float:
    """Return half the width, in standard errors, of a normal interval of this confidence level."""
    require_number(level, "level")
    if not 0.0 <= level < 1.0:
        way_out = "give a number from 0 (errors are ignored) to below 1; 0.95 is usual"
        raise BadOption(f"{level:g} is not a confidence level", where="level", way_out=way_out)
    return NormalDist().inv_cdf((1.0 + level) / 2.0)


def show(amount: float, scale: tuple[str, ...] = ()) -> str:
    """Return a number, or the word that it stands for.

    >>> show(0.25), show(1.0, SCALES[VERDICT])
    ('0.25', 'mild')
    """
    if scale and amount in range(len(scale)):
        return scale[int(amount)]
    return format_number(amount)


def round_digits(value: float, digits: int = DIGITS) -> float | int:
    """Return `value` with this many significant digits; an int if it is whole."""
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short
