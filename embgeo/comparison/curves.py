"""Every number over training, and its turning point: two lines that meet, by least squares.

Values over training are autocorrelated: each is close to the previous one, and a random walk looks
like a line with a bend. Therefore slopes between neighboring steps are tested: without a bend,
every order of them is equally likely (exactly so for a random walk with drift; with independent
noise around a line, slopes alternate and a bend is found even less often). Every curvature passes
that test. A turning point is claimed only where two lines fit far better than any smooth curve.
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
from embgeo.core.quantities.compare import CKA_P, OF_EQUALS, SCALARS
from embgeo.core.values import Quantity, Scalar

#: Fewer than five slopes have too few orders for any to be unlikely.
LEAST_POINTS = 6
#: The curve turns if random orders of its slopes are as extreme with a smaller probability.
LEVEL = 0.05
ORDERS = 999
#: Residuals below this share of the values' spread are rounding.
ROUNDING = 1e-20
#: The two lines leave at most this share of the squared residuals of the best smooth curve.
SHARPER = 0.5
#: Smooth curves turn around a center over six of these widths, half of the run or more.
WIDTHS = (1 / 12, 1 / 6, 1 / 3, 2 / 3)
CENTERS = np.linspace(-0.5, 1.5, 41)


def find_change_point(steps: FloatArray, values: FloatArray) -> ChangePoint | str:
    """Find the step at which a curve turns, or why it does not.

    ``a + b·t + c·max(0, t − τ)`` is fitted for τ at every inner step; the turn is at the τ with the
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
    hinges = np.maximum(0.0, t - t[1:-1, None])
    straight, left = fit_shapes(t, centered, hinges)
    if straight <= ROUNDING * (spread + size):
        return "it is a straight line"
    if is_chance(t, values):
        return "its slopes may be in random order"
    at = int(left.argmin())
    if left[at] > SHARPER * fit_smooth(t, centered):
        return "a smooth curve fits it as well"
    lines = np.column_stack([np.ones(m), t, hinges[at]])
    slopes = np.linalg.lstsq(lines, centered, rcond=None)[0][1:] / (steps[-1] - steps[0])
    return ChangePoint(
        float(steps[at + 1]),
        float(slopes[0]),
        float(slopes[0] + slopes[1]),
        float(left[at] / straight),
    )


def fit_shapes(t: FloatArray, values: FloatArray, shapes: FloatArray) -> tuple[float, FloatArray]:
    """Fit ``a + b·t`` by least squares, and ``a + b·t + c·f`` with each shape f, a row.

    Returns
    -------
    float
        Sum of squared residuals of the line.
    float64 array
        That with each shape.
    """
    line = np.linalg.qr(np.column_stack([np.ones_like(t), t]))[0]
    rest, left = values - line @ (line.T @ values), shapes - (shapes @ line) @ line.T
    sizes = np.square(left).sum(axis=1)
    # A shape that is a line itself explains nothing more.
    other = sizes > ROUNDING * np.square(shapes).sum(axis=1)
    explained = np.square(left @ rest) * other / np.where(other, sizes, 1.0)
    straight = float(rest @ rest)
    return straight, np.maximum(0.0, straight - explained)


def fit_smooth(t: FloatArray, values: FloatArray) -> float:
    """Return the least sum of squared residuals of smooth curves, in time and in its logarithm.

    A line plus a turn (softplus, which an exponential and a parabola are parts of) or plus a step
    (tanh).
    """
    late = np.log(t + np.diff(t).min())
    found = []
    for scale in (t, (late - late[0]) / (late[-1] - late[0])):
        at = np.concatenate([(scale - CENTERS[:, None]) / width for width in WIDTHS])
        shapes = np.concatenate([np.logaddexp(0.0, at), np.tanh(at)])
        found.append(fit_shapes(scale, values, shapes)[1].min())
    return float(min(found))


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
        curve(track, quantity, "", [m.analysis.find_scalar(quantity.name) for m in members])
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
    alone = [[c.values[i] for i in kept] for c in curves if not c.against]
    with_first = [
        [OF_EQUALS[c.quantity], *(c.values[i] for i in kept[1:])]
        for c in curves
        if c.against == "first" and c.quantity in OF_EQUALS
    ]
    unrelated = find_unrelated(
        [
            c.values[i]
            for c in curves
            if (c.quantity, c.against) == (CKA_P, "previous")
            for i in kept
        ]
    )
    outliers = {*find_outliers(alone), *find_outliers(with_first), *unrelated}
    return replace(track, curves=tuple(curves), outliers=tuple(kept[i] for i in sorted(outliers)))


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
#: Rows paired at random are as alike as those of two unrelated matrices at least this often.
UNRELATED = 0.01


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


def find_unrelated(chances: Sequence[float | None]) -> tuple[int, ...]:
    """Find checkpoints whose rows are unrelated to those before and after, such as shuffled ones.

    `chances`: of each and the one before, how often rows paired at random are as alike. The first
    may be an initialization, which training leaves; of a run whose checkpoints are all unrelated,
    none stands out.
    """
    apart = [chance is not None and chance > UNRELATED for chance in chances]
    found = [at for at in range(1, len(apart)) if all(apart[at : at + 2])]
    return tuple(found) if len(found) <= len(apart) // 3 else ()


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
