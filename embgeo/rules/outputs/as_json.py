"""The outcome as one JSON document.

Format history
--------------
1 : first version (embgeo 0.1).
"""

import json
from typing import Any

from embgeo.rules.check import Check, Outcome
from embgeo.rules.decide import STATES
from embgeo.rules.rule_value import RuleValue, deviations, show

FORMAT = "embgeo.gate"
FORMAT_VERSION = 1


def render(outcome: Outcome) -> str:
    return json.dumps(to_json(outcome), indent=1, allow_nan=False) + "\n"


def to_json(outcome: Outcome) -> dict[str, Any]:
    """Return every field; ``docs/gate.md`` lists them."""
    places = {id(matrix): at for at, matrix in enumerate(outcome.matrices)}
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "passed": outcome.passed,
        "counts": {state: len(outcome.of_state(state)) for state in STATES},
        "level": outcome.level,
        "standard_errors": deviations(outcome.level),
        "baseline": outcome.baseline or None,
        "matrices": [
            {
                key: matrix.provenance.get(key)
                for key in ("file", "tensor", "sha256", "n", "d", "kept")
            }
            for matrix in outcome.matrices
        ],
        "checks": [
            check_to_json(check, None if check.matrix is None else places[id(check.matrix)])
            for check in outcome.checks
        ],
    }


def check_to_json(check: Check, matrix: int | None) -> dict[str, Any]:
    rule = check.rule
    return {
        "state": check.state,
        "rule": rule.text,
        "reason": check.decision.reason,
        "matrix": matrix,
        "name": rule.name,
        "sense": rule.sense,
        "op": rule.op,
        "amount": _plain(rule.amount, () if rule.is_relative else rule.scale),
        "amount_unit": rule.unit,
        "tensor": rule.tensor or None,
        "warn": rule.warn,
        "allow_undefined": rule.allow_undefined,
        "file": rule.place.file or None,
        "line": rule.place.line,
        "measured": reading_to_json(check.reading),
        "baseline": None if check.baseline is None else reading_to_json(check.baseline),
    }


def reading_to_json(reading: RuleValue) -> dict[str, Any]:
    names = ("standard_error", "known", "undefined", "title", "unit", "convention")
    value = None if reading.value is None else _plain(reading.value, reading.scale)
    return {"value": value} | {name: getattr(reading, name) for name in names}


def _plain(amount: float, scale: tuple[str, ...]) -> float | str:
    """Return a number, or the word of a scale that it stands for."""
    return show(amount, scale) if scale else amount
