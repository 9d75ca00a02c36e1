"""Singular spectrum: how many directions the matrix really uses (definitions, section 1).

Examples
--------
>>> import embgeo
>>> W = np.vstack([np.diag([3.0, 2.0, 2.0, 1.0]), np.zeros((1, 4))])
>>> found = embgeo.analyze(W, sections=["spectrum"], reference=False)
>>> [round(found[f"spectrum.{name}"].value, 6) for name in ("top_share", "condition_number")]
[0.5, 3.0]
"""

from collections.abc import Sequence

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import spectrum as q
from embgeo.core.values import Caveat, Quantity, Scalar, Series, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.row_sample import RowSample, add_row_errors, choose_rows, take_sample
from embgeo.metrics.shared import Spectrum, count_rank, norms, row_moments, unit_moments
from embgeo.numerics import spectra
from embgeo.numerics.row_errors import RowError, root_entropy, top_share
from embgeo.stats.statistic import Statistic

SMOOTH = (q.EFFECTIVE_RANK, q.EFFECTIVE_RANK_CENTERED, q.TOP_SHARE)
OF_CHANCE = (q.ABOVE_EDGE, q.LARGEST_P)
SPECTRA: tuple[Spectrum, ...] = ("uncentered", "centered", "unit")


def second(m: Measurement) -> list[Statistic]:
    return [one for of in SPECTRA for one in m.shared.request_singular_values(of)]


def rows_read(m: Measurement) -> IntArray:
    return np.asarray(m.facts.kept[choose_rows(m.facts)])


def compute(m: Measurement) -> list[Value]:
    facts, shared = m.facts, m.shared
    sigma = shared.singular_values("uncentered")
    centered = shared.singular_values("centered")
    effective_rank, *others = summarize_spectrum(facts, sigma)
    if shared.all_rows_equal:
        after_centering = q.EFFECTIVE_RANK_CENTERED.undefined(shared.all_rows_equal)
    else:
        after_centering = q.EFFECTIVE_RANK_CENTERED.measured(
            spectra.compute_effective_rank(centered), convention="σ, not σ²; mean row subtracted"
        )
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
        after_centering,
        q.EFFECTIVE_RANK_UNIT.measured(
            spectra.compute_effective_rank(shared.singular_values("unit")),
            convention="σ, not σ²; uncentered",
        ),
        *others,
        q.MEAN_NORM_RATIO.measured(float(offset)),
        *compare_with_chance(m),
    ]
    sample = take_sample(facts, m.reader, shared)
    if not isinstance(sample, RowSample):
        return add_row_errors(values, dict.fromkeys(SMOOTH, sample), None)
    return add_row_errors(values, find_errors(sample, values), sample.places)


def find_errors(
    sample: RowSample, values: Sequence[Value]
) -> dict[Quantity, RowError | Caveat | None]:
    """Find the errors over tokens of the smooth functions of the eigenvalues.

    Counts of dimensions and the weakest direction, an extreme, are not smooth. The share of the
    top direction has an error for every draw: one that appears only where the first eigenvalue
    happens to be well above the next is too small (docs/errors.md).
    """
    scalars = (value for value in values if isinstance(value, Scalar))
    known = {scalar.name: scalar.value for scalar in scalars if scalar.value is not None}
    whole, centered = sample.uncentered, sample.centered
    found = {
        q.EFFECTIVE_RANK: whole.find_error(root_entropy),
        q.TOP_SHARE: whole.find_error(top_share),
    }
    if centered is not None:
        found[q.EFFECTIVE_RANK_CENTERED] = centered.find_error(root_entropy)
    for rank in (q.EFFECTIVE_RANK, q.EFFECTIVE_RANK_CENTERED):  # the exponential of the entropy
        if (error := found.get(rank)) is not None:
            found[rank] = error.times(known[rank.name])
    return {quantity: sample.correct(error) for quantity, error in found.items()}


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


def compare_with_chance(m: Measurement) -> list[Value]:
    """Count how many eigenvalues are too large for isotropic rows, and how unlikely the largest is.

    Of unit rows: unlike norms alone put eigenvalues above the edge.
    """
    n, d = m.facts.m, m.facts.d
    if min(n, d) < 2:
        return [one.undefined("a single row or dimension has no spectrum") for one in OF_CHANCE]
    scaled = d * np.square(m.shared.singular_values("unit"))
    convention = "unit rows, uncentered"
    above = float(np.count_nonzero(scaled > spectra.find_edge(n, d)))
    return [
        q.ABOVE_EDGE.measured(
            above, convention=f"{convention}; chance of one {spectra.LEVEL:.0%} at most"
        ),
        q.LARGEST_P.measured(
            spectra.compute_largest_p(float(scaled[0]), n, d), convention=convention
        ),
    ]


FAMILY = Family(
    "spectrum",
    compute,
    first=(norms, row_moments, unit_moments),
    second=second,
    rows_read=rows_read,
)
