"""Second modes of numbers, and clumps: rows apart from all others by angles and norms.

The excess mass of a density over a level λ is the maximum, over k disjoint intervals, of their mass
minus λ times their length. The gain of a second interval, at the level of largest gain, is the
share of the numbers that would have to move for one mode to remain. It is twice the dip of Hartigan
and Hartigan (1985, Annals of Statistics 13, §2; Müller & Sawitzki 1991, JASA 86, §3).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, Mask

#: The numbers are reduced to this many cells of equal mass.
CELLS = 1024
#: Number of levels, in equal ratios.
LEVELS = 128
#: The highest level is the density of this quantile of the cells.
FULLEST = 0.95
#: Upper bound of the excess mass of one mode, times √M. Of all distributions with one mode, uniform
#: numbers are nearest to two: 98% of their samples stay below, for M = 100 and 1,000 alike. Normal
#: samples stay below 0.7.
CRITICAL = 1.0
#: In fewer numbers a second mode would have to hold more than a tenth of them.
LEAST = 100


class Modes(NamedTuple):
    """The gain of a second mode, and the number that separates the modes."""

    #: In [0, 1/2].
    excess: float
    #: Middle of the widest gap in the emptiest cell between the intervals.
    valley: float


def find_modes(numbers: FloatArray) -> Modes:
    """Find the excess mass of two modes over one.

    Parameters
    ----------
    numbers : float64 array, shape (M,)
        At least two, in any order.

    Returns
    -------
    Modes
        With an excess of 0 where all numbers are equal.
    """
    ordered = np.sort(numbers)
    # Ends of the cells as fractional positions in the order.
    places = np.linspace(0.0, len(ordered) - 1.0, min(CELLS, len(ordered) - 1) + 1)
    edges = np.interp(places, np.arange(len(ordered)), ordered)
    lengths = np.diff(edges)
    mass = 1.0 / len(lengths)
    spread = lengths[lengths > 0]
    if not len(spread):
        return Modes(0.0, float(edges[0]))
    levels = find_levels(mass / spread)
    # For each level the sum up to each edge: an interval is a difference of two sums.
    sums = np.zeros((LEVELS, len(edges)))
    np.cumsum(mass - levels[:, None] * lengths, axis=1, out=sums[:, 1:])
    before = np.maximum.accumulate(sums - np.minimum.accumulate(sums, axis=1), axis=1)
    back = sums[:, ::-1]
    after = np.maximum.accumulate(np.maximum.accumulate(back, axis=1) - back, axis=1)[:, ::-1]
    both = before + after
    gains = both.max(axis=1) - before[:, -1]
    best = int(gains.argmax())
    # Any cut between the intervals gives the same sum: the first and the last cut end them.
    cuts = np.flatnonzero(both[best] >= both[best].max() - 1e-12)
    first, last = int(cuts[0]), max(int(cuts[-1]), int(cuts[0]) + 1)
    emptiest = first + int(np.argmax(lengths[first:last]))
    between = ordered[int(places[emptiest]) : int(np.ceil(places[emptiest + 1])) + 1]
    widest = int(np.argmax(np.diff(between)))
    return Modes(float(gains[best]), float(between[widest] + between[widest + 1]) / 2.0)


def find_levels(densities: FloatArray) -> FloatArray:
    """Return levels between the emptiest and nearly the fullest cell, which rounding may fill."""
    return np.geomspace(densities.min(), np.quantile(densities, FULLEST), LEVELS)


def find_critical_excess(count: int) -> float:
    """Find an upper bound of the excess mass of this many numbers with one mode."""
    return float(CRITICAL / np.sqrt(count))


#: Least Jaccard index of the groups by angle and by norm.
AGREEMENT = 0.5


def find_gathered(angles: FloatArray, norms: FloatArray, hashes: npt.NDArray[np.uint64]) -> Mask:
    """Find rows around a direction with norms of their own: on one side of a valley of either.

    Both have two modes, and the groups agree and are small. Equal rows count once in all tests. No
    rows are found among fewer than `LEAST` distinct ones.

    `angles`, `norms`, `hashes`: shape (M,).
    """
    different = np.unique(hashes, return_index=True)[1]
    if len(different) < LEAST:
        return np.zeros(len(angles), dtype=bool)
    lengths = np.log(norms)
    of_angles, of_norms = find_modes(angles[different]), find_modes(lengths[different])
    near, short = angles <= of_angles.valley, lengths <= of_norms.valley
    side = max((short, ~short), key=lambda side: measure_agreement(near, side))
    apart = (
        min(of_angles.excess, of_norms.excess) >= find_critical_excess(len(different))
        and measure_agreement(near, side) >= AGREEMENT
        and all(2 * int(one[different].sum()) < len(different) for one in (near, side))
    )
    return near & side & apart


def find_near_mode(angles: FloatArray, hashes: npt.NDArray[np.uint64]) -> Mask:
    """Find the rows in the nearer of two modes of angles, if it is the smaller one."""
    different = np.unique(hashes, return_index=True)[1]
    if len(different) < LEAST:
        return np.zeros(len(angles), dtype=bool)
    modes = find_modes(angles[different])
    near = angles <= modes.valley
    apart = modes.excess >= find_critical_excess(len(different))
    return near & (apart and 2 * int(near[different].sum()) < len(different))


def measure_agreement(first: Mask, second: Mask) -> float:
    """Measure the Jaccard index of two groups."""
    return float((first & second).sum() / max(1, int((first | second).sum())))
