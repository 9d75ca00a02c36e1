"""Gaps between norms, which separate damaged rows, and rows with the norm of an initialization.

word2vec draws every entry uniformly from ±1/(2d) (Mikolov et al. 2013, ``InitNet`` of word2vec.c),
fastText from ±1/d (Bojanowski et al. 2017, ``uniform`` of its input matrix), as newer gensim does.
"""

from typing import NamedTuple

import numpy as np

from embgeo.core.arrays import FloatArray, Mask

#: At most one row of this many is below the gap.
ONE_OF = 20
#: Least width of a gap between damaged and other rows, in decades.
WIDE = 1.0
#: Least width of a gap below which rows are damaged whatever their share, in decades, and the least
#: share and number of rows above it: fewer are long rows, not the only ones alive.
WIDEST, ALIVE, LEAST_ALIVE = 2.0, 0.01, 5


class NormGap(NamedTuple):
    """A gap in the order of norms.

    Attributes
    ----------
    below, above : float
        Norms on both sides.
    decades : float
        log₁₀(above / below).
    """

    below: float
    above: float
    decades: float


def find_norm_gap(norms: FloatArray) -> NormGap | None:
    """Find the largest gap of log₁₀‖w‖ with at most 5% of the rows below it.

    Parameters
    ----------
    norms : float64 array, shape (M,)
        Positive and finite, in any order.

    Returns
    -------
    NormGap or None
        None for fewer than 20 rows.
    """
    most = len(norms) // ONE_OF
    if not most:
        return None
    smallest = np.sort(np.partition(norms, most)[: most + 1])
    gaps = np.diff(np.log10(smallest))
    at = int(np.argmax(gaps))
    return NormGap(float(smallest[at]), float(smallest[at + 1]), float(gaps[at]))


def find_norm_limit(norms: FloatArray, d: int, given: float | None = None) -> float:
    """Find the norm below which rows are damaged; 0 if none are.

    Parameters
    ----------
    norms : float64 array, shape (M,)
        Zero and non-finite norms are ignored.
    d : int
        Of norms around 0 in d dimensions, the k-th is g decades below the next one with a chance of
        10^(−g·d·k): where a gap of one decade is likelier than one in 1,000, it has to be wider.
    given : float, optional
        The limit itself. By default the upper end of the highest gap of two decades or more, if
        there is one, else of the gap above at most 5% of the rows, if that is one decade wide.
    """
    if given is not None:
        return given
    usable = norms[np.isfinite(norms) & (norms > 0)]
    gap = find_dead_gap(usable) or find_norm_gap(usable)
    if gap is None:
        return 0.0
    by_chance = 3.0 / (d * int((usable <= gap.below).sum()))
    return gap.above if gap.decades >= max(WIDE, by_chance) else 0.0


def find_dead_gap(norms: FloatArray) -> NormGap | None:
    """Find the highest gap of two decades or more, whatever the share of the rows below it.

    It is looked for from the top, so that more dead rows are never judged more mildly. At least 1%
    of the rows, and five of them, lie above it.
    """
    if len(norms) < ONE_OF or norms.max() < 10.0**WIDEST * norms.min():
        return None
    ordered = np.sort(norms)
    alive = max(LEAST_ALIVE, int(np.ceil(ALIVE * len(ordered))))
    gaps = np.diff(np.log10(ordered[: len(ordered) - alive + 1]))
    wide = np.flatnonzero(gaps >= WIDEST)
    if not len(wide):
        return None
    at = int(wide[-1])
    return NormGap(float(ordered[at]), float(ordered[at + 1]), float(gaps[at]))


#: Chance that the longest of lognormal rows counts as long.
LONG_CHANCE = 1e-3


class LogNorms(NamedTuple):
    """Logarithms of norms as normal ones.

    Attributes
    ----------
    spread : float
        Standard deviation by the quartiles, at least that of Gaussian rows.
    is_long, is_short : bool array, shape (M,)
        Rows that are longer than the longest of M lognormal norms in all but one of 1,000 cases, or
        shorter than the shortest.
    """

    spread: float
    is_long: Mask
    is_short: Mask


def measure_log_norms(norms: FloatArray, d: int) -> LogNorms:
    """Measure the spread of log norms, and which rows are too long for lognormal norms.

    Parameters
    ----------
    norms : float64 array, shape (M,)
        Positive and finite.
    d : int
    """
    from scipy.special import ndtri

    logs = np.log(norms)
    low, median, high = np.quantile(logs, (0.25, 0.5, 0.75))
    spread = max(float(high - low) / (2.0 * float(ndtri(0.75))), (2.0 * d) ** -0.5)
    most = -spread * float(ndtri(LONG_CHANCE / len(norms)))
    return LogNorms(spread, logs > median + most, logs < median - most)


def root_mean_square(norms: FloatArray) -> float:
    """Return the root mean square, without squares that overflow."""
    largest = float(norms.max())
    return largest * float(np.sqrt(np.mean(np.square(norms / largest))))


#: Half widths of the uniform distributions, times d.
HALF_WIDTHS = (0.5, 1.0)
#: Largest distance of a norm from its expectation, in standard deviations.
DEVIATIONS = 6.0
#: Largest distance of the mean norm from its expectation, in standard errors.
ERRORS = 3.0
#: Largest relative width of that interval at which the match is certain.
NARROW = 0.1
#: Smallest probability of a spread of the norms as small or as large.
SPREAD_CHANCE = 1e-3


class InitialRows(NamedTuple):
    """Rows with the norm of an initialization.

    Attributes
    ----------
    rows : bool array
    is_certain : bool
        False for so few rows of few dimensions that any norm of this order would match.
    """

    rows: Mask
    is_certain: bool


def find_initial_rows(norms: FloatArray, d: int) -> InitialRows:
    """Find the rows whose norms are those of d uniform entries, by their mean and spread.

    The squared norm of entries from ±a has mean d·a²/3 and variance d·a⁴·4/45, so that the norm is
    about a·√(d/3) with a relative standard deviation of √(1/(5d)), or √(1/(5dk)) for the mean of k
    norms.

    Parameters
    ----------
    norms : float64 array, shape (k,)
        Norms of rows far shorter than all others.
    d : int
    """
    from scipy.special import chdtr

    found = InitialRows(np.zeros(len(norms), dtype=bool), is_certain=False)
    deviation = float(np.sqrt(0.2 / d))
    for half_width in HALF_WIDTHS:
        relative = norms / (half_width / d * np.sqrt(d / 3.0)) - 1.0
        fits = np.abs(relative) <= DEVIATIONS * deviation
        count = int(fits.sum())
        error = ERRORS * deviation / np.sqrt(max(count, 1))
        if not count or abs(float(relative[fits].mean())) > error:
            continue
        if count > 1:
            chance = chdtr(count - 1, relative[fits].var() * count / deviation**2)
            if min(chance, 1.0 - chance) < SPREAD_CHANCE:
                continue
        if count > found.rows.sum():
            found = InitialRows(fits, is_certain=bool(error <= NARROW))
    return found
