"""Every number over training, and its bend: two straight segments that meet, by least squares.

Values over training are autocorrelated: each is close to the previous one, and a random walk looks
like a line with a bend. Therefore slopes between neighboring steps are tested: without a bend,
every order of them is equally likely (exactly so for a random walk with drift; with independent
noise around a line, slopes alternate and a bend is found even less often).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from embgeo.comparison.comparison import Member
from embgeo.comparison.differences import every_quantity
from embgeo.comparison.outliers import find_outliers
from embgeo.comparison.pair import Pair
from embgeo.comparison.track import Bend, Curve, Track
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities.compare import SCALARS
from embgeo.core.values import Quantity, Scalar

#: Fewer than five slopes have too few orders for any to be unlikely.
LEAST_POINTS = 6
#: The curve bends if random orders of its slopes are as extreme with a smaller probability.
LEVEL = 0.05
ORDERS = 999
#: Residuals below this share of the values' spread are rounding.
ROUNDING = 1e-20


def bend(steps: FloatArray, values: FloatArray) -> Bend | str:
    """The step at which a curve bends, or why it does not.

    ``a + b·t + c·max(0, t − τ)`` is fitted for τ at every inner step; the bend is at the τ with the
    smallest residual. The test compares the largest distance between the curve and the line through
    its ends with those of curves with the same slopes in random order.
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
    if is_chance(t, values):
        return "its slopes may be in random order"
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
    """Residual sum of squares of the best line (or pair of segments that meet at τ)."""
    left = values - design(t, tau) @ fit_lines(t, values, tau)
    return float(left @ left)


def is_chance(t: FloatArray, values: FloatArray) -> bool:
    """Whether the slopes between neighboring steps may be in random order.

    Deviations from the mean slope are divided by the roots of the distances between steps, as the
    increments of a random walk are; their largest partial sum is compared with those of `ORDERS`
    random orders (the permutation test of a change in mean; Antoch & Hušková 2001).
    """
    between = np.diff(t)
    drift = (values[-1] - values[0]) / (t[-1] - t[0])
    steps = (np.diff(values) - drift * between) / np.sqrt(between)
    steps -= steps.mean()
    rng = np.random.default_rng(0)
    orders = rng.permuted(np.tile(steps, (ORDERS, 1)), axis=1)
    seen = np.abs(np.cumsum(steps)).max() * (1.0 - 1e-12)
    reached = np.abs(np.cumsum(orders, axis=1)).max(axis=1) >= seen
    return bool((1 + np.count_nonzero(reached)) / (1 + ORDERS) > LEVEL)


def track_of(
    members: Sequence[Member],
    pairs: Sequence[Pair],
    source: str,
    same_as: Sequence[int | None],
) -> Track:
    """The curves of checkpoints, which are in the order of their steps."""
    track = Track(tuple(member.step or 0.0 for member in members), source, (), tuple(same_as))
    curves = [
        curve(track, quantity, "", [m.analysis.scalar(quantity.name) for m in members])
        for quantity in every_quantity(members)
    ]
    against: tuple[Literal["first", "previous"], ...] = ("first", "previous")
    for quantity in SCALARS:
        for other in against:
            found: list[Scalar | None] = [None] * len(members)
            for pair in pairs:
                if is_against(track, pair, other):
                    found[pair.second] = pair.scalar(quantity)
            curves.append(curve(track, quantity, other, found))
    kept = track.distinct
    outliers = find_outliers([[c.values[i] for i in kept] for c in curves if not c.against])
    return replace(track, curves=tuple(curves), outliers=tuple(kept[i] for i in outliers))


def is_against(track: Track, pair: Pair, other: Literal["first", "previous"]) -> bool:
    """Whether a pair is of a member and the first, or the previous one that is not a duplicate."""
    if other == "first":
        return pair.first == 0
    kept = track.distinct
    return pair.second in kept and pair.first == kept[kept.index(pair.second) - 1]


def curve(
    track: Track,
    quantity: Quantity,
    against: Literal["", "first", "previous"],
    scalars: Sequence[Scalar | None],
) -> Curve:
    """A number over training; its bend leaves duplicates out."""
    values = tuple(None if s is None else s.value for s in scalars)
    errors = tuple(None if s is None else s.standard_error for s in scalars)
    known = [i for i in track.distinct if values[i] is not None]
    found = bend(
        np.array([track.steps[i] for i in known], dtype=np.float64),
        np.array([values[i] for i in known], dtype=np.float64),
    )
    bent = (found, "") if isinstance(found, Bend) else (None, found)
    return Curve(quantity, against, values, errors, *bent)
