"""Which rows are near: found once, and looked up wherever a token is shown."""

from __future__ import annotations

from dataclasses import dataclass

from embgeo.core.arrays import IntArray, SingleArray


@dataclass(frozen=True, slots=True, eq=False)
class NearestRows:
    """The k rows of largest cosine with each of some rows, the nearest first.

    Attributes
    ----------
    rows : int array, shape (q,)
        Places of these rows among the kept ones, ascending.
    neighbors : int array, shape (q, k)
        Places of the nearest.
    cosines : float32 array, shape (q, k)
    """

    rows: IntArray
    neighbors: IntArray
    cosines: SingleArray
