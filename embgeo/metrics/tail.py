"""The spectrum against power laws and against chance (definitions, section 1).

Everything is computed from the singular values of the centered matrix.

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((2000, 30)) * np.arange(1, 31) ** -0.5
>>> found = embgeo.analyze(W, sections=["spectrum"], reference=False)
>>> for name in ("decay_slope", "above_edge"):
...     print(name, round(found[f"spectrum.{name}"].value, 2))
decay_slope 1.0
above_edge 12.0
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import spectrum as q
from embgeo.core.values import Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.power_law import LEAST_TAIL, compute_tail_p, fit_slope, fit_tail
from embgeo.numerics.random_matrix import compute_largest_p, estimate_level, find_edge

FAMILY = "spectrum"
FIRST = ("moments",)
#: Samples of the fitted power law.
DRAWS = 60

OF_CHANCE = (q.ABOVE_EDGE, q.LARGEST_P)
OF_TAIL = (q.TAIL_EXPONENT, q.TAIL_DISTANCE, q.TAIL_P)
EVERY = (q.NESUM, q.DECAY_SLOPE, *OF_CHANCE, *OF_TAIL)


def compute(facts: Facts, shared: SharedStatistics) -> list[Value]:
    if shared.all_rows_equal:
        return [quantity.undefined(shared.all_rows_equal) for quantity in EVERY]
    sigma = shared.singular_values("centered")
    relative = np.square(sigma / sigma[0])
    positive = relative[sigma > sigma[0] * max(facts.m, facts.d) * np.finfo(float).eps]
    slope: Value = q.DECAY_SLOPE.undefined("fewer than two eigenvalues differ from zero")
    if len(positive) > 1:
        slope = q.DECAY_SLOPE.measured(
            fit_slope(positive), convention="ranks 1 … r, weighted by 1/k; covariance"
        )
    return [
        q.NESUM.measured(float(relative.sum()), convention="centered"),
        slope,
        *compare_with_chance(relative, facts.m - 1, facts.d),
        *measure_tail(facts, positive),
    ]


def compare_with_chance(relative: FloatArray, n: int, d: int) -> list[Value]:
    """How many eigenvalues are too large for Gaussian rows, and how unlikely the largest is.

    `relative` holds the eigenvalues of the centered scatter as shares of the largest; n is the
    number of rows minus one.
    """
    level = estimate_level(relative, n, d)
    if not level > np.finfo(float).eps * d:
        reason = "the median eigenvalue is 0 up to rounding: there is no level to compare with"
        return [quantity.undefined(reason) for quantity in OF_CHANCE]
    convention = "level by the median eigenvalue; Gaussian rows"
    return [
        q.ABOVE_EDGE.measured(
            float(np.count_nonzero(relative > level * find_edge(n, d))), convention=convention
        ),
        q.LARGEST_P.measured(compute_largest_p(1.0 / level, n, d), convention=convention),
    ]


def measure_tail(facts: Facts, positive: FloatArray) -> list[Value]:
    fit = fit_tail(positive)
    if fit is None:
        reason = f"fewer than {LEAST_TAIL} eigenvalues differ from zero and from each other"
        return [quantity.undefined(reason) for quantity in OF_TAIL]
    convention = f"the {fit.size:,} largest eigenvalues of the covariance"
    values: list[Value] = [
        q.TAIL_EXPONENT.measured(fit.alpha, convention=convention),
        q.TAIL_DISTANCE.measured(fit.distance, convention=convention),
    ]
    if not facts.options.random:
        return values
    p = compute_tail_p(positive, fit, DRAWS, facts.generator("tail of the spectrum"))
    # Near 0 and 1 the sample underestimates the spread: two more draws on either side (Agresti &
    # Coull 1998).
    smoothed = (p * DRAWS + 2.0) / (DRAWS + 4.0)
    return [
        *values,
        q.TAIL_P.measured(
            p,
            standard_error=float(np.sqrt(smoothed * (1.0 - smoothed) / DRAWS)),
            error_kind="monte_carlo",
            sample=f"{DRAWS} samples of the fitted law",
            convention=convention,
        ),
    ]
