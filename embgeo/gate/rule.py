"""A rule about one number, and whether it holds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Literal, Self

from embgeo.core.errors import BadOption
from embgeo.gate.reading import Reading
from embgeo.gate.wording import RESOLUTION, sentence

Sense = Literal["value", "drop", "rise", "change"]
#: passed: it holds. failed: it does not, or cannot be told. warned: the same of a rule that only
#: warns. skipped: the value is not defined, and the rule allows that.
State = Literal["passed", "failed", "warned", "skipped"]
STATES: tuple[State, ...] = ("passed", "failed", "warned", "skipped")

_SHAPE = re.compile(
    r"(?:(?P<tensor>\S.*?)\s*:\s+)?"
    r"(?P<text>(?P<name>[A-Za-z]\w*\.\w+)"
    r"(?:\s+(?P<sense>[a-z]+))?\s*"
    r"(?P<op><=|>=|==|=<|=>|!=|<|>|=|≤|≥)\s*"
    r"(?P<amount>[^\s,%]+)(?:\s*(?P<percent>%))?)\s*"
    r"(?:,(?P<more>.*))?"
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_SIGNS = {"≤": "<=", "≥": ">="}
_HOW = "write NAME >= NUMBER, or NAME drop <= NUMBER or NUMBER% (also rise, change)"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rule was written: a file with a line, or an option."""

    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        if not self.file:
            return "--rule"
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of a rule, and why."""

    state: State
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a number has to be, alone or against a baseline.

    Attributes
    ----------
    name : str
        ``family.name`` of a scalar.
    sense : {"value", "drop", "rise", "change"}
        What is limited: the value itself, or its difference from the baseline (x the value, b the
        baseline): drop b − x, rise x − b, change |x − b|.
    op : {"<=", "<", ">=", ">", "=="}
    amount : float
        The limit; for `percent` in hundredths of |b|.
    percent : bool
    tensor : str
        Only of this tensor (its name, or what follows a dot in it); empty: of the one that is
        analyzed anyway.
    warn : bool
        Whether a failure is only reported.
    allow_undefined : bool
        Whether a value that is not defined is let through.
    text : str
        The rule without its additions, as it was written.
    place : Place
    """

    name: str
    op: str
    amount: float
    sense: Sense = "value"
    percent: bool = False
    tensor: str = ""
    warn: bool = False
    allow_undefined: bool = False
    text: str = ""
    place: Place = Place()

    @property
    def family(self) -> str:
        return self.name.partition(".")[0]

    @property
    def is_relative(self) -> bool:
        return self.sense != "value"

    @classmethod
    def parse(cls, text: str, place: Place | None = None) -> Self:
        """Read ``[TENSOR: ]NAME [drop|rise|change] OP NUMBER[%][, warn][, allow undefined]``.

        Raises
        ------
        BadOption
            Anything else; the message names the place and the way out.
        """
        place = place or Place()
        found = _SHAPE.fullmatch(text.strip())
        if found is None:
            raise BadOption(f"{text!r} is no rule", where=str(place), way_out=_HOW)
        rule = cls(
            name=found["name"],
            op=_SIGNS.get(found["op"], found["op"]),
            amount=_number(found["amount"], text, place),
            sense=_sense(found["sense"], text, place),
            percent=found["percent"] is not None,
            tensor=found["tensor"] or "",
            text=found["text"],
            place=place,
        )
        rule._check(text)
        for word in [] if found["more"] is None else found["more"].split(","):
            rule = rule._with(" ".join(word.split()), text)
        return rule

    def _with(self, word: str, text: str) -> Self:
        if word == "warn":
            return replace(self, warn=True)
        if word == "allow undefined":
            return replace(self, allow_undefined=True)
        raise BadOption(
            f"{word!r} in {text!r} means nothing",
            where=str(self.place),
            way_out="what may follow the comma: warn, allow undefined",
        )

    def _check(self, text: str) -> None:
        """Refuse what has a shape but no meaning."""
        cause, way_out = "", _HOW
        if self.op not in ("<=", "<", ">=", ">", "=="):
            cause, way_out = f"{self.op} in {text!r} is no comparison", "use <=, <, >=, > or =="
        elif self.percent and not self.is_relative:
            cause = f"{text!r} is a percentage of nothing"
            way_out = "a share of one is written 0.05; percentages go with drop, rise and change"
        elif self.is_relative and self.amount < 0:
            cause = f"{text!r} limits a {self.sense} by a negative number"
            way_out = "a drop below zero is a rise, and the other way round"
        elif self.is_relative and self.op == "==":
            cause, way_out = f"{text!r} asks for an exact {self.sense}", "use <= or >="
        elif self.sense == "change" and self.op not in ("<=", "<"):
            cause, way_out = f"{text!r} asks for a change of either sign", "use drop >= or rise >="
        if cause:
            raise BadOption(cause, where=str(self.place), way_out=way_out)

    def holds(self, reading: Reading, baseline: Reading | None, z: float) -> Finding:
        """Whether the rule holds for a value, beyond doubt.

        Parameters
        ----------
        reading : Reading
        baseline : Reading or None
            What the value is compared with; rules on the value itself do not look at it.
        z : float
            Standard errors that a sampled value may be off, either side.

        Returns
        -------
        Finding
            A pure function of the arguments. A sampled value passes only if its whole interval
            does; of value and baseline the errors are taken as independent.
        """
        undefined = reading.why_undefined
        if not undefined and self.is_relative:
            if baseline is None:
                undefined = "there is no baseline to compare it with"
            elif baseline.value is None:
                undefined = f"in the baseline: {baseline.why_undefined}"
        if undefined:
            said = f"is not defined: {undefined}"
            return Finding("skipped", said) if self.allow_undefined else self._failed(said)
        other = baseline if self.is_relative else None
        passed = self._proved(reading, other, z)
        alone = passed or self._proved(reading.as_exact(), other and other.as_exact(), z)
        said = sentence(self, reading, other, z, passed=passed, alone=alone)
        return Finding("passed", said) if passed else self._failed(said)

    def _failed(self, reason: str) -> Finding:
        return Finding("warned" if self.warn else "failed", reason)

    def _proved(self, x: Reading, b: Reading | None, z: float) -> bool:
        return all(self._within(low, high) for low, high in self._intervals(x, b, z))

    def _within(self, low: float, high: float) -> bool:
        """Whether the whole interval of what is compared with `limit` is on the right side."""
        limit = 0.0 if self.is_relative else self.amount
        if self.op == "==":
            return low == high == limit
        if self.op in ("<=", "<"):
            return high <= limit if self.op == "<=" else high < limit
        return low >= limit if self.op == ">=" else low > limit

    def _intervals(self, x: Reading, b: Reading | None, z: float) -> list[tuple[float, float]]:
        """Intervals that all have to lie on the right side.

        Of a relative rule these are of ±(x − b) − p·|b| (or minus the amount itself): linear in x
        and b, so that their errors combine without a quotient, whatever b is. |b| is s·b, with the
        sign s of b. |b| is never below s·b: for <= the likelier sign proves the rule whatever the
        true one is; for >= both signs have to agree.
        """
        assert x.value is not None
        if b is None:
            below, above = x.slack(z)
            return [(x.value - below, x.value + above)]
        assert b.value is not None
        directions = {"drop": (-1.0,), "rise": (1.0,), "change": (1.0, -1.0)}[self.sense]
        share, amount = (self.amount / 100.0, 0.0) if self.percent else (0.0, self.amount)
        likelier = math.copysign(1.0, b.value)
        signs = (likelier,) if self.op in ("<=", "<") or not share else (1.0, -1.0)
        found = []
        for direction in directions:
            for sign in signs:
                on_b = -direction - share * sign
                middle = direction * x.value + on_b * b.value - amount
                parts = (scaled(direction, x.slack(z)), scaled(on_b, b.slack(z)))
                below, above = (math.hypot(*side) for side in zip(*parts, strict=True))
                rounding = RESOLUTION * max(abs(x.value), abs(b.value))
                if abs(middle) <= rounding:
                    middle = 0.0
                found.append((middle - below, middle + above))
        return found


def scaled(factor: float, slack: tuple[float, float]) -> tuple[float, float]:
    """The slack of a multiple: a negative factor swaps the sides."""
    if factor == 0.0:
        return 0.0, 0.0
    below, above = slack if factor > 0 else slack[::-1]
    return abs(factor) * below, abs(factor) * above


def _number(amount: str, text: str, place: Place) -> float:
    plain = amount.replace("−", "-")
    if _NUMBER.fullmatch(plain) and math.isfinite(float(plain)):
        return float(plain)
    raise BadOption(
        f"{amount!r} in {text!r} is no number", where=str(place), way_out="write 0.5, 1e-3 or 40"
    )


def _sense(word: str | None, text: str, place: Place) -> Sense:
    known: dict[str | None, Sense] = {
        None: "value",
        "drop": "drop",
        "rise": "rise",
        "change": "change",
    }
    if word not in known:
        raise BadOption(f"{word!r} in {text!r} means nothing", where=str(place), way_out=_HOW)
    return known[word]
