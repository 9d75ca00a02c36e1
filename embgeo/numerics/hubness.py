"""How often rows are among the nearest neighbors of others, and how unevenly.

N_k(i) counts the rows that have row i among their k nearest by cosine; its mean is k. Where
several rows are equally near and not all of them fit, they share the places left, so that rounding
does not choose between them.
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray

#: Cosines nearer than this are equal.
TIE = 1e-12
#: Cosines that are held at a time.
HELD = 2**22


def count_places(cosines: FloatArray, k: int) -> FloatArray:
    """Places among the k largest of each row of cosines that each column takes, summed.

    Examples
    --------
    >>> count_places(np.array([[0.9, 0.5, 0.5, 0.1]]), k=2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    m = cosines.shape[1]
    least = np.partition(cosines, m - k, axis=1)[:, m - k, None]
    nearer = cosines > least + TIE
    level = cosines >= least - TIE
    level &= ~nearer
    left = k - nearer.sum(axis=1)
    return np.asarray(nearer.sum(axis=0) + (left / level.sum(axis=1)) @ level)


def count_occurrences(unit: FloatArray, k: int) -> FloatArray:
    """N_k of each row among unit rows, shape (m,); a row is not its own neighbor."""
    m = len(unit)
    counts = np.zeros(m)
    step = max(1, HELD // m)
    for start in range(0, m, step):
        cosines = unit[start : start + step] @ unit.T
        own = np.arange(len(cosines))
        cosines[own, start + own] = -np.inf
        counts += count_places(cosines, k)
    return counts


def skewness(values: FloatArray) -> float | None:
    """Third standardized moment; None where all values are equal but for rounding."""
    centered = values - values.mean()
    spread = float(np.sqrt(np.mean(centered**2)))
    if spread <= 1e-9 * abs(float(values.mean())):
        return None
    return float(np.mean(centered**3)) / spread**3
