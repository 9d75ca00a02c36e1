"""A sample of rows for errors over tokens of numbers that are made of sums over all rows.

The influence of a row on such a number is known once the sums are complete; some uniformly drawn
rows estimate how much it varies, and the norms of all rows how far longer ones would go.
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
from embgeo.numerics.row_norms import measure_log_norms
from embgeo.numerics.sampling import sample_rows
from embgeo.numerics.tails import (
    NormTail,
    measure_coordinate_tail,
    measure_norm_index,
    measure_norm_tail,
)
from embgeo.stats.reader import RowReader

#: Size of the sample: this many entries at most, within bounds.
ENTRIES = 2**18
ROWS = (300, 1500)
#: With fewer rows for each dimension, eigenvalues move by more than their derivatives say.
ROWS_PER_DIMENSION = 3
#: Least index of the tail of norms, and of coordinates less this many errors: from 4 down, the
#: variances of eigenvalues have no mean (docs/errors.md).
LEAST_INDEX, INDEX_ERRORS = 4.0, 2.0
#: Largest shape of the tail of squared norms: the same beyond the longest row. Less, by an error of
#: the shape, would pick the draws of a population that happen to have small errors.
LARGEST_SHAPE = 0.5
#: Largest share of pairs of rows in a variance that single rows make. Above it the spectrum is
#: nearly flat, and eighth powers need a mean: the index of the tail of norms times the spread of
#: log norms, which is 2.0 for lognormal norms, has to reach a limit.
FLAT, LIGHT = 0.06, 1.7


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
    def uncentered(self) -> RowsOfSpectrum:
        """The rows in the spectrum of WᵀW."""
        rank = max(self.shared.eigen.rank(self.m), 1)
        along = self.rows @ self.shared.eigen.vectors[:, :rank]
        return RowsOfSpectrum(self.shared.eigen.values[:rank], along, self.m)

    @cached_property
    def centered(self) -> RowsOfSpectrum | None:
        """The centered rows in the spectrum of the covariance; None if all rows are equal."""
        eigen = self.shared.eigen_centered
        rank = eigen.rank(self.m)
        if not rank or self.shared.all_rows_equal:
            return None
        along = (self.rows - self.shared.moments.mean) @ eigen.vectors[:, :rank]
        return RowsOfSpectrum(eigen.values[:rank], along, self.m)

    @cached_property
    def norms(self) -> FloatArray:
        """Norms of all kept rows, in units of the longest."""
        return self.shared.norms / float(self.shared.norms.max())

    @cached_property
    def norm_tail(self) -> NormTail:
        return measure_norm_tail(self.norms)

    @property
    def factor(self) -> float:
        """Factor of errors for long rows: of this matrix that the sample lacks, and of other draws.

        Variances grow with fourth powers of norms, which are known of all rows (a ratio estimate,
        Cochran 1977, chapter 6).
        """
        seen = float(np.mean(self.norms[self.places] ** 4))
        return float(np.sqrt(self.norm_tail.fourth / seen)) if seen else np.inf

    @cached_property
    def norm_index(self) -> float:
        return measure_norm_index(self.norms)

    @property
    def has_light_norms(self) -> bool:
        """Whether the tail of norms is no heavier than that of lognormal ones."""
        return self.norm_index * measure_log_norms(self.norms, self.rows.shape[1]).spread >= LIGHT

    def correct(self, found: RowError | None) -> RowError | Caveat | None:
        """Return the error with the factor of long rows, or why there is none."""
        if found is None:
            return None
        if found.of_pairs > FLAT and not self.has_light_norms:
            return "heavy_tail"
        return found.times(self.factor) if found.error else found


def take_sample(
    facts: Facts, reader: RowReader, shared: SharedStatistics
) -> RowSample | Caveat | None:
    """Return the sample, or why there is none: few rows, or a tail that would decide the errors."""
    if not facts.options.row_errors:
        return None
    places = choose_rows(facts)
    if not len(places):
        return "few_rows"
    sample = RowSample(places, reader.take(facts.kept[places]), facts.m, shared)
    if len(sample.uncentered.values) == 1:  # all of a single eigenvalue, whatever the rows
        return sample
    tail = measure_coordinate_tail(sample.uncentered.standardize())
    if (
        sample.norm_index < LEAST_INDEX
        or tail.index - INDEX_ERRORS * tail.error < LEAST_INDEX
        or sample.norm_tail.shape > LARGEST_SHAPE
    ):
        return "heavy_tail"
    return sample


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
