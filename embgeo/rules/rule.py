"""A rule about a scalar or the verdict: its notation and its parsing; named sets of rules."""

import math
import re
from dataclasses import dataclass
from typing import Literal, Self

from embgeo.core.arguments import refuse_name
from embgeo.core.errors import BadOption, argument
from embgeo.core.quantities import suspects, tokens
from embgeo.rules.rule_value import SCALES

Sense = Literal["value", "drop", "rise", "change"]
#: What a limit of a drop, rise or change is in: the unit of the value, percent of the baseline,
#: standard errors of the difference, or the number of them that the confidence level requires.
Unit = Literal["", "%", "se", "level"]
_SENSES: dict[str | None, Sense] = {
    None: "value",
    "drop": "drop",
    "rise": "rise",
    "change": "change",
}
_SHAPE = re.compile(
    r"(?:(?P<tensor>\S.*?)\s*:\s+)?"
    r"(?P<text>(?P<name>verdict(?![\w.])|[A-Za-z]\w*(?:\.\w+)?)"
    r"(?:\s+(?P<sense>(?!is\b)[a-z]+))?\s*"
    r"(?:(?P<op><=|>=|==|=<|=>|!=|<|>|=|≤|≥)\s*"
    r"(?P<amount>[^\s,%]+?)(?:\s*(?P<unit>%|se))?|\bis\s+not\s+significant))\s*"
    r"(?:,(?P<more>.*))?"
)
_UNITS: dict[str | None, Unit] = {None: "", "%": "%", "se": "se"}
_OPERATORS = ("<=", "<", ">=", ">", "==")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_SIGNS = {"≤": "<=", "≥": ">="}
_HOW = "write NAME >= NUMBER, or NAME drop <= NUMBER, NUMBER% or NUMBER se (also rise, change)"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rule is written: in a line of a file, in an option, or in a preset."""

    file: str = ""
    line: int | None = None
    preset: str = ""

    def __str__(self) -> str:
        if not self.file:
            return f"preset {self.preset}" if self.preset else "--rule"
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def named(self) -> str:
        """The place for an error message, which names the argument or the option."""
        return str(self) if self.file else argument("rules")


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on a value, alone or relative to a baseline."""

    #: ``family.name`` of a scalar, or ``verdict``.
    name: str
    op: str
    #: The limit in its unit; without meaning for the unit "level".
    amount: float
    #: What is limited, for the value x and the baseline b: x, b − x, x − b or |x − b|.
    sense: Sense = "value"
    unit: Unit = ""
    #: The tensor that the rule is about, see :func:`is_called`; empty for the analyzed one.
    tensor: str = ""
    #: Whether a failure is only a warning.
    warn: bool = False
    #: Whether an undefined value is skipped and does not fail.
    allow_undefined: bool = False
    #: The rule as written, without tensor and additions.
    text: str = ""
    place: Place = Place()

    @property
    def family(self) -> str:
        return self.name.partition(".")[0]

    @property
    def scale(self) -> tuple[str, ...]:
        """The words that the value may be, best first; empty for numbers."""
        return SCALES.get(self.name, ())

    @property
    def is_relative(self) -> bool:
        return self.sense != "value"

    @property
    def is_of_errors(self) -> bool:
        """Whether the limit is a number of standard errors."""
        return self.unit in ("se", "level")

    @classmethod
    def parse(cls, text: str, place: Place | None = None) -> Self:
        """Read ``[TENSOR: ]NAME [SENSE] OP NUMBER[%| se][, warn][, allow undefined]``.

        ``OP NUMBER`` of a difference may be ``is not significant``.
        """
        place = place or Place()
        try:
            return cls._read(text, place)
        except _Fault as fault:
            cause, way_out = fault.args
            raise BadOption(cause, where=place.named, way_out=way_out) from None

    @classmethod
    def _read(cls, text: str, place: Place) -> Self:
        found = _SHAPE.fullmatch(text.strip())
        if found is None:
            raise _Fault(f"cannot parse rule {text!r}", _HOW)
        if found["sense"] not in _SENSES:
            raise _Fault(f"{found['sense']!r} in {text!r} is unknown", _HOW)
        additions = [] if found["more"] is None else found["more"].split(",")
        words = [" ".join(word.split()) for word in additions]
        for word in words:
            if word not in ("warn", "allow undefined"):
                raise _Fault(f"{word!r} in {text!r} is unknown", "add warn or allow undefined")
        rule = cls(
            name=found["name"],
            op=_SIGNS.get(found["op"], found["op"] or "<="),
            amount=0.0 if found["op"] is None else _read_amount(found, text),
            sense=_SENSES[found["sense"]],
            unit=_UNITS[found["unit"]] if found["op"] else "level",
            tensor=found["tensor"] or "",
            warn="warn" in words,
            allow_undefined="allow undefined" in words,
            text=found["text"],
            place=place,
        )
        rule._check(text)
        return rule

    def _check(self, text: str) -> None:
        """Refuse rules that parse and mean nothing."""
        if self.op not in _OPERATORS:
            raise _Fault(f"{self.op} in {text!r} is not a comparison", "use <=, <, >=, > or ==")
        if self.unit and self.scale:
            raise _Fault(
                f"{text!r} is about a number, and the verdict is a word", "write verdict rise <= 0"
            )
        if self.unit and not self.is_relative:
            way_out = "write cosine.mean rise <= 5% or 2 se (also drop, change)"
            raise _Fault(f"{text!r} is about a difference, and names none", way_out)
        if self.is_relative and self.amount < 0:
            way_out = "a negative drop is a rise, and the other way round"
            raise _Fault(f"{text!r} limits a {self.sense} by a negative number", way_out)
        if self.is_relative and self.op == "==":
            raise _Fault(f"{text!r} asks for an exact {self.sense}", "use <= or >=")
        if self.sense == "change" and self.op not in ("<=", "<"):
            raise _Fault(f"{text!r} asks for a change of either sign", "use drop >= or rise >=")


