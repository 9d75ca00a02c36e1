"""All scalars as one flat JSON object, as DVC and MLflow read it."""

import json
import re
from collections.abc import Sequence
from itertools import chain, count

from embgeo.rules.check import Measured, Outcome
from embgeo.rules.decide import STATES
from embgeo.rules.rule_value import round_digits

NAME = "metrics.json"


def render(outcome: Outcome) -> str:
    """Get ``{"cosine.mean": 0.47, …}``, sorted; with several matrices ``"matrix/cosine.mean"``."""
    several = len(outcome.matrices) > 1
    found: dict[str, float | int] = {}
    prefixes = prefixes_of(labels(outcome.matrices)) if several else [""]
    for prefix, matrix in zip(prefixes, outcome.matrices, strict=True):
        for name, reading in matrix.readings.items():
            if reading.value is not None:
                found[prefix + name] = round_digits(reading.value)
    found |= {f"gate.{state}": len(outcome.of_state(state)) for state in STATES}
    return json.dumps(found, indent=1, sort_keys=True, allow_nan=False) + "\n"


def prefixes_of(names: list[str]) -> list[str]:
    """Write names in the characters that MLflow allows, numbered where they collide."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_. -]", "_", name)
        numbered = (f"{plain}_{number}/" for number in count(2))
        found.append(next(n for n in chain([f"{plain}/"], numbered) if n not in found))
    return found


def labels(matrices: Sequence[Measured]) -> list[str]:
    """Return a distinct name for each matrix: its tensor, with the file and a number if need be."""
    tensors = [matrix.tensor or "W" for matrix in matrices]
    if len(set(tensors)) == len(tensors):
        return tensors
    both = [f"{m.file} {tensor}" for m, tensor in zip(matrices, tensors, strict=True)]
    if len(set(both)) == len(both):
        return both
    return [f"{label} {number}" for number, label in enumerate(both, 1)]
