"""The norms of two matrices, which decide what a change of I1 means."""

from __future__ import annotations

import numpy as np

from embgeo.result import Analysis


def median_norms(old: Analysis, new: Analysis) -> tuple[float, float] | None:
    """The median row norms of both, or None where one does not know them."""
    columns = [next((c for c in a.columns if c.name == "tokens.norm"), None) for a in (old, new)]
    before, after = (None if c is None or not len(c.values) else c.values for c in columns)
    if before is None or after is None:
        return None
    return float(np.median(before)), float(np.median(after))
