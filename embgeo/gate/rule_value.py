"""What is known of one number: its value, how far it may be off, or why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

from embgeo.core.arguments import require_number
from embgeo.core.errors import BadOption
from embgeo.core.reach import student_reach
from embgeo.core.values import Scalar, format_number
from embgeo.diagnosis.verdict import Verdict

#: How much of a normal distribution an interval holds unless something else is asked for.
LEVEL = 0.95

#: How well a number is known.
Known = Literal["exact", "sampled", "least", "most", "unsure"]
#: The name of the verdict in a rule.
VERDICT = "verdict"
#: By name of a value: its words, the first one best; a word counts as its place.
SCALES: dict[str, tuple[str, ...]] = {VERDICT: ("healthy", "mild", "degenerate")}


@dataclass(frozen=True, slots=True)
class RuleValue:
    """One number as a rule sees it.

    Attributes
    ----------
    value : float or None
        None exactly if `undefined` gives a reason.
    standard_error : float or None
        One standard error, where the value was sampled.
    known : {"exact", "sampled", "least", "most", "unsure"}
        "sampled": within its standard errors; "least", "most": a sample has only shown that it is
        at least or at most so large; "unsure": sampled, and nobody knows how far it may be off.
    undefined : str
        Why there is no value.
    title, unit, convention : str
        As the analysis has them; empty where only the number is known.
    scale : tuple of str
        The words that whole numbers from 0 stand for; empty for numbers.
    freedom : int or None
        Degrees of freedom of the standard error, where few draws give it.
    """

    value: float | None
    standard_error: float | None = None
    known: Known = "exact"
    undefined: str = ""
    title: str = ""
    unit: str = ""
    convention: str = ""
    scale: tuple[str, ...] = ()
    freedom: int | None = None

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
        )

    @classmethod
    def of_verdict(cls, verdict: Verdict) -> RuleValue:
        """The state by its place in the scale; undefined where it is undecided."""
        if verdict.state == "undecided":
            return cls.missing(verdict.headline)
        scale = SCALES[VERDICT]
        return cls(float(scale.index(verdict.state)), title="Verdict", scale=scale)

    @classmethod
    def missing(cls, reason: str) -> RuleValue:
        return cls(None, undefined=reason)

    def as_exact(self) -> RuleValue:
        """The same value without any doubt."""
        return replace(self, standard_error=None, known="exact")

    def slack(self, z: float) -> tuple[float, float]:
        """How far the true value may lie below and above `value`, at `z` standard errors.

        With few degrees of freedom at more of them, which hold as much of Student's t.
        """
        if self.known == "sampled":
            width = student_reach(z, self.freedom) * (self.standard_error or 0.0)
            return width, width
        below = math.inf if self.known in ("most", "unsure") else 0.0
        above = math.inf if self.known in ("least", "unsure") else 0.0
        return below, above

    @property
    def why_undefined(self) -> str:
        """Empty if there is a value."""
        return "" if self.value is not None else self.undefined or "no reason is given"

    @property
    def text(self) -> str:
        """The value as people read it, with its standard error."""
        if self.value is None:
            return "not defined"
        shown = show(self.value, self.scale)
        if self.known == "sampled" and self.standard_error is not None:
            shown += f" ± {format_number(self.standard_error, 2)}"
        before = {"least": "≥ ", "most": "≤ ", "unsure": "about "}.get(self.known, "")
        return f"{before}{shown}{' ' if self.unit else ''}{self.unit}"


def find_doubt(scalar: Scalar) -> Known:
    """The kind of doubt about a number; "unsure" where its sample gave no standard error."""
    if scalar.known == "at_least":
        return "least"
    if scalar.known == "at_most":
        return "most"
    error = scalar.standard_error
    if error is not None:
        return "sampled" if 0.0 <= error < math.inf else "unsure"
    return "exact" if scalar.known == "exact" else "unsure"


def deviations(level: float) -> float:
    """Standard errors either side of a value that hold `level` of a normal distribution."""
    require_number(level, "level")
    if not 0.0 <= level < 1.0:
        raise BadOption(
            f"{level:g} is not a share of a distribution",
            where="level",
            way_out="give a number from 0 (errors are not looked at) to below 1; 0.95 is usual",
        )
    return NormalDist().inv_cdf((1.0 + level) / 2.0)


def show(amount: float, scale: tuple[str, ...] = ()) -> str:
    """A number, or the word that it stands for.

    >>> show(0.25), show(1.0, SCALES[VERDICT])
    ('0.25', 'mild')
    """
    if scale and amount in range(len(scale)):
        return scale[int(amount)]
    return format_number(amount)
