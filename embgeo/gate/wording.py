"""What is said about a rule that was checked: one clause, to follow the name of the value."""

from __future__ import annotations

import math

from embgeo.core.values import format_number
from embgeo.gate.rule import Rule
from embgeo.gate.rule_value import RuleValue, show

_WANTED = {
    "<=": "at most",
    "<": "less than",
    ">=": "at least",
    ">": "more than",
    "==": "exactly",
}
#: Relative difference from a baseline that means nothing: baselines are rounded, and the last
#: digits of a number differ from one linear-algebra library to the next.
RESOLUTION = 1e-9
#: Digits at which any two different floats look different.
_ALL_DIGITS = 17


def describe_decision(
    rule: Rule, x: RuleValue, b: RuleValue | None, z: float, *, passed: bool, alone: bool
) -> str:
    """``is 0.09125, has to be at least 0.5``: the value, and what it should have been.

    Parameters
    ----------
    x : RuleValue
        With a value.
    b : RuleValue or None
        The baseline of a relative rule, with a value.
    z : float
        Standard errors either side that were allowed for.
    alone : bool
        Whether the rule holds for the numbers alone, without their errors.
    """
    said = describe_value(rule, x, alone) if b is None else describe_change(x, b)
    if not passed:
        said += f"{', ' if b is None else '; '}{describe_limit(rule)}"
        if alone:
            said += f"; {describe_doubt(rule, x, b, z)}"
    return said


def describe_value(rule: Rule, x: RuleValue, alone: bool) -> str:
    assert x.value is not None
    if x.known == "exact" and not alone and not x.scale:
        return f"is {format_apart(x.value, rule.amount)}{unit_of(x)}"
    return f"is {x.text}"


def describe_change(x: RuleValue, b: RuleValue) -> str:
    """``fell from 0.8 to 0.76, by 0.04 (5 %)``."""
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
    share = abs(difference / b.value) * 100 if b.value else math.inf
    return f"{said} ({format_number(share, 3)} %)" if math.isfinite(share) else said


def describe_limit(rule: Rule) -> str:
    scale = () if rule.is_relative else rule.scale
    amount = f"{_WANTED[rule.op]} {show(rule.amount, scale)}{' %' if rule.percent else ''}"
    if rule.sense == "value":
        return f"has to be {amount}"
    verb = "is wanted" if rule.op in (">=", ">") else "is allowed"
    return f"a {rule.sense} of {amount} {verb}"


def describe_doubt(rule: Rule, x: RuleValue, b: RuleValue | None, z: float) -> str:
    """Why numbers that look right are not enough."""
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
    """Whether two numbers differ by nothing that means anything."""
    return abs(value - other) <= RESOLUTION * max(abs(value), abs(other))


def format_apart(value: float, other: float) -> str:
    """`value` with as many digits as it takes to tell it from `other`."""
    for digits in range(4, _ALL_DIGITS + 1):
        shown = format_number(value, digits)
        if shown != format_number(other, digits):
            return shown
    return format_number(value)


def unit_of(x: RuleValue) -> str:
    return f" {x.unit}" if x.unit else ""
