"""A sample of rows for errors over tokens of numbers that are made of sums over all rows.

The influence of a row on such a number is known once the sums are complete; a few hundred uniformly
drawn rows estimate how much it varies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.values import Caveat, Influence, Quantity, Scalar, Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.row_errors import RowError, RowsOfSpectrum
from embgeo.numerics.row_norms import measure_log_norms, measure_tail
from embgeo.numerics.sampling import sample_rows
from embgeo.stats.reader import RowReader

#: Size of the sample: this many entries at most, within bounds.
ENTRIES = 2**18
ROWS = (300, 500)
#: With fewer rows for each dimension, eigenvalues move by more than their derivatives say.
ROWS_PER_DIMENSION = 3
#: Largest standard deviation of log norms, by their quartiles: beyond it a few rows hold the fourth
#: powers, and intervals cover less than 92%. The quartiles are nearly the same in every draw, so
#: that all draws of a population have errors, or none (docs/errors.md).
WIDEST = 0.55
#: Least index of the tail of norms, less this many errors. From 4 down fourth powers have no mean,
#: and intervals cover 60 to 80%. Of 500 rows that leaves 2% of the draws of Student's t with three
#: degrees, of 3,000 none (docs/errors.md).
LEAST_TAIL, TAIL_ERRORS = 4.5, 1.5
#: Least effective number of rows of a sample by fourth powers of norms: it may miss the longest.
LEAST_EFFECTIVE = 20.0


def choose_rows(facts: Facts) -> IntArray:
    """Choose positions of the sample among the kept rows; none if these are too few for d."""
    if not facts.options.row_errors or facts.m < ROWS_PER_DIMENSION * facts.d:
        return NO_ROWS
    size = int(np.clip(ENTRIES // facts.d, *ROWS))
    return sample_rows(np.arange(facts.m), size, facts.generator("row errors"))


@dataclass(frozen=True)
class RowSample:
    """Some rows, shape (r, d), at positions `places` among m kept rows, and their coordinates."""

    places: IntArray
    rows: FloatArray
    m: int
    shared: SharedStatistics

    @cached_property
    def along(self) -> FloatArray:
        """Coordinates along the eigenvectors of WᵀW."""
        return self.rows @ self.shared.eigen.vectors

    @cached_property
    def uncentered(self) -> RowsOfSpectrum:
        """The rows in the spectrum of WᵀW."""
        rank = max(self.shared.eigen.rank(self.m), 1)
        return RowsOfSpectrum(self.shared.eigen.values[:rank], self.along[:, :rank], self.m)

    @cached_property
    def centered(self) -> RowsOfSpectrum | None:
        """The centered rows in the spectrum of the covariance; None if all rows are equal."""
        eigen = self.shared.eigen_centered
        rank = eigen.rank(self.m)
        if not rank or self.shared.all_rows_equal:
            return None
        along = (self.rows - self.shared.moments.mean) @ eigen.vectors[:, :rank]
        return RowsOfSpectrum(eigen.values[:rank], along, self.m)


def take_sample(
    facts: Facts, reader: RowReader, shared: SharedStatistics
) -> RowSample | Caveat | None:
    """Return the sample, or why there is none: few rows, or the longest would dominate it."""
    if not facts.options.row_errors:
        return None
    places = choose_rows(facts)
    if not len(places):
        return "few_rows"
    if measure_log_norms(shared.norms, facts.d).spread > WIDEST:
        return "heavy_tail"
    index, error = measure_tail(shared.norms)
    if index - TAIL_ERRORS * error < LEAST_TAIL:
        return "heavy_tail"
    fourth = (shared.norms / float(shared.norms.max())) ** 4
    effective = float(fourth.sum()) ** 2 / float(fourth @ fourth) * len(places) / facts.m
    if effective < LEAST_EFFECTIVE and len(places) < facts.m:
        return "heavy_tail"
    return RowSample(places, reader.take(facts.kept[places]), facts.m, shared)


def add_row_errors(
    values: Sequence[Value],
    found: Mapping[Quantity, RowError | Caveat | None],
    places: IntArray | None,
) -> list[Value]:
    """Return the values with errors over tokens, which include sampling errors, and the influences.

    Or with why they have none. `places` are the positions of the sampled rows among the kept rows
    (None: all).
    """
    changed: list[Value] = []
    influences: list[Value] = []
    for value in values:
        error = found.get(value.quantity)
        if not isinstance(value, Scalar) or value.value is None or error is None:
            changed.append(value)
            continue
        if isinstance(error, str):
            changed.append(replace(value, caveats=(*value.caveats, error)))
            continue
        whole = float(np.hypot(error.error, value.standard_error or 0.0))
        if not np.isfinite(whole):  # equal eigenvalues have no derivative
            changed.append(value)
            continue
        caveats = value.caveats + (("conservative_error",) if error.conservative else ())
        changed.append(replace(value, population_error=whole, caveats=caveats))
        noise = None if error.noise is None else error.noise.astype(np.float32)
        influence = Influence.of(value.quantity, error.influence, places)
        influences.append(replace(influence, noise=noise))
    return changed + influences
