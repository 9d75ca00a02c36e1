"""A rule about one number or about the verdict, as it is written."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Literal, Self

from embgeo.core.errors import BadOption, argument
from embgeo.gate.rule_value import SCALES

Sense = Literal["value", "drop", "rise", "change"]
_SHAPE = re.compile(
    r"(?:(?P<tensor>\S.*?)\s*:\s+)?"
    r"(?P<text>(?P<name>verdict(?![\w.])|[A-Za-z]\w*\.\w+)"
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

    @property
    def named(self) -> str:
        """The same for an error, which names the argument or the option."""
        return str(self) if self.file else argument("rules")


@dataclass(frozen=True, slots=True)
class Rule:
    """What a number has to be, alone or against a baseline.

    Attributes
    ----------
    name : str
        ``family.name`` of a scalar, or ``verdict``.
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
    def scale(self) -> tuple[str, ...]:
        """The words that the value may be, the best one first; empty for numbers."""
        return SCALES.get(self.name, ())

    @property
    def is_relative(self) -> bool:
        return self.sense != "value"

    @classmethod
    def parse(cls, text: str, place: Place | None = None) -> Self:
        """Read ``[TENSOR: ]NAME [drop|rise|change] OP NUMBER[%][, warn][, allow undefined]``."""
        place = place or Place()
        found = _SHAPE.fullmatch(text.strip())
        if found is None:
            raise BadOption(f"cannot parse rule {text!r}", where=place.named, way_out=_HOW)
        rule = cls(
            name=found["name"],
            op=_SIGNS.get(found["op"], found["op"]),
            amount=_amount(found, text, place),
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
            where=self.place.named,
            way_out="what may follow the comma: warn, allow undefined",
        )

    def _check(self, text: str) -> None:
        """Refuse what has a shape but no meaning."""
        cause, way_out = "", _HOW
        if self.op not in ("<=", "<", ">=", ">", "=="):
            cause, way_out = f"{self.op} in {text!r} is not a comparison", "use <=, <, >=, > or =="
        elif self.percent and self.scale:
            cause, way_out = f"{text!r} is a percentage of a word", "write verdict rise <= 0"
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
            raise BadOption(cause, where=self.place.named, way_out=way_out)


def _amount(found: re.Match[str], text: str, place: Place) -> float:
    """The limit: a word of the value's scale counts as its place in it."""
    scale = SCALES.get(found["name"], ())
    if found["amount"] in scale:
        return float(scale.index(found["amount"]))
    if scale and found["sense"] is None:
        raise BadOption(
            f"{found['amount']!r} in {text!r} is not a state of the {found['name']}",
            where=place.named,
            way_out=f"write {', '.join(scale[:-1])} or {scale[-1]}",
        )
    return _number(found["amount"], text, place)


def _number(amount: str, text: str, place: Place) -> float:
    plain = amount.replace("−", "-")
    if _NUMBER.fullmatch(plain) and math.isfinite(float(plain)):
        return float(plain)
    raise BadOption(
        f"{amount!r} in {text!r} is not a number",
        where=place.named,
        way_out="write 0.5, 1e-3 or 40",
    )


def _sense(word: str | None, text: str, place: Place) -> Sense:
    known: dict[str | None, Sense] = {
        None: "value",
        "drop": "drop",
        "rise": "rise",
        "change": "change",
    }
    if word not in known:
        raise BadOption(f"{word!r} in {text!r} means nothing", where=place.named, way_out=_HOW)
    return known[word]