class _Fault(Exception):
    """What is wrong with a rule, and the way out."""


def _read_amount(found: re.Match[str], text: str) -> float:
    """Read the limit; a word of a scale counts as its place in it."""
    scale, amount = SCALES.get(found["name"], ()), found["amount"]
    if amount in scale:
        return float(scale.index(amount))
    if scale and found["sense"] is None:
        way_out = f"write {', '.join(scale[:-1])} or {scale[-1]}"
        raise _Fault(f"{amount!r} in {text!r} is not a state of the {found['name']}", way_out)
    plain = amount.replace("−", "-")
    if not (_NUMBER.fullmatch(plain) and math.isfinite(float(plain))):
        of = next((name for name, words in SCALES.items() if amount in words), "")
        way_out = f"write {of} {found['op']} {amount}" if of else "write 0.5, 1e-3 or 40"
        raise _Fault(f"{amount!r} in {text!r} is not a number", way_out)
    return float(plain)


def is_called(tensor: str, name: str) -> bool:
    """Tell whether `name` is that of the tensor, or ends it behind a dot."""
    return tensor == name or tensor.endswith(f".{name}")


PRESETS: dict[str, tuple[str, ...]] = {
    # Fine-tuning needs a row of its own for each token that is used, and the matrices that the
    # configuration names. In a very narrow cone near-identical rows are ordinary, and not every
    # model has a configuration.
    "finetune-ready": (
        *(f"{one.name} <= 0" for one in suspects.COUNTS.values() if one != suspects.NEAR_IDENTICAL),
        f"{suspects.NEAR_IDENTICAL.name} <= 0, allow undefined",
        f"{tokens.MISSING_ROWS.name} == 0, allow undefined",
        f"{tokens.TIED_AS_CONFIGURED.name} == 1, allow undefined",
    ),
}


def read_preset(name: str) -> tuple[Rule, ...]:
    if name not in PRESETS:
        raise refuse_name("preset", name, PRESETS, argument("preset"))
    return tuple(Rule.parse(text, Place(preset=name)) for text in PRESETS[name])
