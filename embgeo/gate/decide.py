"""Whether a rule holds for a value, beyond doubt."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from embgeo.gate.rule import Rule
from embgeo.gate.rule_value import RuleValue
from embgeo.gate.wording import RESOLUTION, describe_decision

#: passed: it holds. failed: it does not, or cannot be told. warned: the same of a rule that only
#: warns. skipped: the value is not defined, and the rule allows that.
State = Literal["passed", "failed", "warned", "skipped"]
STATES: tuple[State, ...] = ("passed", "failed", "warned", "skipped")

Interval = tuple[float, float]


class Decision(NamedTuple):
    """Whether a rule holds, and why: a clause to follow the name of the value."""

    state: State
    reason: str


def decide(rule: Rule, value: RuleValue, baseline: RuleValue | None, z: float) -> Decision:
    """Whether a rule holds for a value, beyond doubt.

    Parameters
    ----------
    baseline : RuleValue or None
        What the value is compared with; rules on the value itself do not look at it.
    z : float
        Standard errors that a sampled value may be off, either side.

    Returns
    -------
    Decision
        A pure function of the arguments. A sampled value passes only if its whole interval
        does; of value and baseline the errors are taken as independent.
    """
    failed: State = "warned" if rule.warn else "failed"
    undefined = value.why_undefined
    if not undefined and rule.is_relative:
        if baseline is None:
            undefined = "there is no baseline to compare it with"
        elif baseline.value is None:
            undefined = f"in the baseline: {baseline.why_undefined}"
    if undefined:
        return Decision(
            "skipped" if rule.allow_undefined else failed, f"is not defined: {undefined}"
        )
    other = baseline if rule.is_relative else None
    passed = _is_proved(rule, value, other, z)
    alone = passed or _is_proved(rule, value.as_exact(), other and other.as_exact(), z)
    reason = describe_decision(rule, value, other, z, passed=passed, alone=alone)
    return Decision("passed" if passed else failed, reason)


def _is_proved(rule: Rule, x: RuleValue, b: RuleValue | None, z: float) -> bool:
    return all(_is_within(rule, low, high) for low, high in _intervals(rule, x, b, z))


def _is_within(rule: Rule, low: float, high: float) -> bool:
    """Whether the whole interval of what is compared with `limit` is on the right side."""
    limit = 0.0 if rule.is_relative else rule.amount
    if rule.op == "==":
        return low == high == limit
    if rule.op in ("<=", "<"):
        return high <= limit if rule.op == "<=" else high < limit
    return low >= limit if rule.op == ">=" else low > limit


def _intervals(rule: Rule, x: RuleValue, b: RuleValue | None, z: float) -> list[Interval]:
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
    directions = {"drop": (-1.0,), "rise": (1.0,), "change": (1.0, -1.0)}[rule.sense]
    share, amount = (rule.amount / 100.0, 0.0) if rule.percent else (0.0, rule.amount)
    likelier = math.copysign(1.0, b.value)
    signs = (likelier,) if rule.op in ("<=", "<") or not share else (1.0, -1.0)
    found = []
    for direction in directions:
        for sign in signs:
            on_b = -direction - share * sign
            middle = direction * x.value + on_b * b.value - amount
            parts = (_scale(direction, x.slack(z)), _scale(on_b, b.slack(z)))
            below, above = (math.hypot(*side) for side in zip(*parts, strict=True))
            rounding = RESOLUTION * max(abs(x.value), abs(b.value))
            if abs(middle) <= rounding:
                middle = 0.0
            found.append((middle - below, middle + above))
    return found


def _scale(factor: float, slack: Interval) -> Interval:
    """The slack of a multiple: a negative factor swaps the sides."""
    if factor == 0.0:
        return 0.0, 0.0
    below, above = slack if factor > 0 else slack[::-1]
    return abs(factor) * below, abs(factor) * above
