"""Every number over training, and its change point: two segments that meet, by least squares.

Values over training are autocorrelated: each is close to the previous one, and a random walk looks
like a line with a bend. Therefore slopes between neighboring steps are tested: without a bend,
every order of them is equally likely (exactly so for a random walk with drift; with independent
noise around a line, slopes alternate and a bend is found even less often).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from embgeo.comparison.comparison import Member
from embgeo.comparison.differences import every_quantity
from embgeo.comparison.pair import Pair
from embgeo.comparison.track import ChangePoint, Curve, Track
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


def find_change_point(steps: FloatArray, values: FloatArray) -> ChangePoint | str:
    """Find the step at which a curve bends, or why it does not.

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
    return ChangePoint(
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
    """Return the residual sum of squares of the best line (or pair of segments that meet at τ)."""
    left = values - design(t, tau) @ fit_lines(t, values, tau)
    return float(left @ left)


def is_chance(t: FloatArray, values: FloatArray) -> bool:
    """Tell whether the slopes between neighboring steps may be in random order.

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
    """Return the curves of checkpoints, which are in the order of their steps."""
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
    """Tell whether a pair is of a member and the first, or the last before that is no duplicate."""
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
    """Return a number over training; its bend leaves duplicates out."""
    values = tuple(None if s is None else s.value for s in scalars)
    errors = tuple(None if s is None else s.standard_error for s in scalars)
    known = [i for i in track.distinct if values[i] is not None]
    found = find_change_point(
        np.array([track.steps[i] for i in known], dtype=np.float64),
        np.array([values[i] for i in known], dtype=np.float64),
    )
    bent = (found, "") if isinstance(found, ChangePoint) else (None, found)
    return Curve(quantity, against, values, errors, *bent)


#: Fewer than nine points have too few residuals to be robust: one outlier affects three.
LEAST_MEMBERS = 9
MOST_DEVIATIONS = 6.0
#: At most one checkpoint in this many is an outlier.
LEAST_TO_ONE = 5


def find_outliers(curves: Sequence[Sequence[float | None]]) -> tuple[int, ...]:
    """Find checkpoints that do not fit their neighbors: of another run, or of another step.

    Most numbers keep their direction over training: a value lies between its neighbors, or outside
    by about as much as neighbors differ. The scale is the median over the run of the distance of a
    value from the middle of its neighbors, which is robust against outliers. A checkpoint is an
    outlier if, in the median of all curves, it lies further outside than six times this scale.

    `curves` have their values in the order of steps; curves with gaps are ignored.
    """
    whole = [values for values in curves if all(value is not None for value in values)]
    if not whole:
        return ()
    table = np.array(whole, dtype=np.float64)
    left = list(range(table.shape[1]))
    found: list[int] = []
    # An outlier makes its neighbors look like outliers: the worst is removed before the next test.
    while len(left) >= LEAST_MEMBERS and len(found) < table.shape[1] // LEAST_TO_ONE:
        scores = score_points(table[:, left])
        worst = int(scores.argmax())
        if not scores[worst] > MOST_DEVIATIONS:
            break
        found.append(left.pop(worst + 1))
    return tuple(sorted(found))


def score_points(table: FloatArray) -> FloatArray:
    """Score how far each inner point lies outside of its neighbors, in the median of curves.

    `table` has one row per curve; the result has two entries fewer than a row.
    """
    before, value, after = table[:, :-2], table[:, 1:-1], table[:, 2:]
    usual = np.median(np.abs(value - (before + after) / 2), axis=1)
    outside = np.maximum(np.minimum(before, after) - value, value - np.maximum(before, after))
    moving = usual > 0
    if not moving.any():
        return np.zeros(value.shape[1])
    shares = np.maximum(outside[moving], 0.0) / usual[moving, None]
    return np.asarray(np.median(shares, axis=0))
