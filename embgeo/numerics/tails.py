"""Tails of norms and coordinates: are there second moments of influences, and what do the longest
rows of other draws add to them.

The influence of a row on an eigenvalue is quadratic in its coordinates, so that its variance needs
fourth powers with a mean: a tail of index above 4. Of a flat spectrum the linear part vanishes, and
eighth powers need one. No method knows of a tail that no row shows: an interval for a mean that
holds for every population with a finite mean is infinite (Bahadur & Savage 1956).
"""

from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray

#: Coordinates in the tail: one for this many rows, and their least number.
ROWS_PER_COORDINATE, LEAST_COORDINATES = 4, 60
#: Share of the norms in the tail: for its index, and for its extrapolation.
OF_NORMS, LONGEST = 8, 10
#: The tail goes on to the longest row of this many matrices.
MATRICES = 20
#: Squared norms that agree so far are equal but for rounding, which has no tail.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class TailIndex:
    """Index of a tail: the share of values above x falls as x to its negative (Hill 1975)."""

    index: float
    error: float


def measure_coordinate_tail(coordinates: FloatArray) -> TailIndex:
    """Measure the tail of all coordinates of some rows, with its error over rows.

    From the largest ones, a quarter as many as there are rows, or 60 if that is more: in many
    dimensions a larger share would hide the tail. Coordinates of a row are long together: the error
    sums them by rows. Infinite if the largest are equal.

    Parameters
    ----------
    coordinates : float64 array, shape (r, k)
        Signs do not matter.

    Examples
    --------
    >>> quantiles = (np.arange(20_000) + 0.5) / 20_000
    >>> found = measure_coordinate_tail(quantiles.reshape(1000, 20) ** (-1 / 3))
    >>> round(found.index, 1)  # Pareto's law of index 3
    3.0
    """
    sizes = np.abs(coordinates)
    k = max(len(sizes) // ROWS_PER_COORDINATE, LEAST_COORDINATES)
    if k >= sizes.size:
        return TailIndex(np.inf, 0.0)
    at = sizes.size - k - 1
    limit = np.partition(sizes, at, axis=None)[at]
    if not limit > 0.0:
        return TailIndex(np.inf, 0.0)
    row, _ = np.nonzero(sizes > limit)
    logs = np.log(sizes[sizes > limit] / limit)
    slope = float(logs.sum()) / k
    if not slope > 0.0:
        return TailIndex(np.inf, 0.0)
    parts = np.bincount(row, logs - slope)
    return TailIndex(1.0 / slope, float(np.sqrt(parts @ parts)) / k / slope**2)


def measure_norm_index(norms: FloatArray) -> float:
    """Measure the index of the tail of norms, from the longest eighth; infinite if they are equal.

    Examples
    --------
    >>> quantiles = np.arange(1, 2001) / 2001
    >>> round(measure_norm_index(quantiles ** (-1 / 3)), 1)
    3.0
    """
    k = max(1, len(norms) // OF_NORMS)
    if k >= len(norms):
        return np.inf
    at = len(norms) - k - 1
    tail = np.partition(norms, at)[at:]
    if not tail[0] > 0.0:  # next to the longest row the others vanish
        return 0.0
    slope = float(np.log(tail[1:] / tail[0]).mean())
    return 1.0 / slope if slope > 0.0 else np.inf


@dataclass(frozen=True, slots=True)
class NormTail:
    """The tail of squared norms as a generalized Pareto law.

    Attributes
    ----------
    shape : float
        From 1/2 up fourth powers have no mean. Of equal norms −∞.
    fourth : float
        Mean fourth power of norms, with what longer rows of other draws would add.
    """

    shape: float
    fourth: float


def measure_norm_tail(norms: FloatArray) -> NormTail:
    """Continue the tail of squared norms beyond the longest row.

    Squares of the longest tenth follow a generalized Pareto law (Pickands 1975), as for the mean of
    Johansson (2003): shape and scale by probability-weighted moments (Hosking & Wallis 1987). It is
    continued, with the shape larger by its error, to the longest row of twenty such matrices.

    Parameters
    ----------
    norms : float64 array, shape (m,)
        Not all zero.

    Examples
    --------
    >>> measure_norm_tail(np.full(100, 2.0)).fourth
    16.0
    >>> quantiles = np.arange(1, 20_001) / 20_001
    >>> round(measure_norm_tail(quantiles ** (-1 / 10)).shape, 1)  # squares of index 5
    0.2
    """
    squares = np.square(norms)
    seen = float(squares @ squares)
    k = len(squares) // LONGEST
    at = len(squares) - k - 1
    tail = np.sort(np.partition(squares, at)[at:])
    limit, above = float(tail[0]), tail[1:] - tail[0]
    if k < 2 or not above[-1] > ROUNDING * limit:
        return NormTail(-np.inf, seen / len(squares))
    mean = float(above.mean())
    weighted = float(above @ (1.0 - (np.arange(1, k + 1) - 0.35) / k)) / k
    found = 2.0 - mean / (mean - 2.0 * weighted)
    scale = 2.0 * mean * weighted / (mean - 2.0 * weighted)
    # The share of longer rows is e^-t of the tail.
    t = np.linspace(0.0, np.log(MATRICES * k), 401)
    shape = found + k**-0.5
    excess = scale * (np.expm1(shape * t) / shape if abs(shape) > 1e-9 else t)
    fourth = np.square(limit + excess)
    continued = k * float(np.trapezoid(fourth * np.exp(-t), t) + fourth[-1] * np.exp(-t[-1]))
    more = max(0.0, continued - float(tail[1:] @ tail[1:]))
    return NormTail(found, (seen + more) / len(squares))
