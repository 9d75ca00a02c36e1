"""A finding, and how questions look up and print the numbers of an analysis."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from embgeo.core.numbers import format_brief
from embgeo.core.quantities import cosine
from embgeo.core.suspects import Suspects
from embgeo.core.values import Quantity, Scalar, Table, format_number
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.thresholds import State as State

RANK: dict[State, int] = {"undecided": -1, "healthy": 0, "mild": 1, "degenerate": 2}


class Numbers(Protocol):
    """What a diagnosis reads: an analysis, or any other holder of its numbers by name."""

    @property
    def provenance(self) -> Mapping[str, Any]: ...

    @property
    def absent(self) -> Mapping[str, str]: ...

    @property
    def tables(self) -> tuple[Table, ...]: ...

    @property
    def tokens(self) -> tuple[str, ...] | None: ...

    @property
    def suspects(self) -> tuple[Suspects, ...]: ...

    def find_scalar(self, quantity: Quantity | str) -> Scalar | None: ...


@dataclass(frozen=True, slots=True)
class Quote:
    """A number inside a sentence: the name of its quantity, and its text.

    `brief` is the text without the error, where that has one.
    """

    name: str
    text: str
    brief: str = ""


Part = str | Quote


@dataclass(frozen=True, slots=True)
class Finding:
    """One question, answered.

    Attributes
    ----------
    key : str
        "suspects", "initialization", "cone", "spectrum", "two-sided", "isotropy", "clusters",
        "norms", "coordinate" or "frequency".
    title : str
        The question as a heading.
    state : {"healthy", "mild", "degenerate", "undecided"}
    parts : tuple of str and Quote
        The sentence with its numbers.
    fault : str
        What the headline calls the fault; empty without one.
    open : str
        Why the question is undecided; empty if it is decided.
    why : str
        What the fault costs, with the source; empty without a fault.
    advice : str
        What is known to help, with the source and the command; empty without a fault.
    """

    key: str
    title: str
    state: State
    parts: tuple[Part, ...]
    fault: str = ""
    open: str = ""
    why: str = ""
    advice: str = ""

    @property
    def is_fault(self) -> bool:
        return self.state in ("mild", "degenerate")

    @property
    def word(self) -> str:
        """The state as the page and the headline call it."""
        if self.key == "initialization":
            return "untrained"
        return FREQUENCY_WORDS[self.state] if self.key == "frequency" else self.state

    @property
    def tone(self) -> State:
        """The color of the word: rows that were never trained have no geometry to judge."""
        return "undecided" if self.key == "initialization" else self.state

    @property
    def sentence(self) -> str:
        return join_text(self.parts)

    @property
    def quoted(self) -> tuple[str, ...]:
        """Names of the quantities that the sentence quotes."""
        return tuple(part.name for part in self.parts if isinstance(part, Quote))

    def to_dict(self) -> dict[str, Any]:
        """Return the entry in ``analysis.json``."""
        return {
            "key": self.key,
            "title": self.title,
            "state": self.state,
            "sentence": self.sentence,
            "quoted": list(self.quoted),
            "why": self.why,
            "advice": self.advice,
        }


#: States of the question of frequency, where "degenerate" would say too much.
FREQUENCY_WORDS: dict[State, str] = {
    "healthy": "not separated",
    "mild": "partly separated",
    "degenerate": "separated",
    "undecided": "undecided",
}


class Undecided(Exception):
    """A finding needs a number that is missing; the message says why it is."""


def find_scalar(analysis: Numbers, quantity: Quantity) -> Scalar | None:
    """Find the scalar, or None if the analysis has none or it is undefined."""
    scalar = analysis.find_scalar(quantity)
    return None if scalar is None or scalar.value is None else scalar


def find_table(analysis: Numbers, quantity: Quantity) -> Table | None:
    return next((table for table in analysis.tables if table.name == quantity.name), None)


def need(analysis: Numbers, quantity: Quantity) -> Scalar:
    """Return the scalar, which has a value; `Undecided` says why there is none."""
    scalar = analysis.find_scalar(quantity)
    if scalar is None:
        family = quantity.family
        sections = analysis.provenance.get("sections")
        if family in analysis.absent:
            raise Undecided(analysis.absent[family])
        if sections is not None and family not in sections:
            raise Undecided(f"the section {family} was skipped")
        raise Undecided(f"{quantity.name} is not part of this analysis")
    if scalar.value is None:
        raise Undecided(f"{scalar.quantity.title} is not defined ({scalar.undefined})")
    return scalar


def quote(scalar: Scalar, text: str = "") -> Quote:
    """Return a number in a sentence: with its error, or as `text`."""
    brief = "" if text else format_brief(scalar.value, scalar.quantity.unit)
    return Quote(scalar.name, text or scalar.text, brief)


def quote_short(scalar: Scalar, unit: str = "", *, digits: int = 3) -> Quote:
    return Quote(scalar.name, f"{format_number(float(scalar), digits)}{unit}")


def quote_percent(scalar: Scalar) -> Quote:
    return Quote(scalar.name, format_percent(float(scalar)))


def join_parts(between: str, pieces: Iterable[Sequence[Part]]) -> list[Part]:
    """Return one sentence of several pieces."""
    joined: list[Part] = []
    for piece in pieces:
        joined += [*([between] if joined else []), *piece]
    return joined


def join_text(parts: Iterable[Part]) -> str:
    return "".join(part if isinstance(part, str) else part.text for part in parts)


def format_percent(share: float) -> str:
    """Format a share in [0, 1] as percent; 0% and 100% only when exact."""
    for digits in range(2, 12):
        # Rounded before it is multiplied: 100 times a share may round to the other side.
        text = format_number(100.0 * float(f"{share:.{digits}g}"), digits)
        if text not in ("0", "100") or share in (0.0, 1.0):
            return f"{text}%"
    return f"{format_number(100.0 * share, 12)}%"


def format_short(value: float) -> str:
    return format_number(value, 3)


def dimensions(analysis: Numbers) -> int:
    """Return d, at least 1."""
    return max(1, int(analysis.provenance.get("d") or 1))


def count_kept(analysis: Numbers) -> int:
    """Number of rows that the numbers are about; 0 where it is not known."""
    return int(analysis.provenance.get("kept") or 0)


def explain_few_rows(analysis: Numbers) -> str:
    """Explain why only what holds for any number of rows is judged; empty if there are enough."""
    rows, d = count_kept(analysis), dimensions(analysis)
    if not rows or rows >= max(limits.LEAST_ROWS, d / limits.DIMENSIONS_PER_ROW):
        return ""
    return f"too few rows ({rows:,} in {d:,} dimensions)"


def mean_squared_cosine(analysis: Numbers) -> float | None:
    """Return mean² + std² of the cosine of two different rows."""
    mean, std = find_scalar(analysis, cosine.MEAN), find_scalar(analysis, cosine.STD)
    return None if mean is None or std is None else float(mean) ** 2 + float(std) ** 2


def isotropic_cosine_spread(analysis: Numbers) -> float | None:
    """Return the standard error of the mean cosine of isotropic rows; None for a single row."""
    # Cosines of independent uniform directions have variance 1/d and are pairwise uncorrelated,
    # so their mean over M(M−1)/2 pairs has variance 2/(d·M·(M−1)).
    kept = int(analysis.provenance.get("kept") or 0)
    if kept < 2:
        return None
    return math.sqrt(2.0 / (dimensions(analysis) * kept * (kept - 1.0)))


def is_cone_significant(analysis: Numbers) -> bool:
    """Tell whether the mean cosine exceeds chance, however small it is."""
    spread = isotropic_cosine_spread(analysis)
    value = float(need(analysis, cosine.MEAN))
    return spread is not None and value > limits.STANDARD_ERRORS * spread


def is_faint_cone(analysis: Numbers) -> bool:
    """Tell whether the mean cosine exceeds chance and many pairs are affected, however mildly."""
    value = float(need(analysis, cosine.MEAN))
    large = value * math.sqrt(dimensions(analysis)) >= limits.FAINT_CONE
    return large and is_cone_significant(analysis)


def milder(first: State, second: State) -> State:
    """Get the milder of two states: a finding that needs two tests is as bad as the better one."""
    return min(first, second, key=RANK.__getitem__)


# The spectrum that limits are relative to has eigenvalues that fall like λ_k ∝ 1/k. Trained
# representations are near it (Stringer et al. 2019, Nature 571; Agrawal et al. 2022, α-ReQ): the
# fewer dimensions there are, the larger the share of its top direction.


def ordinary_share(analysis: Numbers, first: int = 1) -> float:
    """Return the share of the first eigenvalues, H_first/H_n with n = min(d, number of rows)."""
    shares = [1.0 / k for k in range(1, count_directions(analysis) + 1)]
    return sum(shares[:first]) / sum(shares)


def ordinary_squares(analysis: Numbers) -> float:
    """Sum of the squared shares: the mean squared cosine of rows with that spectrum."""
    share = ordinary_share(analysis)
    return sum((share / k) ** 2 for k in range(1, count_directions(analysis) + 1))


def relative_odds(share: float, ordinary: float) -> float:
    """Return the odds share/(1 − share) over those of the ordinary share; infinite at a share of 1.

    0 if the ordinary share is 1: a single direction cannot hold more than its share.
    """
    if ordinary >= 1.0:
        return 0.0
    if share >= 1.0:
        return math.inf
    return (share / (1.0 - share)) / (ordinary / (1.0 - ordinary))


def count_directions(analysis: Numbers) -> int:
    kept = int(analysis.provenance.get("kept") or 0)
    return min(dimensions(analysis), kept) if kept else dimensions(analysis)
