"""Whether a rule holds for a value, its sampling error included."""

import math
import operator as op
from typing import Literal, NamedTuple

from embgeo.core.numbers import join_unit
from embgeo.core.values import format_number
from embgeo.rules.rule import Rule
from embgeo.rules.rule_value import RuleValue, show

#: failed: the rule does not hold, or is not known to. unchecked: the value is undefined.
#: warned: one of both, of a rule that only warns. skipped: undefined, which is allowed.
State = Literal["passed", "failed", "unchecked", "warned", "skipped"]
STATES: tuple[State, ...] = ("passed", "failed", "unchecked", "warned", "skipped")
#: The states that a gate does not pass with.
BLOCKING: tuple[State, ...] = ("failed", "unchecked")

Interval = tuple[float, float]
_WORDS = {"<=": "at most", "<": "less than", ">=": "at least", ">": "more than", "==": "exactly"}
_UNITS = {"": "", "%": "%", "se": " standard errors"}
_COMPARISONS = {"<=": op.le, "<": op.lt, ">=": op.ge, ">": op.gt, "==": op.eq}
#: Relative difference from a baseline that counts as none: baselines are rounded, and the last
#: digits of a number depend on the linear-algebra library.
RESOLUTION = 1e-9
#: Percent of the baseline from which a change is not stated as a share: the baseline is near 0.
LARGEST_SHARE = 1000.0
#: Enough digits to tell any two floats apart.
_ALL_DIGITS = 17


class Decision(NamedTuple):
    """Whether a rule holds, and why, as a clause that follows the name of the value."""

    state: State
    reason: str


def decide(rule: Rule, value: RuleValue, baseline: RuleValue | None, z: float) -> Decision:
    """Tell whether a rule holds for a value; only relative rules use the `baseline`.

    A sampled value passes only if its whole interval of ± `z` standard errors does. The errors of
    value and baseline are taken as independent. Where the limit is in standard errors, the numbers
    alone are compared with it.
    """
    undefined = value.why_undefined
    if not undefined and rule.is_relative:
        if baseline is None:
            undefined = "there is no baseline to compare it with"
        elif baseline.value is None:
            undefined = f"in the baseline: {baseline.why_undefined}"
        elif rule.is_of_errors:
            undefined = explain_no_error(value, baseline)
    if undefined:
        blocked: State = "warned" if rule.warn else "unchecked"
        state = "skipped" if rule.allow_undefined else blocked
        return Decision(state, f"is not defined: {undefined}")
    other = baseline if rule.is_relative else None
    passed = _is_proved(rule, value, other, z)
    alone = passed or (
        not rule.is_of_errors and _is_proved(rule, value.as_exact(), other and other.as_exact(), z)
    )
    reason = describe_decision(rule, value, other, z, passed=passed, alone=alone)
    if passed:
        return Decision("passed", reason)
    return Decision("warned" if rule.warn else "failed", reason)


def _is_proved(rule: Rule, x: RuleValue, b: RuleValue | None, z: float) -> bool:
    return all(_is_within(rule, low, high) for low, high in _intervals(rule, x, b, z))


def _is_within(rule: Rule, low: float, high: float) -> bool:
    """Tell whether the whole interval satisfies the rule."""
    limit = 0.0 if rule.is_relative else rule.amount
    compare = _COMPARISONS[rule.op]
    return bool(compare(low, limit) and compare(high, limit))


def _intervals(rule: Rule, x: RuleValue, b: RuleValue | None, z: float) -> list[Interval]:
    """Return the intervals that all have to satisfy the rule.

    For a relative rule they are those of ±(x − b) − p·|b|, or minus the amount itself: linear in
    x and b, so that the errors combine without a quotient. |b| = s·b with the sign s of b, and
    |b| ≥ s·b for either sign: for <= the likelier sign proves the rule; for >= both have to.
    """
    assert x.value is not None
    if b is None:
        below, above = x.slack(z)
        return [(x.value - below, x.value + above)]
    assert b.value is not None
    directions = {"drop": (-1.0,), "rise": (1.0,), "change": (1.0, -1.0)}[rule.sense]
    share = rule.amount / 100.0 if rule.unit == "%" else 0.0
    limit = {"": rule.amount, "%": 0.0}.get(rule.unit, measure_error(rule, x, b, z))
    likelier = math.copysign(1.0, b.value)
    signs = (likelier,) if rule.op in ("<=", "<") or not share else (1.0, -1.0)
    found = []
    for direction in directions:
        for sign in signs:
            on_b = -direction - share * sign
            middle = direction * x.value + on_b * b.value - limit
            below = above = 0.0
            if not rule.is_of_errors:
                parts = (_scale(direction, x.slack(z)), _scale(on_b, b.slack(z)))
                below, above = (math.hypot(*side) for side in zip(*parts, strict=True))
            rounding = RESOLUTION * max(abs(x.value), abs(b.value))
            if abs(middle) <= rounding:
                middle = 0.0
            found.append((middle - below, middle + above))
    return found


def measure_error(rule: Rule, x: RuleValue, b: RuleValue, z: float) -> float:
    """Return the limit of a rule in standard errors, in the unit of the value.

    With few draws, the number of a level is that of Student's t.
    """
    if rule.unit == "level":
        return math.hypot(x.slack(z)[0], b.slack(z)[0])
    return rule.amount * math.hypot(x.standard_error or 0.0, b.standard_error or 0.0)


