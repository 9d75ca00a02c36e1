"""What a finding is, and what every question needs to look up and print numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from embgeo.core.quantities import cosine
from embgeo.core.values import Quantity, Scalar, Table, format_number
from embgeo.diagnosis import thresholds as limits

State = Literal["healthy", "mild", "degenerate", "undecided"]

RANK: dict[State, int] = {"undecided": -1, "healthy": 0, "mild": 1, "degenerate": 2}


class Numbers(Protocol):
    """What a diagnosis looks at: an analysis, or whatever else holds its numbers by name."""

    @property
    def provenance(self) -> Mapping[str, Any]: ...

    @property
    def absent(self) -> Mapping[str, str]: ...

    @property
    def tables(self) -> tuple[Table, ...]: ...

    @property
    def tokens(self) -> tuple[str, ...] | None: ...

    def scalar(self, quantity: Quantity | str) -> Scalar | None: ...


@dataclass(frozen=True, slots=True)
class Quote:
    """A number inside a sentence: the quantity that defines it, and how it reads."""

    name: str
    text: str


Part = str | Quote


@dataclass(frozen=True, slots=True)
class Finding:
    """One question, answered.

    Attributes
    ----------
    key : str
        "rows", "clump", "cone", "spectrum", "two-sided", "isotropy", "clusters", "duplicates",
        "coordinate" or "frequency".
    title : str
        The question as a heading.
    state : {"healthy", "mild", "degenerate", "undecided"}
    parts : tuple of str and Quote
        The sentence with its numbers.
    clause : str
        What the headline takes over; empty if it says nothing there.
    open : str
        Why the question is undecided; empty if it is decided.
    why : str
        What the fault costs, with the source; empty where there is none.
    advice : str
        What is known to help, with the source and the command; empty where there is no fault.
    """

    key: str
    title: str
    state: State
    parts: tuple[Part, ...]
    clause: str = ""
    open: str = ""
    why: str = ""
    advice: str = ""

    @property
    def word(self) -> str:
        """The state as the page and the headline call it."""
        return FREQUENCY_WORDS[self.state] if self.key == "frequency" else self.state

    @property
    def sentence(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    @property
    def quoted(self) -> tuple[str, ...]:
        """Names of the quantities that the sentence rests on."""
        return tuple(part.name for part in self.parts if isinstance(part, Quote))

    def to_dict(self) -> dict[str, Any]:
        """As ``analysis.json`` has it."""
        return {
            "key": self.key,
            "title": self.title,
            "state": self.state,
            "sentence": self.sentence,
            "quoted": list(self.quoted),
            "why": self.why,
            "advice": self.advice,
        }


#: How a state reads where "degenerate" would say too much.
FREQUENCY_WORDS: dict[State, str] = {
    "healthy": "mixed",
    "mild": "partly apart",
    "degenerate": "apart",
    "undecided": "undecided",
}


class Undecided(Exception):
    """A number that a finding needs is not there; the message says why."""


def format_percent(share: float) -> str:
    """A share in [0, 1] as per cent; 0 % and 100 % only when exact."""
    for digits in range(2, 12):
        # Rounded before it is multiplied: 100 times a share may round to the other side.
        text = format_number(100.0 * float(f"{share:.{digits}g}"), digits)
        if float(text) not in (0.0, 100.0) or share in (0.0, 1.0):
            return f"{text}\u00a0%"
    return f"{format_number(100.0 * share, 12)}\u00a0%"


def need(analysis: Numbers, quantity: Quantity) -> Scalar:
    """The scalar with a value; `Undecided` says why there is none."""
    scalar = analysis.scalar(quantity)
    if scalar is None:
        family = quantity.family
        sections = analysis.provenance.get("sections")
        if family in analysis.absent:
            raise Undecided(analysis.absent[family])
        if sections is not None and family not in sections:
            raise Undecided(f"the section {family} was left out")
        raise Undecided(f"{quantity.name} is not part of this analysis")
    if scalar.value is None:
        raise Undecided(f"{scalar.quantity.title} is not defined ({scalar.undefined})")
    return scalar


def value_of(scalar: Scalar) -> float:
    """The value; `Undecided` if there is none."""
    if scalar.value is None:
        raise Undecided(f"{scalar.quantity.title} is not defined ({scalar.undefined})")
    return scalar.value


def dimensions(analysis: Numbers) -> int:
    """d, at least 1."""
    return max(1, int(analysis.provenance.get("d") or 1))


def reference_of(scalar: Scalar, fallback: float) -> float:
    """What isotropic rows give, or `fallback` where that was not computed."""
    return scalar.reference if scalar.reference else fallback


def mean_squared_cosine(analysis: Numbers) -> float | None:
    """Of two different rows: mean² + std² of the cosine."""
    mean, std = analysis.scalar(cosine.MEAN), analysis.scalar(cosine.STD)
    if mean is None or std is None or mean.value is None or std.value is None:
        return None
    return mean.value**2 + std.value**2


def isotropic_cosine_spread(analysis: Numbers) -> float | None:
    """Standard error of the mean cosine of isotropic rows; None of a single row."""
    # Cosines of independent uniform directions have variance 1/d and are pairwise uncorrelated,
    # so their mean over M(M−1)/2 pairs has variance 2/(d·M·(M−1)).
    kept = int(analysis.provenance.get("kept") or 0)
    if kept < 2:
        return None
    return math.sqrt(2.0 / (dimensions(analysis) * kept * (kept - 1.0)))


def is_cone_significant(analysis: Numbers) -> bool:
    """Whether the mean cosine is more than chance, however small."""
    spread = isotropic_cosine_spread(analysis)
    value = value_of(need(analysis, cosine.MEAN))
    return spread is not None and value > limits.STANDARD_ERRORS * spread


def is_faint_cone(analysis: Numbers) -> bool:
    """Whether the mean cosine is more than chance and moves many pairs, however mild it is."""
    value = value_of(need(analysis, cosine.MEAN))
    large = value * math.sqrt(dimensions(analysis)) >= limits.FAINT_CONE
    return large and is_cone_significant(analysis)


def milder(first: State, second: State) -> State:
    """The milder of two states: a finding that needs two tests is as bad as the better one."""
    return min(first, second, key=RANK.__getitem__)


def format_short(value: float) -> str:
    """A number for the headline: three digits."""
    return format_number(value, 3)
