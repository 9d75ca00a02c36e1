"""Clumps: rows that lie together and apart from all others, by second modes of angles and norms.

Rows that training hardly touches gather around the mean direction with norms of their own (Gao et
al. 2019, §4), and form a second mode of both. Rows that gather elsewhere, with any norms, form a
second mode of the angles to a dense direction: many rows are near it, and few opposite to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, Mask
from embgeo.numerics.excess_mass import LEAST, Modes, find_critical_excess, find_modes

#: Least Jaccard index of the groups by angle and by norm.
AGREEMENT = 0.5
#: Least cosines of near rows, after the mean row is subtracted; the next is tried for looser or
#: larger clumps if the one before finds none.
NEAR = (0.7, 0.5, 0.25)
#: Least number of rows of a sample near a row, minus the rows opposite to it.
LEAST_NEAR = 5
#: The chance level of angles to a searched direction is this times √(2p/M), for a group with the
#: share p of M rows. Gaussian, elliptic, heavy-tailed and coned rows of 2 to 64 dimensions stay
#: below 1.9 (docs/verdict.md).
SEARCHED = 2.0


@dataclass(frozen=True, slots=True)
class Clump:
    """Modes of angle and log norm over distinct rows, and the rows that lie together.

    Attributes
    ----------
    angles, norms : Modes
        Modes of angles to the mean direction in radians, and of logarithms of norms.
    own : Modes or None
        Modes of angles to the dense direction.
    own_share : float
        Share of the distinct rows on its near side.
    distinct : int
        Number of distinct rows.
    rows : bool array, shape (M,)
    scattered : bool array, shape (M,)
        Rows that lie apart if most rows lie together.
    is_own : bool
        Whether the rows gather around the dense direction.
    """

    angles: Modes
    norms: Modes
    own: Modes | None
    own_share: float
    distinct: int
    rows: Mask
    scattered: Mask
    is_own: bool

    @property
    def limit(self) -> float:
        """Largest angle of the clump's rows to its direction."""
        return self.own.valley if self.is_own and self.own is not None else self.angles.valley


def find_dense_direction(unit: FloatArray) -> FloatArray | None:
    """The direction with most near rows minus opposite rows; None if these are few.

    The mean row is subtracted first, because in a cone all rows are near each other. Ellipsoids and
    lines have dense directions without clumps, but as many rows on the opposite side.

    Parameters
    ----------
    unit : float64 array, shape (n, d)
        Distinct unit rows.
    """
    rest = unit - unit.mean(axis=0)
    lengths = np.linalg.norm(rest, axis=1)
    left = lengths > 1e-9
    if not left.any():
        return None
    rest = (rest[left] / lengths[left, None]).astype(np.float32)
    cosines = rest @ rest.T
    for level in NEAR:
        near = cosines >= level
        count, opposite = near.sum(axis=1), (cosines <= -level).sum(axis=1)
        surplus = np.where(2 * count < len(rest), count - opposite, 0)
        best = int(surplus.argmax())
        if surplus[best] >= max(LEAST_NEAR, count[best] / 2):
            direction = unit[left][near[best]].sum(axis=0)
            return np.asarray(direction / np.linalg.norm(direction))
    return None


def find_clump(
    angles: FloatArray,
    norms: FloatArray,
    hashes: npt.NDArray[np.uint64],
    own_angles: FloatArray | None = None,
) -> Clump | None:
    """Rows around the mean direction with norms of their own, or else around a dense direction.

    The former lie on the near side of the valley of angles, and on one side of the valley of norms.
    If these are most rows, the rows on the far sides of both valleys are scattered. Equal rows
    count once in all tests. None for fewer than `LEAST` distinct rows.

    Parameters
    ----------
    angles, norms : float64 array, shape (M,)
        Angles to the mean direction, and norms.
    hashes : uint64 array, shape (M,)
    own_angles : float64 array, shape (M,), optional
        Angles to the direction of `find_dense_direction`.
    """
    lengths = np.log(norms)
    different = np.unique(hashes, return_index=True)[1]
    if len(different) < LEAST:
        return None
    of_angles, of_norms = find_modes(angles[different]), find_modes(lengths[different])
    near, short = angles <= of_angles.valley, lengths <= of_norms.valley
    side = max((short, ~short), key=lambda side: measure_agreement(near, side))
    critical = find_critical_excess(len(different))
    none = np.zeros(len(angles), dtype=bool)

    def group(first: Mask, second: Mask) -> Mask:
        """The rows in both groups, if these agree and are small."""
        apart = (
            min(of_angles.excess, of_norms.excess) >= critical
            and measure_agreement(first, second) >= AGREEMENT
            and all(2 * int(one[different].sum()) < len(different) for one in (first, second))
        )
        return first & second if apart else none

    rows, own, share, is_own = group(near, side), None, 0.0, False
    if own_angles is not None:
        own = find_modes(own_angles[different])
        within = own_angles <= own.valley
        share = float(within[different].mean())
        apart = own.excess >= find_critical_excess_of_group(len(different), share)
        is_own = apart and share < 0.5 and not rows.any()
        rows = within if is_own else rows
    scattered = none if rows.any() else group(~near, ~side)
    return Clump(of_angles, of_norms, own, share, len(different), rows, scattered, is_own)


def measure_agreement(first: Mask, second: Mask) -> float:
    """Jaccard index of two groups."""
    return float((first & second).sum() / max(1, int((first | second).sum())))


def find_critical_excess_of_group(count: int, share: float) -> float:
    """Chance level of the excess mass of a group with this share of the rows."""
    return float(SEARCHED * np.sqrt(2.0 * share / count))
