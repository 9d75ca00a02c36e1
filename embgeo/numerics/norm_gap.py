"""The widest gap among the smallest norms, which separates damaged rows from the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from embgeo.core.arrays import FloatArray

#: At most one row of this many is below the gap.
ONE_OF = 20
#: At most one row of this many is short.
HALF = 2
#: Least width of a gap between damaged and other rows, in decades.
WIDE = 1.0


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


def find_norm_gap(norms: FloatArray, one_of: int = ONE_OF) -> NormGap | None:
    """The largest gap of log₁₀‖w‖ with at most one row of `one_of` below it, 5 % by default.

    Parameters
    ----------
    norms : float64 array, shape (M,)
        Positive and finite, in any order.
    one_of : int
        At least 2.

    Returns
    -------
    NormGap or None
        None for fewer than `one_of` rows.
    """
    most = len(norms) // one_of
    if not most:
        return None
    smallest = np.sort(np.partition(norms, most)[: most + 1])
    gaps = np.diff(np.log10(smallest))
    at = int(np.argmax(gaps))
    return NormGap(float(smallest[at]), float(smallest[at + 1]), float(gaps[at]))


def find_norm_limit(norms: FloatArray, given: float | None = None) -> float:
    """The norm below which rows are damaged; 0 if none are.

    Parameters
    ----------
    norms : float64 array, shape (M,)
        Zero and non-finite norms are ignored.
    given : float, optional
        The limit itself. By default the upper end of the gap, if that is at least one decade wide.
    """
    if given is not None:
        return given
    gap = find_norm_gap(norms[np.isfinite(norms) & (norms > 0)])
    return gap.above if gap is not None and gap.decades >= WIDE else 0.0


def find_short_rows(norms: FloatArray) -> tuple[int, NormGap] | None:
    """Short rows, too many to be damaged: at most half of all rows, a decade below the others.

    Parameters
    ----------
    norms : float64 array, shape (M,)
        Norms of rows that are not damaged.

    Returns
    -------
    (int, NormGap) or None
        The number of rows below the gap; None without such a gap, and for fewer than 20 rows.
    """
    gap = find_norm_gap(norms, HALF) if len(norms) >= ONE_OF else None
    if gap is None or gap.decades < WIDE:
        return None
    return int((norms <= gap.below).sum()), gap
