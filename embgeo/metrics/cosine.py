"""Cosines of pairs of rows: is there a cone, and how narrow is it? (definitions, section 3)

Examples
--------
>>> import embgeo
>>> directions = np.random.default_rng(0).standard_normal((500, 16))
>>> for offset in (0.0, 2.0):
...     found = embgeo.analyze(directions + offset, sections=["cosine"], reference=False)
...     print(f"{found['cosine.mean'].value:.2f} {found['cosine.cone_half_angle_max'].value:.0f}°")
0.00 131°
0.81 41°
"""

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import cosine as q
from embgeo.core.values import Caveat, Column, Histogram, Quantity, Scalar, Table, Value
from embgeo.metrics.by_half import UNIT, ByHalf, add_errors, unit_groups
from embgeo.metrics.facts import Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.pairs import compute_pair_values, list_pair_rows, measure_positive_halves
from embgeo.metrics.shared import SharedStatistics, norms, unit_moments
from embgeo.numerics.halves import sum_halves
from embgeo.stats import GroupSums, HalfAngles, Moments
from embgeo.stats.statistic import Statistic

CONE_QUANTILES = {
    q.CONE_HALF_ANGLE_MAX: 1.0,
    q.CONE_HALF_ANGLE_MEDIAN: 0.5,
}
#: The largest angle, an extreme, has no error, nor has the standard deviation, which takes the
#: scatter of the unit rows of each half.
WITH_ERRORS = (q.MEAN, q.CONE_HALF_ANGLE_MEDIAN, q.POSITIVE_SHARE)
ONE_ROW = "a single row has no pairs"
CONVENTION = "over ordered pairs i ≠ j; the term of CosReg, divided by N², is (M − 1)/M times it"


def rows_read(m: Measurement) -> IntArray:
    return list_pair_rows(m.facts)


def second(m: Measurement) -> list[Statistic]:
    angles: list[Statistic] = []
    if m.facts.kept_groups is not None and m.facts.groups is not None:
        totals = sum_unit_halves(m)
        lengths = np.linalg.norm(totals, axis=1, keepdims=True)
        if (lengths > 0.0).all():
            angles.append(HalfAngles(totals / lengths, m.facts.groups))
    return [*m.shared.request_mean_angles(), *angles]


def sum_unit_halves(m: Measurement) -> FloatArray:
    """Sum the unit rows of each half, shape (30, d)."""
    return sum_halves(m.shared.find(GroupSums, UNIT).sums)


def compute(m: Measurement) -> list[Value]:
    facts, shared = m.facts, m.shared
    of_pairs, drawn = compute_pair_values(facts, m.reader, shared)
    values: list[Value] = [
        *compute_exact_values(shared.unit_moments),
        *compute_cone_values(facts, shared),
        *of_pairs,
        *compute_dimension_values(shared),
    ]
    return add_errors(m, values, WITH_ERRORS, lambda: measure_halves(m, drawn))


def measure_halves(m: Measurement, drawn: FloatArray | None) -> ByHalf:
    totals, n = sum_unit_halves(m), sum_halves(m.shared.find(GroupSums, UNIT).n)
    found: dict[Quantity, FloatArray | Caveat] = {
        q.MEAN: (np.vecdot(totals, totals) - n) / (n * (n - 1.0))
    }
    if (angles := m.shared.get(HalfAngles)) is not None:
        found[q.CONE_HALF_ANGLE_MEDIAN] = np.degrees(angles.quantiles(0.5))
    positive = measure_positive_halves(m.facts, m.reader, m.shared.norms, drawn)
    if positive is not None:
        found[q.POSITIVE_SHARE] = positive
    return found


def compute_exact_values(moments: Moments) -> list[Scalar]:
    """Compute the mean and standard deviation over ordered pairs i ≠ j, from sums over rows.

    The variance comes from the centered scatter C of the unit rows, Σ_ij (cos_ij − ‖ū‖²)² =
    2M·ūᵀCū + ‖C‖_F², which does not cancel if all cosines are close to 1.
    """
    m = moments.n
    squared = float(np.square(moments.mean * m).sum())
    if m < 2:
        return [q.MEAN.undefined(ONE_ROW), q.STD.undefined(ONE_ROW)]
    mean = (squared - m) / (m * (m - 1.0))
    rest = moments.trace() / m  # 1 − ‖ū‖², without cancellation
    total = 2.0 * m * moments.along_mean() + moments.squares()
    variance = (total - m * rest**2) / (m * (m - 1.0)) - (rest / (m - 1.0)) ** 2
    eps = np.finfo(float).eps
    if variance <= eps * max(total / m, 4096.0 * eps):  # rounding, for orthogonal or equal rows
        variance = 0.0
    return [
        q.MEAN.measured(mean, convention=CONVENTION),
        q.STD.measured(float(np.sqrt(variance))),
    ]


def compute_cone_values(facts: Facts, shared: SharedStatistics) -> list[Value]:
    if shared.mean_angles is None:
        reason = "the unit rows cancel, there is no common direction"
        return [quantity.undefined(reason) for quantity in CONE_QUANTILES]
    angles = np.degrees(shared.mean_angles)
    low, high = round_range(float(angles.min()), float(angles.max()), 0.0, 180.0)
    counts, edges = np.histogram(angles, bins=60, range=(low, high))
    column = Column(q.ANGLE_TO_MEAN, facts.take_listed(angles), "angle to mean (°)")
    quantities, levels = CONE_QUANTILES.keys(), [*CONE_QUANTILES.values()]
    quantiles = np.quantile(angles, levels, overwrite_input=facts.listed is not None)
    return [
        *(one.measured(value) for one, value in zip(quantities, quantiles.tolist(), strict=True)),
        Histogram(q.CONE_ANGLES, edges, counts.astype(np.float64), "angle (°)", "tokens"),
        column,
    ]


def round_range(low: float, high: float, least: float, most: float) -> tuple[float, float]:
    """Widen a range to round numbers, in steps of about a twentieth, within [least, most]."""
    span = max(high - low, 1e-9 * max(1.0, abs(high), abs(low)))
    step = 10.0 ** np.floor(np.log10(span)) / 2.0
    wide_low = max(least, float(np.floor(low / step) * step))
    wide_high = min(most, float(np.ceil(high / step) * step))
    return (wide_low, wide_high) if wide_low < wide_high else (low - step, high + step)


def compute_dimension_values(shared: SharedStatistics) -> list[Value]:
    direction = shared.mean_direction
    if direction is None:
        reason = "the unit rows cancel, the mean cosine has no coordinates to share it"
        return [q.MAX_DIMENSION_SHARE.undefined(reason)]
    share = np.square(direction)
    largest = np.argsort(-share, kind="stable")[:10]
    return [
        q.MAX_DIMENSION_SHARE.measured(float(share[largest[0]])),
        Table(
            q.TOP_DIMENSIONS,
            ("coordinate", "share"),
            tuple((int(k), float(share[k])) for k in largest),
            note="coordinates are counted from 0; they depend on the basis of the model",
        ),
    ]


FAMILY = Family(
    "cosine",
    compute,
    first=(norms, unit_moments, unit_groups),
    second=second,
    rows_read=rows_read,
)
