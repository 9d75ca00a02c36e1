"""Singular spectrum: how many directions the matrix really uses (definitions, section 1).

Examples
--------
>>> import embgeo
>>> W = np.vstack([np.diag([3.0, 2.0, 2.0, 1.0]), np.zeros((1, 4))])
>>> found = embgeo.analyze(W, sections=["spectrum"], reference=False)
>>> [round(found[f"spectrum.{name}"].value, 6) for name in ("top_share", "condition_number")]
[0.5, 3.0]
"""

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.numbers import LEAST_P
from embgeo.core.quantities import spectrum as q
from embgeo.core.values import Known, Scalar, Series, Value
from embgeo.metrics.by_half import (
    CENTERED,
    UNCENTERED,
    ByHalf,
    add_errors,
    note_dominant_row,
    request_squares,
)
from embgeo.metrics.facts import Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import Spectrum, count_rank, norms, row_moments, unit_moments
from embgeo.numerics import spectra
from embgeo.numerics.halves import GROUPS, sum_halves
from embgeo.stats import GroupSquares
from embgeo.stats.statistic import Statistic

#: Counts of dimensions, and the weakest direction, an extreme, have no error.
WITH_ERRORS = (q.EFFECTIVE_RANK, q.TOP_SHARE, q.MEAN_NORM_RATIO)
SPECTRA: tuple[Spectrum, ...] = ("uncentered", "centered", "unit")


def second(m: Measurement) -> list[Statistic]:
    values = [one for of in SPECTRA for one in m.shared.request_singular_values(of)]
    return [*values, *request_squares(m, UNCENTERED), *request_squares(m, CENTERED)]


def compute(m: Measurement) -> list[Value]:
    facts, shared = m.facts, m.shared
    sigma = shared.singular_values("uncentered")
    centered = shared.singular_values("centered")
    effective_rank, *others = summarize_spectrum(facts, sigma)
    offset = np.linalg.norm(shared.moments.mean) / shared.norms.mean()
    values: list[Value] = [
        Series(
            q.SINGULAR_VALUES,
            np.arange(1, facts.d + 1, dtype=np.float64),
            {"uncentered": sigma / sigma[0], "centered": centered / sigma[0]},
            "index k",
            "σ_k / σ₁",
            log_y=True,
            note=f"σ₁ = {sigma[0]:.6g}",
        ),
        effective_rank,
        *others,
        q.MEAN_NORM_RATIO.measured(float(offset)),
        compare_with_chance(m),
    ]
    values = add_errors(m, values, WITH_ERRORS, lambda: measure_halves(m))
    squares = shared.get(GroupSquares, UNCENTERED)
    return values if squares is None else note_dominant_row(squares, values)


def measure_halves(m: Measurement) -> ByHalf:
    """Measure the halves: their eigenvalues are the sums of squares along the eigenvectors.

    To first order, which is enough: halves deviate from half of the scatter matrix by its root.
    """
    shared, groups = m.shared, m.facts.kept_groups
    squares, centered = (shared.get(GroupSquares, of) for of in (UNCENTERED, CENTERED))
    if squares is None or centered is None or groups is None:
        return {}
    values = -np.sort(-sum_halves(squares.squares), axis=1)
    sigma = np.sqrt(values)
    n = sum_halves(centered.n)
    means = (
        sum_halves(centered.sums) / n[:, None] + shared.moments.mean @ shared.eigen_centered.vectors
    )
    lengths = sum_halves(np.asarray(np.bincount(groups, shared.norms, GROUPS), np.float64)) / n
    return {
        q.EFFECTIVE_RANK: np.array([*map(spectra.compute_effective_rank, sigma)]),
        q.TOP_SHARE: values[:, 0] / values.sum(axis=1),
        q.MEAN_NORM_RATIO: np.linalg.norm(means, axis=1) / lengths,
    }


def summarize_spectrum(facts: Facts, sigma: FloatArray) -> list[Value]:
    energy = np.square(sigma / sigma[0])
    total = float(energy.sum())
    reached = np.cumsum(energy) / total
    rank = count_rank(sigma, facts.m)
    values: list[Value] = [
        q.EFFECTIVE_RANK.measured(
            spectra.compute_effective_rank(sigma), convention="σ, not σ²; uncentered"
        ),
        q.TOP_SHARE.measured(1.0 / total, convention="uncentered"),
    ]
    # Slightly below the share, so that rounding does not miss a share reached exactly.
    count = int(np.searchsorted(reached, 0.9 * (1 - 1e-14))) + 1
    values.append(q.ENERGY_90.measured(float(min(count, facts.d))))
    if rank < facts.d:
        reason = f"the matrix has numerical rank {rank} of {facts.d}, σ_d is zero up to rounding"
        values.append(q.CONDITION_NUMBER.undefined(reason))
    else:
        values.append(q.CONDITION_NUMBER.measured(float(sigma[0] / sigma[-1])))
    values.append(q.NUMERICAL_RANK.measured(float(rank)))
    return values


def compare_with_chance(m: Measurement) -> Scalar:
    """Measure how unlikely the largest eigenvalue is for isotropic rows.

    Of unit rows: unlike norms alone make a large one.
    """
    n, d = m.facts.m, m.facts.d
    if min(n, d) < 2:
        return q.LARGEST_P.undefined("a single row or dimension has no spectrum")
    largest = d * float(m.shared.singular_values("unit")[0]) ** 2
    p = spectra.compute_largest_p(largest, n, d)
    known: Known = "at_most" if p < LEAST_P else "exact"
    p = max(p, LEAST_P)
    return q.LARGEST_P.measured(p, convention="unit rows, uncentered", known=known)


FAMILY = Family(
    "spectrum",
    compute,
    first=(norms, row_moments, unit_moments),
    second=second,
)
