"""Errors over tokens of numbers over pairs of rows (definitions, section 12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import cosine as q
from embgeo.core.values import Quantity
from embgeo.metrics.facts import Facts
from embgeo.numerics.pair_errors import LEAST_ROWS, DrawnPairs, error_from_row_means
from embgeo.numerics.row_errors import RowError
from embgeo.numerics.sampling import sample_rows
from embgeo.stats.reader import RowReader

#: At most this many rows have their means over all others formed if every pair counts: enough to
#: know an error to about 2 %.
ROWS = 1_000
#: Cosines in memory at a time.
HELD = 2**22


class PairErrors(NamedTuple):
    """Errors of means over all pairs, with the positions of their rows (None: all kept rows)."""

    by_quantity: Mapping[Quantity, RowError]
    places: IntArray | None = None


def make_kernels(mean: float, std: float) -> dict[Quantity, Callable[[FloatArray], FloatArray]]:
    """The kernel of a cosine whose mean has the error of a quantity.

    The uniformity is the log of a mean and the standard deviation the root of one. To first order
    their errors are those of exp(4·cos − 4) divided by its mean, which the caller divides by, and
    of (cos − mean)²/(2·std).
    """
    kernels: dict[Quantity, Callable[[FloatArray], FloatArray]] = {
        q.POSITIVE_SHARE: lambda cosines: (cosines > 0).astype(np.float64),
        q.UNIFORMITY: lambda cosines: np.exp(4.0 * cosines - 4.0),
    }
    if std > 0.0:
        kernels[q.STD] = lambda cosines: np.square(cosines - mean) / (2.0 * std)
    return kernels


def adapt(quantity: Quantity, mean: float, found: RowError) -> RowError:
    """The error of a quantity from that of its mean kernel.

    Intervals of share and uniformity hold what they claim for isotropic rows as well: only the
    error of the standard deviation is conservative there (docs/errors.md).
    """
    if quantity is q.STD:
        return found
    found = replace(found, conservative=False)
    return found.times(1.0 / mean) if quantity is q.UNIFORMITY else found


def errors_of_sample(
    pairs: tuple[IntArray, IntArray], cosines: FloatArray, m: int, mean: float, std: float
) -> PairErrors:
    """Errors from the cosines of drawn pairs, in the order of the pairs."""
    if m < LEAST_ROWS:
        return PairErrors({})
    found, drawn = {}, DrawnPairs(*pairs, m)
    for quantity, kernel in make_kernels(mean, std).items():
        values = kernel(cosines)
        found[quantity] = adapt(quantity, float(values.mean()), drawn.find_error(values))
    return PairErrors(found, None if len(drawn.rows) == m else drawn.rows)


def errors_of_all(facts: Facts, reader: RowReader, mean: float, std: float) -> PairErrors:
    """Errors from the means of some rows over all their pairs."""
    if facts.m < LEAST_ROWS:
        return PairErrors({})
    places = sample_rows(np.arange(facts.m), ROWS, facts.generator("pair errors"))
    kernels = make_kernels(mean, std)
    step = max(1, HELD // facts.m)

    def average(number: int) -> FloatArray:
        """For each kernel and row: its mean over pairs, mean square and signed mean."""
        part = places[number * step : (number + 1) * step]
        cosines = compute_cosines(facts, reader, part)
        drawn = facts.generator(f"pair signs {number}").integers(0, 2, cosines.shape)
        signs = 2.0 * drawn - 1.0
        means = []
        for kernel in kernels.values():
            values = kernel(cosines)
            values[np.arange(len(part)), part] = 0.0
            sums = values.sum(axis=1)
            signed = np.vecdot(values - sums[:, None] / facts.m, signs)
            means.append([sums, np.vecdot(values, values), signed])
        return np.asarray(means) / (facts.m - 1.0)

    means = np.concatenate(list(reader.spread(average, -(-len(places) // step))), axis=2)
    found = {}
    for quantity, (rows, squares, signed) in zip(kernels, means, strict=True):
        level = float(rows.mean())
        spread = float(np.sqrt(max(0.0, squares.mean() - level**2)))
        error = error_from_row_means(rows, level, spread, facts.m, signed)
        found[quantity] = adapt(quantity, level, error)
    return PairErrors(found, None if len(places) == facts.m else places)


def compute_cosines(facts: Facts, reader: RowReader, places: IntArray) -> FloatArray:
    """Cosines of some kept rows with all of them, shape (len(places), M)."""
    unit = reader.take_unit(facts.kept[places])
    step = max(1, HELD // facts.d)
    parts = [
        unit @ reader.take_unit(facts.kept[start : start + step]).T
        for start in range(0, facts.m, step)
    ]
    return np.clip(np.hstack(parts), -1.0, 1.0)


def error_of_mean(angles: FloatArray, length: float, mean: float, std: float, m: int) -> RowError:
    """The error of the mean cosine of m rows, from angles of some or all rows to their mean.

    The mean cosine of a row with the others is (cos θ_i·‖Σŵ‖ − 1)/(M − 1); `length` is ‖Σŵ‖.
    """
    return error_from_row_means((np.cos(angles) * length - 1.0) / (m - 1.0), mean, std, m)
