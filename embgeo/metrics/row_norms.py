"""Norms of the input and output rows (definitions, section 10).

Examples
--------
>>> import embgeo
>>> W = np.diag(np.arange(1.0, 41.0))
>>> W[7] *= 1e-9
>>> found = embgeo.analyze(W, sections=["tokens"], reference=False)
>>> [found[f"tokens.norm_{name}"].text for name in ("min", "median", "max")]
['8e-09', '20.5', '40']
>>> found["tokens.damaged_gap"].text
'8.097 decades'
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import tokens as q
from embgeo.core.values import Quantity, Scalar, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.row_sides import Side, find_input_side, find_output_side
from embgeo.metrics.shared import SharedStatistics
from embgeo.stats import OutputNorms
from embgeo.stats.statistic import Statistic

FAMILY = "tokens"
FIRST = ("norms",)
INPUT = (q.NORM_MIN, q.NORM_MEDIAN, q.NORM_MAX, q.NORM_RMS, q.NORM_SPREAD)
OUTPUT = (
    q.OUTPUT_NORM_MIN,
    q.OUTPUT_NORM_MEDIAN,
    q.OUTPUT_NORM_MAX,
    q.OUTPUT_NORM_RMS,
    q.OUTPUT_NORM_SPREAD,
)
#: Chance that the longest of lognormal rows counts as long.
CHANCE = 1e-3
FEW_ROWS = "fewer than 20 rows: 5 % of them is less than one row"


def second(facts: Facts) -> list[Statistic]:
    return [OutputNorms()] if facts.output_width else []


def compute(facts: Facts, shared: SharedStatistics) -> list[Value]:
    values: list[Value] = [
        *describe_norms(find_input_side(facts, shared), INPUT, q.DAMAGED_GAP),
        *measure_long_rows(shared.norms, facts.d),
    ]
    output = find_output_side(facts, shared)
    if output is None:
        return values
    return [*values, *describe_norms(output, OUTPUT, q.OUTPUT_DAMAGED_GAP)]


def describe_norms(side: Side, quantities: tuple[Quantity, ...], gap: Quantity) -> list[Scalar]:
    """Smallest, median, largest, root mean square, spread, and the gap."""
    smallest, median, largest, rms, spread = quantities
    decades = side.decades
    widest = gap.undefined(FEW_ROWS) if decades is None else gap.measured(decades)
    norms, healthy = side.known_norms, side.healthy_norms
    if not len(healthy):
        return [*(one.undefined("every row is damaged") for one in quantities), widest]
    low, high = np.quantile(norms, (0.01, 0.99))
    return [
        smallest.measured(float(norms.min())),
        median.measured(float(np.median(norms))),
        largest.measured(float(norms.max())),
        rms.measured(root_mean_square(healthy)),
        spread.undefined("one row in a hundred is zero")
        if low == 0
        else spread.measured(divide(high, low)),
        widest,
    ]


def measure_long_rows(norms: FloatArray, d: int) -> list[Scalar]:
    """How many rows are longer than lognormal norms would be, and what they hold."""
    from scipy.special import ndtri

    logs = np.log(norms)
    low, median, high = np.quantile(logs, (0.25, 0.5, 0.75))
    spread = max((high - low) / (2.0 * ndtri(0.75)), (2.0 * d) ** -0.5)
    is_long = logs > median - spread * ndtri(CHANCE / len(norms))
    energy = np.square(norms / norms.max())
    return [
        q.LONG_ROWS.measured(int(is_long.sum())),
        q.LONG_ROWS_ENERGY.measured(float(energy[is_long].sum() / energy.sum())),
    ]


def divide(high: float, low: float) -> float:
    """The ratio; infinite if it overflows."""
    with np.errstate(over="ignore"):
        return float(np.divide(high, low))


def root_mean_square(norms: FloatArray) -> float:
    """Without squares that overflow."""
    largest = float(norms.max())
    return largest * float(np.sqrt(np.mean(np.square(norms / largest))))
