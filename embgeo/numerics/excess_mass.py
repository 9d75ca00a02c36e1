"""Do numbers have one mode or two, and where is the valley between them?

The excess mass of a density over a level λ is the most that the mass of k disjoint intervals
exceeds λ times their length. What a second interval adds, at the level where it adds most, is the
share of the numbers that would have to move for one mode to remain; it is twice the dip of Hartigan
and Hartigan (1985, Annals of Statistics 13, §2; Müller & Sawitzki 1991, JASA 86, §3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from embgeo.core.arrays import FloatArray

#: Cells of equal mass that the numbers are reduced to.
CELLS = 1024
#: Levels that are tried, in equal ratios.
LEVELS = 128
#: Share of the cells that the highest level is above.
FULLEST = 0.95
#: Times 1/√M: what one mode stays below. Uniform numbers come nearest to two modes among those of
#: one mode; 98 % of samples of them stay below, of M = 100 as of 1,000, and normal ones below 0.7.
CRITICAL = 1.0
#: Fewer numbers show no second mode unless it holds more than a tenth of them.
LEAST = 100


class Modes(NamedTuple):
    """What a second mode adds, and the number that separates the two.

    Attributes
    ----------
    excess : float
        In [0, 1/2].
    valley : float
        Middle of the widest gap in the emptiest cell between both intervals.
    """

    excess: float
    valley: float


def find_modes(numbers: FloatArray) -> Modes:
    """The excess mass of two modes over one.

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
    # Cells of equal mass: where they end, as fractional places in the order.
    places = np.linspace(0.0, len(ordered) - 1.0, min(CELLS, len(ordered) - 1) + 1)
    edges = np.interp(places, np.arange(len(ordered)), ordered)
    lengths = np.diff(edges)
    mass = 1.0 / len(lengths)
    spread = lengths[lengths > 0]
    if not len(spread):
        return Modes(0.0, float(edges[0]))
    levels = find_levels(mass / spread)
    # Over every level, the sum up to each edge: an interval is a difference of two of them.
    sums = np.zeros((LEVELS, len(edges)))
    np.cumsum(mass - levels[:, None] * lengths, axis=1, out=sums[:, 1:])
    before = np.maximum.accumulate(sums - np.minimum.accumulate(sums, axis=1), axis=1)
    back = sums[:, ::-1]
    after = np.maximum.accumulate(np.maximum.accumulate(back, axis=1) - back, axis=1)[:, ::-1]
    both = before + after
    gains = both.max(axis=1) - before[:, -1]
    best = int(gains.argmax())
    # Any cut between the two intervals gives the same sum: the first and the last one end them.
    cuts = np.flatnonzero(both[best] >= both[best].max() - 1e-12)
    first, last = int(cuts[0]), max(int(cuts[-1]), int(cuts[0]) + 1)
    emptiest = first + int(np.argmax(lengths[first:last]))
    between = ordered[int(places[emptiest]) : int(np.ceil(places[emptiest + 1])) + 1]
    widest = int(np.argmax(np.diff(between)))
    return Modes(float(gains[best]), float(between[widest] + between[widest + 1]) / 2.0)


def find_levels(densities: FloatArray) -> FloatArray:
    """Levels between the emptiest and nearly the fullest cell; the fullest may be rounding."""
    return np.geomspace(densities.min(), np.quantile(densities, FULLEST), LEVELS)


def find_critical_excess(count: int) -> float:
    """The excess mass that as many numbers of one mode stay below."""
    return float(CRITICAL / np.sqrt(count))
