"""Which rows are near: found once, and looked up wherever a token is shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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

    def union(self, other: NearestRows) -> NearestRows:
        """These rows and those of another, which has none of them."""
        rows = np.concatenate([self.rows, other.rows])
        order = np.argsort(rows)
        return NearestRows(
            rows[order],
            np.concatenate([self.neighbors, other.neighbors])[order],
            np.concatenate([self.cosines, other.cosines])[order],
        )
