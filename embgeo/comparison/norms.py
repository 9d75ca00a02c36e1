"""What part norms played in a change of I1: small norms alone raise it, whatever the shape.

The page and the terminal say it in words of their own; what they say is decided here.
"""

from __future__ import annotations

import numpy as np

from embgeo.core.quantities import tokens
from embgeo.result.analysis import Analysis

#: I1 lies between 0 and 1: what moves less than this is not called a rise or a fall.
NOTICED = 0.01
#: A change at a mean norm of 1 of less than this share of the raw one does not carry it.
CARRIED = 0.25
#: Norms that changed by less than this share did not grow or shrink.
SAME_NORM = 0.02


def is_noticed(difference: float) -> bool:
    """Whether I1 rose or fell, rather than stayed."""
    return abs(difference) > NOTICED


def is_carried(raw: float, unit: float) -> bool:
    """Whether the change of I1 at unit scale shows that a (noticed) raw one is one of shape."""
    return is_noticed(unit) and unit / raw >= CARRIED


def explain(before: float, after: float, rose: bool) -> bool:
    """Whether median norms moved in the way that alone makes I1 rise (or fall)."""
    return after < before * (1 - SAME_NORM) if rose else after > before * (1 + SAME_NORM)


def median_norms(old: Analysis, new: Analysis) -> tuple[float, float] | None:
    """The median row norms of both, or None where one does not know them."""
    columns = [next((c for c in a.columns if c.name == tokens.NORM.name), None) for a in (old, new)]
    before, after = (None if c is None or not len(c.values) else c.values for c in columns)
    if before is None or after is None:
        return None
    return float(np.median(before)), float(np.median(after))
