"""Does the common direction encode frequency? (definitions, section 5)

A language model can raise the logits of frequent tokens by rows that differ along one direction.
The mean row, or the first principal direction, then points where the log count grows.

Examples
--------
>>> import embgeo
>>> g = np.random.default_rng(0)
>>> counts = np.floor(1e5 / np.arange(1, 801))
>>> W = g.standard_normal((800, 12))
>>> W[:, 0] += np.log(counts)
>>> found = embgeo.analyze(W, counts=counts, sections=["frequency"], reference=False)
>>> found["frequency.mean_unigram_cosine"].value > 0.9
True
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import frequency as q
from embgeo.core.values import Quantity, Scalar, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.popularity import explain_absence, rank_by_frequency
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.eigen import Eigen
from embgeo.stats import WeightedSum
from embgeo.stats.statistic import Statistic

FAMILY = "frequency"
FIRST = ("moments",)
absent = explain_absence
NAME = "log count"
#: Penalty of the regression, as a share of the mean eigenvalue of the centered scatter.
PENALTY = 0.01


def second(facts: Facts) -> list[Statistic]:
    known = rank_by_frequency(facts)
    weights = np.zeros(facts.n)
    weights[facts.kept] = known.log_count - known.log_count.mean()
    return [WeightedSum(NAME, weights, facts.d, of="rows")]


def compute(facts: Facts, shared: SharedStatistics) -> list[Value]:
    both = (q.MEAN_UNIGRAM_COSINE, q.FIRST_UNIGRAM_COSINE)
    if shared.all_rows_equal:
        return [quantity.undefined(shared.all_rows_equal) for quantity in both]
    along = shared.find(WeightedSum, NAME).total
    if not float(np.abs(along).max()) > 0:
        reason = "the log counts do not vary along any direction"
        return [quantity.undefined(reason) for quantity in both]
    direction = find_direction(shared.eigen_centered, along)
    mean = shared.moments.mean
    length = float(np.linalg.norm(mean))
    first_direction = shared.eigen_centered.vectors[:, 0]
    if length > 1e-13 * float(shared.norms.mean()):
        by_mean = measure_cosine(q.MEAN_UNIGRAM_COSINE, float(direction @ mean) / length, facts.d)
    else:
        by_mean = q.MEAN_UNIGRAM_COSINE.undefined("the mean row is the origin")
    by_first = abs(float(direction @ first_direction))
    return [by_mean, measure_cosine(q.FIRST_UNIGRAM_COSINE, by_first, facts.d)]


def measure_cosine(quantity: Quantity, cosine: float, d: int) -> Scalar:
    return quantity.measured(
        cosine,
        convention=f"ridge penalty {PENALTY:g} of the mean eigenvalue",
        reference=0.0,
        reference_note=f"a random direction: 0 ± {d**-0.5:.2g}",
    )


def find_direction(eigen: Eigen, along: FloatArray) -> FloatArray:
    """Unit vector of the ridge regression of log counts y on centered rows.

    `eigen` decomposes the centered scatter; `along` is Σ (y_i − ȳ) w_i.
    """
    shrunk = (eigen.vectors.T @ along) / (eigen.values + PENALTY * eigen.values.mean())
    weights = eigen.vectors @ shrunk
    return np.asarray(weights / np.linalg.norm(weights))
