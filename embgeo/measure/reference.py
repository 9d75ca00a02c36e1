"""The isotropic reference: Gaussian rows of the same N, d and norms.

Each kept row is replaced by a row of uniformly random direction and the same norm. Numbers of that
matrix are the reference column of the report. The rows themselves are drawn only where they are
few: a number has a closed form, an integral or a table (:mod:`embgeo.numerics.chance`), or comes
from a drawn spectrum (:mod:`embgeo.numerics.isotropic_rows`).
"""

import math
from collections.abc import Callable

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import (
    coordinates,
    cosine,
    frequency,
    isotropy,
    projection,
    spectrum,
    tokens,
)
from embgeo.core.values import Quantity, Scalar
from embgeo.measure.passes import Passes
from embgeo.metrics import Facts
from embgeo.metrics.frequency import find_weights
from embgeo.metrics.isotropy import compute_i1_i2
from embgeo.metrics.spectrum import summarize_spectrum
from embgeo.numerics import chance
from embgeo.numerics.isotropic_rows import IsotropicRows, draw_eigenvalues
from embgeo.numerics.sampling import generator
from embgeo.numerics.spectra import compute_effective_rank

#: Geometry that isotropic rows give no value for, and why; docs/metrics.md shows it.
NO_REFERENCE: dict[str, str] = {
    cosine.CONE_APERTURE.name: "the largest angle grows with the number of pairs",
    spectrum.LARGEST_P.name: "a p-value: two draws of isotropic rows can give 0.1 and 0.9",
    isotropy.EIGENGAP.name: "a gap between two draws of eigenvalues is chance",
}
NOTE = "isotropic Gaussian rows, same N, d and norms"

#: References of some quantities; those that are None, or not finite, are left out.
Known = dict[Quantity, float | None]


class Reference:
    """Isotropic rows of the same N, d and norms as a matrix after both passes."""

    def __init__(self, measurement: Passes) -> None:
        self.facts: Facts = measurement.facts
        self.norms: FloatArray = measurement.shared.norms
        self.d = self.facts.d
        rng = generator(measurement.options.seed, "isotropic reference")
        self.rows = IsotropicRows(self.norms, self.d, rng)

    def find(self, section: str) -> dict[str, float]:
        """Find the reference values of a section, by name."""
        found = {} if section not in SECTIONS else SECTIONS[section](self)
        return {
            quantity.name: float(value)
            for quantity, value in found.items()
            if value is not None and math.isfinite(value)
        }

    @property
    def sigma(self) -> FloatArray:
        """The singular values of the rows, in units of the longest."""
        return np.sqrt(self.rows.eigen.values)

    def find_spectrum(self) -> Known:
        rows, scale = self.rows, float(self.rows.lengths.mean())
        summary = summarize_spectrum(self.facts, self.sigma)
        known: Known = {
            scalar.quantity: scalar.value for scalar in summary if isinstance(scalar, Scalar)
        }
        return known | {
            spectrum.EFFECTIVE_RANK_CENTERED: find_rank(rows.centered.values),
            spectrum.EFFECTIVE_RANK_UNIT: find_rank(rows.unit_values),
            spectrum.MEAN_NORM_RATIO: chance.expect_mean_length(rows.energies, self.d) / scale,
            spectrum.ABOVE_EDGE: 0.0,
        }

    def find_projection(self) -> Known:
        whole, centered = self.rows.eigen.values, self.rows.centered.values
        left = float(centered.sum())
        return {
            projection.SVD2_SHARE: float(whole[:2].sum() / whole.sum()),
            projection.PCA2_SHARE: float(centered[:2].sum()) / left if left else None,
        }

    def find_cosine(self) -> Known:
        """Compute references: a cosine has mean 0, variance 1/d and E exp(tx) = ₀F₁(; d/2; t²/4).

        A sample of isotropic rows has no clusters wherever its silhouette is known.
        """
        from scipy.special import hyp0f1

        n, d = self.facts.m, self.d
        silhouette = chance.expect_silhouette(n, d)
        known: Known = {
            cosine.MEAN: 0.0,
            cosine.STD: 1.0 / np.sqrt(d),
            cosine.POSITIVE_SHARE: 0.5,
            cosine.UNIFORMITY: np.log(hyp0f1(d / 2.0, 4.0)) - 4.0,
            cosine.SILHOUETTE: silhouette,
            cosine.CLUSTERS: None if silhouette is None else 1.0,
            cosine.MAX_DIMENSION_SHARE: chance.expect_largest_share(d),
        }
        if d > 1 and n > 1:
            median, largest = chance.expect_cone_angles(n, d)
            known |= {cosine.CONE_HALF_ANGLE_MEDIAN: median, cosine.CONE_HALF_ANGLE_MAX: largest}
        return known

    def find_isotropy(self) -> Known:
        rows, scale = self.rows, float(self.norms.mean())
        raw, unit = rows.draw_log_z(self.norms), rows.draw_log_z(self.norms / scale)
        of_rows = rows.draw_log_z(np.ones(len(self.norms)))
        known: Known = {}
        for log_z, pair in (
            (raw, (isotropy.I1, isotropy.I2)),
            (unit, (isotropy.I1_UNIT, isotropy.I2_UNIT)),
            (of_rows, (isotropy.I1_UNIT_ROWS, None)),
            (None if raw is None else raw[:1], (isotropy.I1_MEAN_SIGN, isotropy.I2_MEAN_SIGN)),
            (rows.draw_centered_log_z(self.norms), (isotropy.I1_CENTERED, isotropy.I2_CENTERED)),
        ):
            if log_z is not None:
                known |= {q: x for q, x in zip(pair, compute_i1_i2(log_z), strict=True) if q and x}
        if self.d > 1:
            known[isotropy.ISOSCORE] = expect_isoscore(self.norms, self.d)
        return known

    def find_coordinates(self) -> Known:
        known: Known = dict.fromkeys(
            (
                coordinates.ROGUE_COORDINATES,
                coordinates.ROGUE_SHARE,
                coordinates.MEAN_COSINE_WITHOUT_1,
            ),
            0.0,
        )
        if self.d > 1:
            share, ratio = chance.expect_variances(self.rows.energies, self.d)
            known |= {coordinates.VARIANCE_SHARE: share, coordinates.VARIANCE_RATIO: ratio}
        return known

    def find_frequency(self) -> Known:
        weights = find_weights(self.facts)
        if weights is None:
            return {}
        weights = weights[self.facts.kept]
        values = draw_eigenvalues(weights * self.rows.energies, self.d, self.rows.rng)
        isoscore = expect_weighted_isoscore(self.norms, self.d, weights)
        return {
            frequency.WEIGHTED_EFFECTIVE_RANK: find_rank(values),
            frequency.WEIGHTED_ISOSCORE: isoscore,
        }

    def find_tokens(self) -> Known:
        n, d, k = self.facts.m, self.d, self.facts.options.neighbors
        return {
            tokens.HUBNESS: chance.expect_hubness(n, d, k),
            tokens.INTRINSIC_DIMENSION: chance.expect_dimension(self.norms, d)
            if d > 1 < n
            else None,
        }


