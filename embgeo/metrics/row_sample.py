"""Rows that errors over tokens are estimated from, for numbers made of sums over all rows.

How much a row adds to such a number is seen when the sums are complete, and some hundreds of rows,
drawn uniformly, say how much that varies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.options import Options
from embgeo.core.values import Influence, Quantity, Scalar, Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.row_errors import RowError, RowsOfSpectrum
from embgeo.numerics.sampling import generator, sample_rows
from embgeo.stats.reader import RowReader

#: Rows that are looked at: this many entries at most, within bounds.
ENTRIES = 2**18
ROWS = (300, 500)
#: Rows for each dimension without which eigenvalues move by more than their derivatives say.
ROWS_PER_DIMENSION = 3
#: Rows of the sample that hold the fourth powers of norms, on average over samples, at least.
LEAST_EFFECTIVE = 20.0


def choose_rows(facts: Facts, options: Options) -> IntArray:
    """Places among the kept rows; none where they are too few for their dimensions."""
    if not options.row_errors or facts.m < ROWS_PER_DIMENSION * facts.d:
        return NO_ROWS
    low, high = ROWS
    size = max(low, min(high, ENTRIES // facts.d))
    return sample_rows(np.arange(facts.m), size, generator(options.seed, "row errors"))


@dataclass(frozen=True)
class RowSample:
    """Some rows of a matrix, with what the errors of several numbers are made of.

    Attributes
    ----------
    places : int array, shape (r,)
        Among the kept rows.
    rows : float64 array, shape (r, d)
    m : int
        Kept rows.
    shared : SharedStatistics
    """

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
        """The centered rows in the spectrum of the covariance; None where nothing is left."""
        eigen = self.shared.eigen_centered
        rank = eigen.rank(self.m)
        if not rank or self.shared.all_rows_equal:
            return None
        along = (self.rows - self.shared.moments.mean) @ eigen.vectors[:, :rank]
        return RowsOfSpectrum(eigen.values[:rank], along, self.m)


def take_sample(
    facts: Facts, options: Options, reader: RowReader, shared: SharedStatistics
) -> RowSample | None:
    """None where the rows are too few, or a few long ones decide whether the sample has them."""
    places = choose_rows(facts, options)
    if not len(places):
        return None
    longest = float(shared.norms.max())
    fourth = (shared.norms / longest) ** 4
    effective = float(fourth.sum()) ** 2 / float(fourth @ fourth) * len(places) / facts.m
    if effective < LEAST_EFFECTIVE:
        return None
    return RowSample(places, reader.take(facts.kept[places]), facts.m, shared)


def add_row_errors(
    values: Sequence[Value], found: Mapping[Quantity, RowError | None], places: IntArray
) -> list[Value]:
    """The values with errors over tokens, which include sampling errors, and the influences."""
    by_name = {quantity.name: error for quantity, error in found.items() if error is not None}
    changed: list[Value] = []
    influences: list[Value] = []
    for value in values:
        error = by_name.get(value.name)
        if not isinstance(value, Scalar) or value.value is None or error is None:
            changed.append(value)
            continue
        whole = float(np.hypot(error.error, value.standard_error or 0.0))
        caveats = value.caveats + (("conservative_error",) if error.conservative else ())
        changed.append(replace(value, population_error=whole, caveats=caveats))
        noise = None if error.noise is None else error.noise.astype(np.float32)
        influence = Influence.of(value.quantity, error.influence, places)
        influences.append(replace(influence, noise=noise))
    return changed + influences
