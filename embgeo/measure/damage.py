"""Which rows are damaged although they are finite and not zero: those far shorter than all others.

Every norm has to be known before one can be called small, and by then the first pass has summed
those rows too. Where there are any, which is rare, the pass is repeated without them: sums from
which they were subtracted would keep their rounding.
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.numerics.norm_gap import find_norm_limit
from embgeo.stats import Norms


def find_small_rows(norms: Norms, limit: float | None) -> tuple[IntArray, FloatArray]:
    """Rows of a norm below a limit, ascending, and their norms.

    Parameters
    ----------
    norms : Norms
        Of all rows that are finite and not zero.
    limit : float or None
        None: the gap between norms decides.
    """
    values = np.asarray(norms.values())
    small = values < find_norm_limit(values, limit)
    return norms.index()[small], values[small]