SECTIONS: dict[str, Callable[[Reference], Known]] = {
    "spectrum": Reference.find_spectrum,
    "projection": Reference.find_projection,
    "cosine": Reference.find_cosine,
    "isotropy": Reference.find_isotropy,
    "coordinates": Reference.find_coordinates,
    "frequency": Reference.find_frequency,
    "tokens": Reference.find_tokens,
}


def find_rank(values: FloatArray) -> float | None:
    """Find the effective rank from eigenvalues; None if all are 0."""
    return compute_effective_rank(np.sqrt(values)) if values[0] > 0 else None


def expect_isoscore(norms: FloatArray, d: int) -> float:
    """Return the expected IsoScore, (r − 1)/(d − 1), r = (Σλ)²/Σλ² of the covariance.

    Of rows of norms n_i, Σλ = Σn_i² and E Σλ² = Σn_i⁴ + Σ_(i≠j) n_i²n_j²/d, so that fewer rows, and
    rows of unequal norms, score lower. Centering takes one degree of freedom, which is neglected.
    """
    share = np.square(norms / norms.max())
    share /= share.sum()
    same = float(share @ share)
    return (1.0 / (same + (1.0 - same) / d) - 1.0) / (d - 1.0)


def expect_weighted_isoscore(norms: FloatArray, d: int, weights: FloatArray) -> float | None:
    """Return IsoScore where each row has a weight; the weights sum to 1.

    With a_i = p_i²n_i² and c_i = p_i n_i², the mean row m has E‖m‖² = Σa_i and, as directions are
    independent, Var ‖m‖² = (2/d)·Σ_(i≠j) a_i a_j. The covariance is C = S − mmᵀ, S = Σp_i w_i w_iᵀ,
    with tr C = Σc_i − ‖m‖² and E tr C² = E tr S² − 2·E mᵀSm + E‖m‖⁴, the first as in
    `expect_isoscore` and E mᵀSm = Σ_i a_i (c_i + Σ_(k≠i) c_k/d).
    """
    if d < 2:
        return None
    scale = float(norms.max())
    lengths = norms / scale
    a, c = np.square(weights * lengths), weights * np.square(lengths)
    mean, total = float(a.sum()), float(c.sum())
    spread = 2.0 * (mean**2 - float(a @ a)) / d
    same = float(c @ c)
    along = float(a @ (c + (total - c) / d))
    square = (total - mean) ** 2 + spread
    squares = same + (total**2 - same) / d - 2.0 * along + mean**2 + spread
    return (square / squares - 1.0) / (d - 1.0)
