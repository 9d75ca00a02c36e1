"""Rules of the gate while a model trains."""

import warnings
from collections.abc import Sequence
from typing import Literal, get_args

from embgeo.core.errors import BadOption
from embgeo.core.quantities import LIVE, QUANTITIES, require_known
from embgeo.rules.check import Measured, check_rules
from embgeo.rules.rule import Rule
from embgeo.rules.rule_value import RuleValue

#: Whether a failed rule warns, or also ends the training after this step.
OnBreach = Literal["warn", "stop"]


def warn(message: str) -> None:
    """Warn the user of a trainer, without a line of code: none of theirs is the cause."""
    warnings.warn_explicit(message, UserWarning, "embgeo", 1, module=__name__)


class Alarm:
    """Checks rules; drop, rise and change compare with the first measurement.

    Parameters
    ----------
    rules : sequence of str
        As in :func:`embgeo.gate`, about scalars of an analysis or of the cheap tier
        (``live.zero_rows == 0``).
    on_breach : {"warn", "stop"}

    Attributes
    ----------
    stop : bool
        Whether a failed rule ends the training.
    breaches : tuple of str
        The sentences of the rules that failed at the last check of each tier.
    """

    def __init__(self, rules: Sequence[str], on_breach: OnBreach) -> None:
        if isinstance(rules, str):
            raise BadOption("rules is one text", way_out='give ["tokens.damaged_rows == 0"]')
        if on_breach not in get_args(OnBreach):
            raise BadOption(f"on_breach is {on_breach!r}", way_out='give "warn" or "stop"')
        self.rules = tuple(Rule.parse(rule) for rule in rules)
        for rule in self.rules:
            require_known(rule.name, QUANTITIES.keys() | LIVE.keys(), "rules")
            if rule.tensor:
                raise BadOption(f"{rule.tensor!r} is a tensor", where="rules", way_out="use `of`")
        self.on_breach = on_breach
        self.stop = False
        self._breaches: dict[bool, dict[str, str]] = {False: {}, True: {}}
        self._first: dict[bool, Measured] = {}

    @property
    def scalars(self) -> tuple[str, ...]:
        """Names of the scalars of an analysis that rules are about."""
        return tuple(dict.fromkeys(r.name for r in self.rules if r.name not in LIVE))

    @property
    def has_live(self) -> bool:
        """Whether a rule is about the cheap tier."""
        return any(rule.name in LIVE for rule in self.rules)

    @property
    def breaches(self) -> tuple[str, ...]:
        return (*self._breaches[True].values(), *self._breaches[False].values())

    def check_rows(self, values: dict[str, float]) -> tuple[str, ...]:
        """Return sentences of the rules about the cheap tier that fail now and did not before."""
        readings = {
            name: RuleValue(value, title=LIVE[name].title) for name, value in values.items()
        }
        known = tuple(rule for rule in self.rules if rule.name in values)
        return self._check(known, Measured({}, readings), is_live=True)

    def check_analysis(self, measured: Measured) -> tuple[str, ...]:
        """Return sentences of the rules about an analysis that fail now and did not before."""
        about = tuple(rule for rule in self.rules if rule.name not in LIVE)
        return self._check(about, measured, is_live=False)

    def _check(
        self, rules: tuple[Rule, ...], measured: Measured, *, is_live: bool
    ) -> tuple[str, ...]:
        if not rules:
            return ()
        first = self._first.setdefault(is_live, measured)
        outcome = check_rules(rules, [measured], baseline=[first], baseline_name="the first step")
        bad = [check for check in outcome.checks if check.state not in ("passed", "skipped")]
        if self.on_breach == "stop" and not outcome.passed:
            self.stop = True
        before, now = self._breaches[is_live], {check.rule.text: check.sentence for check in bad}
        self._breaches[is_live] = now
        return tuple(sentence for text, sentence in now.items() if text not in before)
