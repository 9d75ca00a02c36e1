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
    isotropy,
    projection,
    spectrum,
    tokens,
)
from embgeo.core.values import Quantity, Scalar
from embgeo.measure.passes import Passes
from embgeo.metrics import Facts
from embgeo.metrics.isotropy import compute_i1_i2
from embgeo.metrics.spectrum import summarize_spectrum
from embgeo.numerics import chance
from embgeo.numerics.isotropic_rows import IsotropicRows
from embgeo.numerics.sampling import generator

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
            spectrum.MEAN_NORM_RATIO: chance.expect_mean_length(rows.energies, self.d) / scale,
        }

    def find_projection(self) -> Known:
        whole = self.rows.eigen.values
        return {projection.SVD2_SHARE: float(whole[:2].sum() / whole.sum())}

    def find_cosine(self) -> Known:
        """Compute references: a cosine has mean 0 and variance 1/d.

        A sample of isotropic rows has no clusters wherever its silhouette is known.
        """
        n, d = self.facts.m, self.d
        silhouette = chance.expect_silhouette(n, d)
        known: Known = {
            cosine.MEAN: 0.0,
            cosine.STD: 1.0 / np.sqrt(d),
            cosine.POSITIVE_SHARE: 0.5,
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
            (unit, (isotropy.I1_UNIT, None)),
            (of_rows, (isotropy.I1_UNIT_ROWS, None)),
            (None if raw is None else raw[:1], (isotropy.I1_MEAN_SIGN, isotropy.I2_MEAN_SIGN)),
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
            known[coordinates.VARIANCE_RATIO] = chance.expect_variance_ratio(
                self.rows.energies, self.d
            )
        return known

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
    "tokens": Reference.find_tokens,
}


def expect_isoscore(norms: FloatArray, d: int) -> float:
    """Return the expected IsoScore, (r − 1)/(d − 1), r = (Σλ)²/Σλ² of the covariance.

    Of rows of norms n_i, Σλ = Σn_i² and E Σλ² = Σn_i⁴ + Σ_(i≠j) n_i²n_j²/d, so that fewer rows, and
    rows of unequal norms, score lower. Centering takes one degree of freedom, which is neglected.
    """
    share = np.square(norms / norms.max())
    share /= share.sum()
    same = float(share @ share)
    return (1.0 / (same + (1.0 - same) / d) - 1.0) / (d - 1.0)
