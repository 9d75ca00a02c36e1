"""Where a curve bends: two straight segments that meet, fitted by least squares."""

from __future__ import annotations

import numpy as np

from embgeo.comparison.track import Bend
from embgeo.core.arrays import FloatArray

#: Two segments have four parameters (with the place where they meet): fewer points fit always.
LEAST_POINTS = 5
#: Two segments are taken for better than one if so good a fit is less likely than this by chance.
LEVEL = 0.05
#: Residuals below this share of the values' spread are rounding.
ROUNDING = 1e-20


def bend(steps: FloatArray, values: FloatArray) -> Bend | str:
    """The step at which a curve bends, or why it does not.

    ``a + b·t + c·max(0, t − τ)`` is fitted for τ at every inner step; the τ that leaves least is
    compared with a straight line by the F test of two more parameters, Bonferroni-corrected for
    the number of places that were tried.

    Parameters
    ----------
    steps : float64 array, shape (m,)
        Rising.
    values : float64 array, shape (m,)
    """
    m = len(steps)
    if m < LEAST_POINTS:
        return f"{m} points, a bend takes {LEAST_POINTS}"
    t = (steps - steps[0]) / (steps[-1] - steps[0])
    centered = values - values.mean()
    spread = float(centered @ centered)
    size = float(values @ values)
    if spread <= ROUNDING * size:
        return "it does not change"
    straight = residual(t, centered, None)
    if straight <= ROUNDING * (spread + size):
        return "it is a straight line"
    tried = [(residual(t, centered, tau), at) for at, tau in enumerate(t[1:-1], start=1)]
    best, at = min(tried)
    if is_chance(straight, best, m, len(tried)):
        return "two segments explain it no better than one"
    slopes = fit_lines(t, centered, t[at])[1:] / (steps[-1] - steps[0])
    return Bend(
        float(steps[at]), float(slopes[0]), float(slopes[0] + slopes[1]), float(best / straight)
    )


def design(t: FloatArray, tau: float | None) -> FloatArray:
    columns = [np.ones_like(t), t]
    if tau is not None:
        columns.append(np.maximum(0.0, t - tau))
    return np.column_stack(columns)


def fit_lines(t: FloatArray, values: FloatArray, tau: float | None) -> FloatArray:
    return np.asarray(np.linalg.lstsq(design(t, tau), values, rcond=None)[0], dtype=np.float64)


def residual(t: FloatArray, values: FloatArray, tau: float | None) -> float:
    """Sum of squares that the best line (or pair of segments meeting at τ) leaves."""
    left = values - design(t, tau) @ fit_lines(t, values, tau)
    return float(left @ left)


def is_chance(straight: float, best: float, points: int, places: int) -> bool:
    from scipy.stats import f

    freedom = points - 4
    if best <= ROUNDING * straight:
        return False
    ratio = (straight - best) / 2.0 / (best / freedom)
    return bool(f.sf(ratio, 2, freedom) * places > LEVEL)
