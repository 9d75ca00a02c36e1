"""Nearest rows, for all places that show a token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import IntArray, SingleArray


@dataclass(frozen=True, slots=True, eq=False)
class NearestRows:
    """The k rows of largest cosine with each of q rows, the nearest first.

    Attributes
    ----------
    rows : int array, shape (q,)
        Positions of the q rows among the kept rows, ascending.
    neighbors : int array, shape (q, k)
        Positions of the nearest rows.
    cosines : float32 array, shape (q, k)
    """

    rows: IntArray
    neighbors: IntArray
    cosines: SingleArray

    def union(self, other: NearestRows) -> NearestRows:
        """The rows of both, which have none in common."""
        rows = np.concatenate([self.rows, other.rows])
        order = np.argsort(rows)
        return NearestRows(
            rows[order],
            np.concatenate([self.neighbors, other.neighbors])[order],
            np.concatenate([self.cosines, other.cosines])[order],
        )
