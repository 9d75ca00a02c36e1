"""Every number measured as one flat JSON object, as DVC and MLflow take it."""

from __future__ import annotations

import json
import re

from embgeo.gate.check import Outcome
from embgeo.gate.decide import STATES
from embgeo.gate.text import labels, round_digits

NAME = "metrics.json"


def render(outcome: Outcome) -> str:
    """``{"cosine.mean": 0.47, …}``, sorted; with several matrices ``"matrix/cosine.mean"``."""
    several = len(outcome.matrices) > 1
    found: dict[str, float | int] = {}
    prefixes = prefixes_of(labels(outcome.matrices)) if several else [""]
    for prefix, matrix in zip(prefixes, outcome.matrices, strict=True):
        for name, reading in matrix.readings.items():
            if reading.value is not None:
                found[prefix + name] = round_digits(reading.value)
    for state in STATES:
        found[f"gate.{state}"] = len(outcome.of_state(state))
    return json.dumps(found, indent=1, sort_keys=True, allow_nan=False) + "\n"


def prefixes_of(names: list[str]) -> list[str]:
    """Names in the characters that MLflow allows, distinguished by a number where they collide."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_. -]", "_", name)
        number, unique = 1, plain
        while f"{unique}/" in found:
            number += 1
            unique = f"{plain}_{number}"
        found.append(f"{unique}/")
    return found
