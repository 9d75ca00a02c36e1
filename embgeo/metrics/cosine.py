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

from embgeo.core.arrays import IntArray
from embgeo.core.quantities import cosine as q
from embgeo.core.values import Caveat, Column, Histogram, Quantity, Scalar, Series, Table, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.pairs import compute_pair_values, error_of_mean, list_pair_rows
from embgeo.metrics.row_sample import add_row_errors
from embgeo.metrics.shared import SharedStatistics, norms, unit_moments
from embgeo.numerics.row_errors import LEAST_ROWS, RowError
from embgeo.stats import Moments
from embgeo.stats.statistic import Statistic

CONE_QUANTILES = {
    q.CONE_HALF_ANGLE_MAX: 1.0,
    q.CONE_HALF_ANGLE_MEDIAN: 0.5,
}
ONE_ROW = "a single row has no pairs"
CONVENTION = "over ordered pairs i ≠ j; the term of CosReg, divided by N², is (M − 1)/M times it"


def rows_read(m: Measurement) -> IntArray:
    return list_pair_rows(m.facts)


def second(m: Measurement) -> list[Statistic]:
    return m.shared.request_mean_angles()


def compute(m: Measurement) -> list[Value]:
    facts, shared = m.facts, m.shared
    exact = compute_exact_values(shared.unit_moments)
    spread = (exact[0].value or 0.0, exact[1].value or 0.0)
    pairs, errors = compute_pair_values(facts, m.reader, shared, spread)
    values: list[Value] = [
        *add_row_errors(exact, find_mean_errors(facts, shared, *spread), facts.listed),
        *compute_cone_values(facts, shared),
        *pairs,
        *compute_dimension_values(shared),
    ]
    return add_row_errors(values, errors.by_quantity, errors.places)


def find_mean_errors(
    facts: Facts, shared: SharedStatistics, mean: float, std: float
) -> dict[Quantity, RowError | Caveat]:
    """Find the error over tokens of the mean cosine, or why there is none."""
    moments, angles = shared.unit_moments, shared.mean_angles
    if facts.m < LEAST_ROWS:
        return {q.MEAN: "few_rows"}
    if angles is None:
        return {}
    length = moments.n * float(np.linalg.norm(moments.mean))
    found = error_of_mean(facts.take_listed(angles), length, mean, std, facts.m)
    return {q.MEAN: found}


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
    return [
        q.MEAN.measured(mean, convention=CONVENTION),
        q.STD.measured(float(np.sqrt(max(variance, 0.0)))),
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
        Series(
            q.MEAN_SHARE_BY_DIMENSION,
            np.arange(len(share), dtype=np.float64),
            {"share": share},
            "coordinate",
            "share of the mean cosine",
        ),
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
    first=(norms, unit_moments),
    second=second,
    rows_read=rows_read,
)
