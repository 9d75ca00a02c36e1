"""Find damaged rows that are finite and not zero: those far shorter than all others.

A norm is small only in comparison with all others, so these rows are known after the first pass,
which has already summed them. In the rare case that there are any, the pass is repeated without
them: subtracting them from the sums would keep their rounding errors.
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.numerics.norm_gap import find_norm_limit
from embgeo.stats import Norms


def find_small_rows(norms: Norms, limit: float | None) -> tuple[IntArray, FloatArray]:
    """Find the rows with a norm below a limit, in ascending order, and their norms.

    Parameters
    ----------
    norms : Norms
        Norms of all rows that are finite and not zero.
    limit : float or None
        None means that the largest gap between norms decides.
    """
    values = np.asarray(norms.values())
    small = values < find_norm_limit(values, limit)
    return norms.index()[small], values[small]
