"""Which rows lie together, apart from all others? By second modes of angles and of norms.

Rows that training hardly touches gather around the mean direction, with norms of their own (Gao et
al. 2019, §4), and are a second mode of both. Rows that gather elsewhere, with whatever norms, are a
second mode of the angles to a direction that many rows are near to and few opposite to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray, Mask
from embgeo.numerics.excess_mass import LEAST, Modes, find_critical_excess, find_modes

#: Rows that both groups of short angle and of unlike norm share, of those in one of them.
AGREEMENT = 0.5
#: Cosines, after the mean row is subtracted, from which two rows are near each other: each is for
#: looser or larger clumps, where those before it find none.
NEAR = (0.7, 0.5, 0.25)
#: As many more rows of a sample have to be near a row than opposite to it.
LEAST_NEAR = 5
#: Times √(2p/M), for a group with the share p of M rows: the chance level of the angles to a
#: direction that is searched for. Gaussian, elliptic, heavy-tailed and coned rows of 2 to 64
#: dimensions stay below 1.9 (docs/verdict.md).
SEARCHED = 2.0


@dataclass(frozen=True, slots=True)
class Clump:
    """Modes of angle and log norm over different rows, and which of the rows lie together.

    Attributes
    ----------
    angles, norms : Modes
        Angles to the mean direction in radians, logarithms of norms.
    own : Modes or None
        Angles to the direction that was searched for.
    own_share : float
        Share of the different rows on the near side of that.
    distinct : int
        Rows that differ from each other.
    rows : bool array, shape (M,)
    scattered : bool array, shape (M,)
        The rows that lie apart where it is the others that lie together.
    is_own : bool
        Whether the rows gather around the direction that was searched for.
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
        """Angle around the direction of the clump within which its rows lie."""
        return self.own.valley if self.is_own and self.own is not None else self.angles.valley


def find_dense_direction(unit: FloatArray) -> FloatArray | None:
    """Where most rows are near each other, less those on the opposite side; None for few.

    The mean row is subtracted first, because in a cone all rows are near each other. Ellipsoids and
    lines, whose dense directions are not clumps, have as many rows on the opposite side.

    Parameters
    ----------
    unit : float64 array, shape (n, d)
        Different unit rows.
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
    hashes: np.ndarray[tuple[int], np.dtype[np.uint64]],
    own_angles: FloatArray | None = None,
) -> Clump | None:
    """Rows around the mean direction with norms of their own, else rows around a direction apart.

    The former are those on the near side of the valley of angles and on one side of that of norms.
    Where those are most rows, the others on the far sides of both are scattered. Equal rows count
    once in all tests. None for fewer than `LEAST` different rows.

    Parameters
    ----------
    angles, norms : float64 array, shape (M,)
        Angles to the mean direction.
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
        """The rows in both, if these are two views of one small group."""
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
    """Rows in both groups, as a share of those in either (Jaccard)."""
    return float((first & second).sum() / max(1, int((first | second).sum())))


def find_critical_excess_of_group(count: int, share: float) -> float:
    """The excess mass that a group with this share of the rows stays below by chance."""
    return float(SEARCHED * np.sqrt(2.0 * share / count))
