"""How far numbers over pairs of rows would move with other tokens (definitions, section 12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.options import Options
from embgeo.core.quantities import cosine as q
from embgeo.core.values import Caveat, Influence, Quantity
from embgeo.metrics.facts import Facts
from embgeo.numerics.pair_errors import (
    LEAST_ROWS,
    DrawnPairs,
    PairError,
    error_from_row_means,
)
from embgeo.numerics.sampling import generator, sample_rows
from embgeo.stats.reader import RowReader

#: Where every pair counts, rows whose means over all others are formed for the errors, at most:
#: enough to know an error to about 2 %.
ROWS = 1_000
#: Cosines that are held at a time.
HELD = 2**22


@dataclass(frozen=True, slots=True)
class PairErrors:
    """Errors over tokens of numbers that are means of a kernel over all pairs, by quantity.

    Attributes
    ----------
    by_name : dict of str to PairError
    rows : int array or None
        Places among the kept rows of those that were looked at; None: all.
    """

    by_name: dict[str, PairError]
    rows: IntArray | None = None

    def caveats(self, quantity: Quantity) -> tuple[Caveat, ...]:
        return list_caveats(self.by_name.get(quantity.name))

    def error(self, quantity: Quantity, sampling: float = 0.0) -> float | None:
        """With the sampling error of a mean over some of the pairs."""
        found = self.by_name.get(quantity.name)
        return None if found is None else float(np.hypot(found.error, sampling))

    def influences(self) -> list[Influence]:
        """For differences of two matrices."""
        quantities = (q.POSITIVE_SHARE, q.UNIFORMITY, q.STD)
        return [
            Influence(
                quantity,
                found.influence.astype(np.float32),
                self.rows,
                None if found.noise is None else found.noise.astype(np.float32),
            )
            for quantity in quantities
            if (found := self.by_name.get(quantity.name)) is not None
        ]


def list_caveats(found: PairError | None) -> tuple[Caveat, ...]:
    return ("conservative_error",) if found is not None and found.conservative else ()


def make_kernels(mean: float, std: float) -> dict[str, Callable[[FloatArray], FloatArray]]:
    """By quantity: what of a cosine its mean is over, divided so that errors are its own.

    The uniformity is the log of a mean, the standard deviation the root of one: to first order
    their errors are those of exp(4·cos − 4) over its mean, which the caller divides by, and of
    (cos − mean)²/(2·std).
    """
    kernels: dict[str, Callable[[FloatArray], FloatArray]] = {
        q.POSITIVE_SHARE.name: lambda cosines: (cosines > 0).astype(np.float64),
        q.UNIFORMITY.name: lambda cosines: np.exp(4.0 * cosines - 4.0),
    }
    if std > 0.0:
        kernels[q.STD.name] = lambda cosines: np.square(cosines - mean) / (2.0 * std)
    return kernels


def scale(name: str, mean: float, found: PairError) -> PairError:
    """The error of a log from that of the mean."""
    if name != q.UNIFORMITY.name:
        return found
    noise = None if found.noise is None else found.noise / mean
    return replace(found, error=found.error / mean, influence=found.influence / mean, noise=noise)


def errors_of_sample(
    pairs: tuple[IntArray, IntArray], cosines: FloatArray, m: int, mean: float, std: float
) -> PairErrors:
    """From the cosines of drawn pairs, in the order of the pairs."""
    if m < LEAST_ROWS:
        return PairErrors({})
    found, drawn = {}, DrawnPairs(*pairs, m)
    for name, kernel in make_kernels(mean, std).items():
        values = kernel(cosines)
        found[name] = scale(name, float(values.mean()), drawn.find_error(values))
    return PairErrors(found, None if len(drawn.rows) == m else drawn.rows)


def errors_of_all(
    facts: Facts, options: Options, reader: RowReader, mean: float, std: float
) -> PairErrors:
    """From the means of some rows over all pairs that they are part of."""
    if facts.m < LEAST_ROWS:
        return PairErrors({})
    places = sample_rows(np.arange(facts.m), ROWS, generator(options.seed, "pair errors"))
    kernels = make_kernels(mean, std)
    step = max(1, HELD // facts.m)

    def average(number: int) -> FloatArray:
        """Of each kernel over the pairs of a row: mean, that of its square, signed mean."""
        part = places[number * step : (number + 1) * step]
        cosines = compute_cosines(facts, reader, part)
        drawn = generator(options.seed, f"pair signs {number}").integers(0, 2, cosines.shape)
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
    for name, (rows, squares, signed) in zip(kernels, means, strict=True):
        level = float(rows.mean())
        spread = float(np.sqrt(max(0.0, squares.mean() - level**2)))
        error = error_from_row_means(rows, level, spread, facts.m, signed)
        found[name] = scale(name, level, error)
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


def errors_of_mean(
    angles: FloatArray, length: float, mean: float, std: float, m: int
) -> PairError | None:
    """Of the mean cosine, from the angles of some or all rows to their mean direction.

    The mean cosine of a row with the others is (cos θ_i·‖Σŵ‖ − 1)/(M − 1).

    Parameters
    ----------
    angles : float64 array, shape (r,)
        In radians; of all m rows or of a uniform sample of them.
    length : float
        ‖Σŵ‖.
    mean, std : float
        Of the cosine over all pairs.
    m : int
        Rows.
    """
    if m < LEAST_ROWS:
        return None
    row_means = (np.cos(angles) * length - 1.0) / (m - 1.0)
    return error_from_row_means(row_means, mean, std, m)
