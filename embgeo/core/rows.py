"""The rows that results list one by one, and their nearest rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray, SingleArray

#: Up to this many rows, a result lists every row.
EVERY = 2**22
#: Of more rows, it lists about this many.
LISTED = 2**20
#: Of very many rows, neighbors are chosen among `CANDIDATES` rows, those with the largest products
#: of the leading coordinates; `MEASURING` queries measure how many of the true ones are found.
CANDIDATES, MEASURING = 200, 500
#: Row numbers hashed at a time.
STEP = 2**18
#: Multipliers of the finalizer of SplitMix64 (Steele, Lea & Flood 2014), and the seed.
SEED, FIRST, SECOND = (
    np.uint64(number)
    for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)  # fmt: skip


def choose_bound(kept: int) -> int | None:
    """Choose the bound of the hashes of listed rows; None if all rows are listed.

    >>> choose_bound(1000) is None, choose_bound(2**30) == 2**54
    (True, True)
    """
    return None if kept <= EVERY else (LISTED << 64) // kept


def find_listed(rows: IntArray, bound: int) -> IntArray:
    """Find the positions of the listed rows among ascending row numbers."""
    steps = range(0, len(rows), STEP)
    found = [at + np.flatnonzero(is_listed(rows[at : at + STEP], bound)) for at in steps]
    return np.concatenate([np.zeros(0, np.int64), *found])


def is_listed(rows: IntArray, bound: int) -> npt.NDArray[np.bool_]:
    """Tell whether the hashes of row numbers are below a bound.

    The hash depends on the number only: every block, part and matrix of one size lists the same
    rows, and the rows listed in a larger matrix are among those listed in a smaller one.

    >>> int(is_listed(np.arange(160_000), 2**60).sum())  # one in 16
    9899
    """
    x = rows.astype(np.uint64) * SEED
    x ^= x >> np.uint64(30)
    x *= FIRST
    x ^= x >> np.uint64(27)
    x *= SECOND
    x ^= x >> np.uint64(31)
    return np.asarray(x < np.uint64(bound))


@dataclass(frozen=True, slots=True, eq=False)
class NearestRows:
    """The k rows of largest cosine with each of q rows, the nearest first."""

    #: Positions of the q rows among the kept rows, ascending; shape (q,).
    rows: IntArray
    #: Positions of the nearest rows; shape (q, k).
    neighbors: IntArray
    #: Shape (q, k).
    cosines: SingleArray
    #: Share of the true nearest rows that are among these, of 500 sampled rows.
    recall: float = 1.0

    def union(self, other: NearestRows) -> NearestRows:
        """Return the rows of both, which have none in common."""
        rows = np.concatenate([self.rows, other.rows])
        order = np.argsort(rows)
        return NearestRows(
            rows[order],
            np.concatenate([self.neighbors, other.neighbors])[order],
            np.concatenate([self.cosines, other.cosines])[order],
        )
