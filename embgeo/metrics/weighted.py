"""Geometry weighted by frequency: tokens count as often as they occur (definitions, section 11).

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((500, 8))
>>> W[:5] += 3.0  # a few tokens, which make up most of the text
>>> counts = np.where(np.arange(500) < 5, 1000, 1)
>>> found = embgeo.analyze(W, counts=counts, reference=False)
>>> for name in ("cosine.mean", "frequency.weighted_mean_cosine"):
...     print(name, round(found[name].value, 2))
cosine.mean -0.0
frequency.weighted_mean_cosine 0.76
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import frequency as q
from embgeo.core.values import Series, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.isotropy import summarize_covariance
from embgeo.metrics.popularity import explain_absence
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.eigen import eigenvalues
from embgeo.numerics.spectra import compute_effective_rank
from embgeo.stats import Moments, WeightedSum
from embgeo.stats.statistic import Statistic

FAMILY = "frequency"
FIRST = ("norms",)
absent = explain_absence
NAME = "counts"
QUANTITIES = (
    q.WEIGHTED_MEAN_COSINE,
    q.WEIGHTED_EFFECTIVE_RANK,
    q.WEIGHTED_ISOSCORE,
    q.WEIGHTED_SYMMETRY_FIRST,
    q.WEIGHTED_SYMMETRY_SECOND,
)


def second(facts: Facts) -> list[Statistic]:
    weights = find_weights(facts)
    if weights is None:
        return []
    single = facts.options.precision == "float32"
    moments = Moments(facts.d, single=single, weights=weights)
    return [moments, WeightedSum(NAME, weights, facts.d, of="unit")]


def find_weights(facts: Facts) -> FloatArray | None:
    """Share of each of the N tokens in the text, over kept rows; None if unknown."""
    counts = facts.counts
    if counts is None or not np.count_nonzero(counts[facts.kept]) > 1:
        return None
    weights = np.zeros(facts.n)
    weights[facts.kept] = counts[facts.kept]
    return np.asarray(weights / weights.sum())


def compute(facts: Facts, shared: SharedStatistics) -> list[Value]:
    weights = find_weights(facts)
    if weights is None:
        reason = (
            "only the order of the frequencies is known"
            if facts.is_ranked
            else "fewer than two tokens have a count above 0"
        )
        return [quantity.undefined(reason) for quantity in QUANTITIES]
    p = weights[facts.kept]
    moments = shared.find(Moments, "weighted rows")
    total = shared.find(WeightedSum, NAME).total
    scatter = moments.scatter
    variances = eigenvalues(scatter, facts.m)
    varies = float(variances.sum()) > 1e-28 * float(np.square(moments.mean).sum())
    scatter += np.outer(moments.mean, moments.n * moments.mean)
    energies = eigenvalues(scatter, facts.m)
    # Eigenvalues below the rounding error count as 0.
    floor = energies[0] * max(facts.m, facts.d) * np.finfo(float).eps
    sigma = np.sqrt(np.where(energies > floor, energies, 0.0))
    own = float(p @ p)
    return [
        q.WEIGHTED_MEAN_COSINE.measured(
            (float(total @ total) - own) / (1.0 - own),
            convention="over ordered pairs of different tokens, weight p_i·p_j",
            reference=0.0,
            reference_kind="isotropic",
        ),
        q.WEIGHTED_EFFECTIVE_RANK.measured(
            compute_effective_rank(sigma), convention="σ, not σ²; uncentered"
        ),
        *summarize_covariance(
            (q.WEIGHTED_ISOSCORE, q.WEIGHTED_SYMMETRY_FIRST, q.WEIGHTED_SYMMETRY_SECOND),
            moments.mean,
            float(p @ shared.norms),
            variances,
            "" if varies else "all rows are equal",
        ),
        Series(
            q.WEIGHTED_SINGULAR_VALUES,
            np.arange(1, facts.d + 1, dtype=np.float64),
            {"weighted": sigma / sigma[0]},
            "index k",
            "σ_k / σ₁",
            log_y=True,
        ),
    ]
