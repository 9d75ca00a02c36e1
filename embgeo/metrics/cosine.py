"""Pairwise cosine of the rows: is there a cone, and how narrow (definitions, section 3)."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.values import Column, Histogram, Quantity, Series, Table, Value
from embgeo.metrics.base import Context, Seen
from embgeo.metrics.pairs import pair_values, pairs_ahead, rows_of_pairs
from embgeo.stats import AngleTo, Moments, Norms
from embgeo.stats.base import Statistic

FAMILY = "cosine"

MEAN = Quantity(
    "cosine.mean",
    "Mean cosine",
    "Average cosine between two different tokens. 0: directions are spread evenly or cancel; "
    "near 1: all rows point the same way.",
    "(‖Σŵ_i‖² − M) / (M(M−1))",
    "Gao et al. 2019, §4; Mimno & Thompson 2017",
)
STD = Quantity(
    "cosine.std",
    "Standard deviation of the cosine",
    "How much the cosine varies from pair to pair; 1/√d for directions without any preference.",
    "√((‖ŴᵀŴ‖_F² − M) / (M(M−1)) − mean²)",
    "second moment of the same pairs",
)
COSREG_VALUE = Quantity(
    "cosine.cosreg_value",
    "CosReg term",
    "The value of the cosine regularizer on this matrix, without its weight γ. It divides by N², "
    "not by N(N−1).",
    "(‖Σŵ_i‖² − N) / N²",
    "Gao et al. 2019, Eq. 6",
)


def cone_quantity(name: str, title: str, meaning: str) -> Quantity:
    return Quantity(
        f"cosine.cone_half_angle_{name}",
        f"Cone half angle, {title}",
        meaning,
        "angle(w_i, Σŵ_j) over the kept rows",
        "Gao et al. 2019, §5 (the cone that holds the embeddings)",
        unit="°",
    )


CONE_MAX = cone_quantity(
    "max",
    "largest",
    "Every row lies within this angle of the common direction.",
)
CONE_P99 = cone_quantity("p99", "99 %", "99 % of the rows lie within this angle.")
CONE_P95 = cone_quantity("p95", "95 %", "95 % of the rows lie within this angle.")
CONE_MEDIAN = cone_quantity(
    "median",
    "median",
    "Half of the rows lie within this angle of the common direction; about 90° where there is no "
    "common direction.",
)
CONE_QUANTILES = ((CONE_MAX, 1.0), (CONE_P99, 0.99), (CONE_P95, 0.95), (CONE_MEDIAN, 0.5))
MAX_DIMENSION_SHARE = Quantity(
    "cosine.max_dimension_share",
    "Largest share of one coordinate",
    "How much of the mean cosine a single coordinate makes. Near 1: one rogue dimension is "
    "responsible; 1/d: none stands out.",
    "max_k (Σ_i ŵ_ik)² / ‖Σŵ_i‖²",
    "Timkey & van Schijndel 2021",
)
SHARE_BY_DIMENSION = Quantity(
    "cosine.mean_share_by_dimension",
    "Mean cosine by coordinate",
    "Share of the mean cosine that each coordinate of the embedding makes.",
    "(Σ_i ŵ_ik)² / ‖Σŵ_i‖²",
    "Timkey & van Schijndel 2021",
)
TOP_DIMENSIONS = Quantity(
    "cosine.top_dimensions",
    "Coordinates with the largest shares",
    "The coordinates that make most of the mean cosine.",
    "(Σ_i ŵ_ik)² / ‖Σŵ_i‖²",
    "Timkey & van Schijndel 2021",
)
ANGLE_TO_MEAN = Quantity(
    "cosine.angle_to_mean",
    "Angle to the common direction",
    "Angle between a token's row and the mean direction of all rows.",
    "angle(w_i, Σŵ_j)",
    "Gao et al. 2019, §5",
    unit="°",
)
CONE_ANGLES = Quantity(
    "cosine.cone_angles",
    "Angles to the common direction",
    "How many rows lie at which angle to the mean direction. Directions without preference pile "
    "up at 90°.",
    "angle(w_i, Σŵ_j), exact over the kept rows",
    "Gao et al. 2019, §5",
)
ONE_ROW = "a single row has no pairs"


def absent(context: Context) -> str:
    return ""


def first(context: Context) -> list[Statistic]:
    return [Moments(context.d, of="unit"), Norms()]


def second(context: Context, seen: Seen) -> list[Statistic]:
    direction = mean_direction(seen)
    return [] if direction is None else [AngleTo("mean", direction)]


def ahead(context: Context, seen: Seen) -> list[Statistic]:
    return pairs_ahead(context, row_norms(seen))


def mean_direction(seen: Seen) -> FloatArray | None:
    """Σŵ_i as a unit vector; None where the unit rows cancel but for rounding."""
    mean = seen.unit_moments.mean
    length = float(np.linalg.norm(mean))
    return None if length < 1e-13 else mean / length


def rows_read(context: Context, seen: Seen) -> IntArray:
    return rows_of_pairs(context)


def compute(context: Context, seen: Seen) -> list[Value]:
    values = exact_values(seen.unit_moments)
    values += cone_values(seen)
    values += pair_values(context, row_norms(seen), seen.statistics.get("PairSample"))
    values += dimension_values(seen)
    return values


def exact_values(moments: Moments) -> list[Value]:
    """Mean, spread and regularizer over all ordered pairs i ≠ j, from sums over rows.

    The variance is formed from the centered scatter C of the unit rows, Σ_ij (cos_ij − ‖ū‖²)² =
    2M·ūᵀCū + ‖C‖_F², which does not cancel where all cosines are close to 1.
    """
    m = moments.n
    squared = float(np.square(moments.mean * m).sum())
    cosreg = COSREG_VALUE.measured((squared - m) / m**2, convention="divided by N², γ left out")
    if m < 2:
        return [MEAN.undefined(ONE_ROW), STD.undefined(ONE_ROW), cosreg]
    mean = (squared - m) / (m * (m - 1.0))
    level = float(moments.mean @ moments.mean)
    rest = moments.trace() / m  # 1 − ‖ū‖², without cancellation
    all_pairs = 2.0 * m * moments.along_mean() + moments.squares()
    variance = (all_pairs - m * rest**2) / (m * (m - 1.0)) - (mean - level) ** 2
    return [
        MEAN.measured(mean, convention="over ordered pairs i ≠ j"),
        STD.measured(float(np.sqrt(max(variance, 0.0)))),
        cosreg,
    ]


def cone_values(seen: Seen) -> list[Value]:
    key = ("angle to", "mean")
    if key not in seen.statistics:
        reason = "the unit rows cancel, there is no common direction"
        return [quantity.undefined(reason) for quantity, _ in CONE_QUANTILES]
    angles = np.degrees(seen.find(AngleTo, key).values())
    low, high = nice_range(float(angles.min()), float(angles.max()), 0.0, 180.0)
    counts, edges = np.histogram(angles, bins=60, range=(low, high))
    return [
        *(quantity.measured(float(np.quantile(angles, q))) for quantity, q in CONE_QUANTILES),
        Histogram(CONE_ANGLES, edges, counts.astype(np.float64), "angle (°)", "tokens"),
        Column(ANGLE_TO_MEAN, angles, "angle to mean (°)"),
    ]


def nice_range(low: float, high: float, least: float, most: float) -> tuple[float, float]:
    """The range widened to round numbers of about a twentieth of it, within [least, most]."""
    span = max(high - low, 1e-9 * max(1.0, abs(high), abs(low)))
    step = 10.0 ** np.floor(np.log10(span)) / 2.0
    wide_low = max(least, float(np.floor(low / step) * step))
    wide_high = min(most, float(np.ceil(high / step) * step))
    return (wide_low, wide_high) if wide_low < wide_high else (low - step, high + step)


def row_norms(seen: Seen) -> FloatArray:
    return np.asarray(seen.find(Norms, "Norms").values())


def dimension_values(seen: Seen) -> list[Value]:
    direction = mean_direction(seen)
    if direction is None:
        reason = "the unit rows cancel, the mean cosine has no coordinates to share it"
        return [MAX_DIMENSION_SHARE.undefined(reason)]
    share = np.square(direction)
    largest = np.argsort(-share, kind="stable")[:10]
    return [
        MAX_DIMENSION_SHARE.measured(float(share[largest[0]])),
        Series(
            SHARE_BY_DIMENSION,
            np.arange(len(share), dtype=np.float64),
            {"share": share},
            "coordinate",
            "share of the mean cosine",
        ),
        Table(
            TOP_DIMENSIONS,
            ("coordinate", "share"),
            tuple((int(k), float(share[k])) for k in largest),
            note="coordinates are counted from 0; they depend on the basis of the model",
        ),
    ]
