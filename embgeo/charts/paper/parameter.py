"""The value of a swept parameter, read from names such as ``runs/beta=0.25.embgeo``."""

from __future__ import annotations

import re

_NUMBER = r"[=_:-]?(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"


def parameter_value(name: str, parameter: str) -> float | None:
    """The number behind the last mention of `parameter`; None where there is none.

    >>> parameter_value("runs/beta=0.25.embgeo", "beta"), parameter_value("tau2", "tau")
    (0.25, 2.0)
    """
    # "beta" is no mention of "eta".
    pattern = rf"(?<![^\W\d_]){re.escape(parameter)}{_NUMBER}"
    found = re.findall(pattern, name, re.IGNORECASE)
    return float(found[-1]) if found else None