def explain_no_error(x: RuleValue, b: RuleValue) -> str:
    """Explain why a difference has no standard error; empty if it has one or is zero."""
    assert x.value is not None
    assert b.value is not None
    if is_same(x.value, b.value) or {x.known, b.known} in ({"sampled"}, {"sampled", "exact"}):
        return ""
    return "no standard error of the difference is known"


def _scale(factor: float, slack: Interval) -> Interval:
    """Return the slack of a multiple: a negative factor swaps the sides."""
    if factor == 0.0:
        return 0.0, 0.0
    below, above = slack if factor > 0 else slack[::-1]
    return abs(factor) * below, abs(factor) * above


def describe_decision(
    rule: Rule, x: RuleValue, b: RuleValue | None, z: float, *, passed: bool, alone: bool
) -> str:
    """Return ``is 0.09125, has to be at least 0.5``: the value, and what is required of it.

    `b` is the baseline of a relative rule; `alone`: the rule holds if errors are ignored.
    """
    said = describe_value(rule, x, alone) if b is None else describe_change(x, b)
    if not passed:
        said += f"{', ' if b is None else '; '}{describe_limit(rule)}"
        if rule.is_of_errors and b is not None:
            said += f", here {format_number(measure_error(rule, x, b, z), 2)}{unit_of(x)}"
        if rule.unit == "%" and b is not None and measure_share(x, b) > LARGEST_SHARE:
            said += f"; the baseline is near 0, use an absolute limit such as {rule.sense} <= 0.05"
        if alone:
            said += f"; {describe_doubt(rule, x, b, z)}"
    return said


def describe_value(rule: Rule, x: RuleValue, alone: bool) -> str:
    assert x.value is not None
    if x.known == "exact" and not alone and not x.scale:
        return f"is {format_apart(x.value, rule.amount)}{unit_of(x)}"
    return f"is {x.text}"


def describe_change(x: RuleValue, b: RuleValue) -> str:
    """Return ``fell from 0.8 to 0.76, by 0.04 (5%)``."""
    assert x.value is not None
    assert b.value is not None
    difference = x.value - b.value
    if is_same(x.value, b.value):
        return f"is {x.text} as in the baseline"
    if x.scale:
        worse = "rose" if difference > 0 else "fell"
        return f"{worse} from {show(b.value, x.scale)} to {x.text}"
    before, after = format_apart(b.value, x.value), format_apart(x.value, b.value)
    said = f"{'fell' if difference < 0 else 'rose'} from {before} to {after}{unit_of(x)}"
    if math.isfinite(difference):
        said += f", by {format_number(abs(difference))}{unit_of(x)}"
    share = measure_share(x, b)
    return f"{said} ({format_number(share, 3)}%)" if share <= LARGEST_SHARE else said


def measure_share(x: RuleValue, b: RuleValue) -> float:
    """Measure the change from a baseline in percent of it."""
    assert x.value is not None
    assert b.value is not None
    if x.value == b.value:
        return 0.0
    return abs((x.value - b.value) / b.value) * 100 if b.value else math.inf


def describe_limit(rule: Rule) -> str:
    if rule.unit == "level":
        return f"a {rule.sense} that is not significant is allowed"
    scale = () if rule.is_relative else rule.scale
    amount = f"{_WORDS[rule.op]} {show(rule.amount, scale)}{_UNITS[rule.unit]}"
    if rule.sense == "value":
        return f"has to be {amount}"
    verb = "is required" if rule.op in (">=", ">") else "is allowed"
    return f"a {rule.sense} of {amount} {verb}"


def describe_doubt(rule: Rule, x: RuleValue, b: RuleValue | None, z: float) -> str:
    """Describe why a rule fails that holds if errors are ignored."""
    assert x.value is not None
    vague = next((r for r in (x, b) if r is not None and math.isinf(max(r.slack(z)))), None)
    if vague is None and b is None:
        below, above = x.slack(z)
        worst = x.value - below if rule.op in (">=", ">") else x.value + above
        return f"within its sampling error it may be {format_apart(worst, rule.amount)}"
    if vague is None:
        slack = math.hypot(*(r.slack(z)[0] for r in (x, b) if r is not None))
        return f"the sampling error (± {format_number(slack, 2)}) is too large to tell"
    whose = "" if vague is x else "of the baseline "
    known = {"least": "only a lower bound", "most": "only an upper bound"}.get(vague.known)
    if known is None:
        return f"{whose}no standard error is known, so that nothing is proved"
    return f"{whose}the sample shows {known}"


def is_same(value: float, other: float) -> bool:
    """Tell whether two numbers are equal up to `RESOLUTION`."""
    return abs(value - other) <= RESOLUTION * max(abs(value), abs(other))


def format_apart(value: float, other: float) -> str:
    """Return `value` with enough digits to tell it from `other`."""
    for digits in range(4, _ALL_DIGITS + 1):
        shown = format_number(value, digits)
        if shown != format_number(other, digits):
            return shown
    return format_number(value)


def unit_of(x: RuleValue) -> str:
    return join_unit("", x.unit)
