"""Whether a contender computed what it was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.harness.call import Wrong


def errors(
    who: str, found: Mapping[str, Any], truth: Mapping[str, Any], tolerances: Mapping[str, float]
) -> dict[str, float]:
    """How far off each answer is.

    Raises
    ------
    Wrong
        If one is farther off than it may be, or is missing.
    """
    seen = {}
    for name, most in tolerances.items():
        if name not in found:
            raise Wrong(f"{who} gave no {name}")
        seen[name] = error(found[name], truth[name])
        if not seen[name] <= most:
            raise Wrong(f"{who}: {name} is off by {seen[name]:.2g}, at most {most:g} is right")
    return seen


def error(found: Any, wanted: Any) -> float:
    """Largest difference, relative to the largest entry that was wanted."""
    one, other = np.asarray(found, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
    if one.shape != other.shape:
        return float("inf")
    return float(np.abs(one - other).max() / np.abs(other).max())
