"""Distribution of the cosine over pairs of rows, sampled or complete, and errors over tokens.

Definitions, sections 3 and 12.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.options import Options
from embgeo.core.quantities import cosine as q
from embgeo.core.values import Caveat, Histogram, Quantity, Scalar, Table, Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.row_errors import LEAST_ROWS, DrawnPairs, RowError, error_from_row_means
from embgeo.numerics.sampling import sample_rows
from embgeo.numerics.scores import quantile_error, share_error
from embgeo.stats import PairHistogram, PairSample
from embgeo.stats.block import Block
from embgeo.stats.pair_cosines import FINE_BINS
from embgeo.stats.reader import RowReader

#: Up to this many pairs every cosine is kept, and all quantiles are exact.
KEPT_PAIRS = 5_000_000
#: Rows, and entries at most, in a block of the search over all pairs.
BLOCK_ROWS = 1024
BLOCK_ENTRIES = 2**22
P = TypeVar("P", PairSample, PairHistogram)
#: At most this many rows have their means over all others formed if every pair counts: enough to
#: know an error to about 2%.
ERROR_ROWS = 1_000
#: Cosines in memory at a time.
HELD = 2**22
#: An error of the positive share that is a larger part of the share of the rarer sign is not
#: known: intervals hold in 94% at a fifth, 90 to 92% at a fourth, and 62 to 90% beyond a third.
LARGEST_OF_RARER = 0.2
LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def compute_pair_values(
    facts: Facts,
    reader: RowReader,
    shared: SharedStatistics,
    spread: tuple[float, float],
) -> tuple[list[Value], PairErrors]:
    """Compute values over all pairs or a sample of pairs, and their errors over tokens.

    `spread` is the mean and standard deviation of the cosine over all pairs.
    """
    if facts.m < 2 or facts.options.pairs == 0:
        reason = "a single row has no pairs" if facts.m < 2 else "no pairs were requested"
        return [
            quantity.undefined(reason)
            for quantity in (q.POSITIVE_SHARE, q.CONE_APERTURE, q.UNIFORMITY)
        ], PairErrors({})
    pairs = facts.pairs
    requested = facts.options.pairs
    if pairs <= (requested or 0) or (requested is None and pairs <= KEPT_PAIRS):
        errors = errors_of_all(facts, reader, *spread)
        sample = visit_all_pairs(facts, reader, PairSample())
        return summarize_sample(sample, f"all {pairs:,} pairs", exact=True), errors
    if requested is None:
        errors = errors_of_all(facts, reader, *spread)
        counted = reader.count_pairs() or visit_all_pairs(facts, reader, PairHistogram())
        return summarize_histogram(counted, f"all {pairs:,} pairs"), errors
    sample = sample_pairs(facts, reader, shared.norms, requested)
    drawn = draw_pairs(facts, requested)
    errors = errors_of_sample(drawn, sample.in_order(), facts.m, *spread)
    looked_at = f"{requested:,} of {pairs:,} pairs, drawn uniformly"
    return summarize_sample(sample, looked_at, exact=False), errors


def list_pair_rows(facts: Facts) -> IntArray:
    """List rows that `compute_pair_values` reads."""
    if facts.m < 2 or facts.options.pairs == 0:
        return NO_ROWS
    requested = facts.options.pairs
    if requested is None or facts.pairs <= requested:
        return facts.kept
    return np.asarray(facts.kept[np.unique(np.concatenate(draw_pairs(facts, requested)))])


def draw_pairs(facts: Facts, count: int) -> tuple[IntArray, IntArray]:
    """Draw positions i ≠ j among the kept rows, uniform, with replacement."""
    rng = facts.generator("pairs")
    first = rng.integers(0, facts.m, size=count)
    second = rng.integers(0, facts.m - 1, size=count)
    second += second >= first
    return first, second


def sample_pairs(facts: Facts, reader: RowReader, norms: FloatArray, count: int) -> PairSample:
    """Return the cosines of uniform pairs i ≠ j of kept rows, with replacement, in float64."""
    first, second = draw_pairs(facts, count)
    # Rows that stay in the cache, of neighboring numbers on one side.
    order, step = np.argsort(first, kind="stable"), max(1, 2**17 // facts.d)
    first, second = first[order], second[order]
    # Whether products of rows neither overflow nor vanish.
    ordinary = norms.min() > 1e-75 and norms.max() < 1e75

    def part(number: int) -> FloatArray:
        i, j = (side[number * step : (number + 1) * step] for side in (first, second))
        left, right = (reader.take(facts.kept[side]) for side in (i, j))
        if not ordinary:
            left, right = (Block(side, rows).unit for side, rows in ((i, left), (j, right)))
            return np.asarray(np.vecdot(left, right))
        return np.asarray(np.vecdot(left, right) / (norms[i] * norms[j]))

    found = list(reader.spread(part, -(-count // step)))
    cosines = np.empty(count)
    cosines[order] = np.concatenate(found)
    sample = PairSample()
    sample.add(cosines)
    return sample


def visit_all_pairs(facts: Facts, reader: RowReader, statistic: P) -> P:
    """Feed every pair i < j to a statistic, two blocks of rows at a time, on all threads."""
    step = max(64, min(BLOCK_ROWS, BLOCK_ENTRIES // facts.d))
    blocks = -(-facts.m // step)

    def rows(number: int) -> Block:
        index = facts.kept[number * step : (number + 1) * step]
        return Block(index, reader.take_stored(index))

    def against_others(number: int) -> P:
        found = statistic.blank()
        left = rows(number)
        # Each block is paired with the half of the blocks that follows it, cyclically, so that
        # all threads have the same work.
        for ahead in range(blocks // 2 + 1):
            other = (number + ahead) % blocks
            if 2 * ahead == blocks and number >= other:
                continue
            found.add_pairs(left, left if ahead == 0 else rows(other))
        return found

    for found in reader.spread(against_others, blocks, "all pairs, by blocks"):
        statistic.merge(found)
    return statistic


def summarize_sample(sample: PairSample, looked_at: str, *, exact: bool) -> list[Value]:
    """Summarize single cosines, with standard errors unless they are all cosines."""
    cosines = sample.values()
    n = len(cosines)
    positive = float(np.count_nonzero(cosines > 0)) / n
    mean_exp, exp_error = _mean_exp(cosines)
    note = "" if exact else looked_at
    low, high = _range(float(cosines[0]), float(cosines[-1]))
    counts, edges = np.histogram(cosines, bins=80, range=(low, high))
    return [
        q.POSITIVE_SHARE.measured(
            positive,
            standard_error=None if exact else share_error(positive, n),
            error_kind="monte_carlo",
            sample=note,
        ),
        measure_aperture(float(cosines[0]), looked_at, exact),
        q.UNIFORMITY.measured(
            np.log(mean_exp),
            standard_error=None if exact else exp_error / mean_exp,
            error_kind="monte_carlo",
            sample=note,
            convention="t = 2",
        ),
        Table(
            q.QUANTILES,
            ("quantile", "cosine", "standard error"),
            tuple(
                (p, float(np.quantile(cosines, p)), None if exact else quantile_error(cosines, p))
                for p in LEVELS
            ),
            note=looked_at,
        ),
        Histogram(q.HISTOGRAM, edges, counts.astype(np.float64), "cosine", "pairs", note=looked_at),
    ]


def summarize_histogram(pairs: PairHistogram, looked_at: str) -> list[Value]:
    """Summarize the cosines of every pair, with quantiles to the width of a fine bin."""
    low, high = _range(pairs.lowest, pairs.highest)
    centers = (np.arange(FINE_BINS) + 0.5) * (2.0 / FINE_BINS) - 1.0
    used = pairs.counts > 0
    counts, edges = np.histogram(
        np.clip(centers[used], low, high),
        bins=80,
        range=(low, high),
        weights=pairs.counts[used].astype(np.float64),
    )
    return [
        q.POSITIVE_SHARE.measured(pairs.positive / pairs.n),
        measure_aperture(pairs.lowest, looked_at, True),
        q.UNIFORMITY.measured(float(np.log(pairs.exp_sum / pairs.n)), convention="t = 2"),
        Table(
            q.QUANTILES,
            ("quantile", "cosine", "standard error"),
            tuple((p, pairs.quantile(p), None) for p in LEVELS),
            note=f"{looked_at}; from bins of width {2 / FINE_BINS:.1e}",
        ),
        Histogram(q.HISTOGRAM, edges, counts, "cosine", "pairs", note=looked_at),
    ]


def measure_aperture(lowest: float, looked_at: str, exact: bool) -> Scalar:
    return q.CONE_APERTURE.measured(
        float(np.degrees(np.arccos(lowest))),
        known="exact" if exact else "at_least",
        sample="" if exact else looked_at,
        convention="exact" if exact else "a lower bound: the widest of the sampled pairs",
    )


def _range(low: float, high: float) -> tuple[float, float]:
    """Return limits of the histogram: outward to twentieths, or a small margin around a point."""
    wide = (max(-1.0, np.floor(low * 20) / 20), min(1.0, np.ceil(high * 20) / 20))
    if high - low > 0.05:
        return wide
    margin = max((high - low) * 0.05, 1e-9)
    return low - margin, high + margin


def _mean_exp(cosines: FloatArray) -> tuple[float, float]:
    """Return the mean of exp(−2‖ŵ_i−ŵ_j‖²) = exp(4·cos − 4) and its standard error."""
    terms = np.exp(4.0 * cosines - 4.0)
    spread = float(terms.std(ddof=1)) if len(terms) > 1 else 0.0
    return float(terms.mean()), spread / float(np.sqrt(len(terms)))


# --- errors over tokens -------------------------------------------------------------------------


class PairErrors(NamedTuple):
    """Errors of means over all pairs, with the positions of their rows (None: all kept rows)."""

    by_quantity: Mapping[Quantity, RowError | Caveat]
    places: IntArray | None = None


TOO_FEW_ROWS = PairErrors(dict.fromkeys((q.STD, q.POSITIVE_SHARE, q.UNIFORMITY), "few_rows"))


def make_kernels(mean: float, std: float) -> dict[Quantity, Callable[[FloatArray], FloatArray]]:
    """Make the kernel of a cosine whose mean has the error of a quantity.

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


def adapt(
    quantity: Quantity, mean: float, found: RowError, drawn: float = 0.0
) -> RowError | Caveat:
    """Return the error of a quantity from that of its mean kernel, `drawn` of it by sampling.

    Intervals of share and uniformity hold what they claim for isotropic rows as well: only the
    error of the standard deviation is conservative there (docs/errors.md). Where few rows make the
    rarer sign, a draw with fewer of them has a smaller error: none is known.
    """
    if quantity is q.STD:
        return found
    if quantity is q.POSITIVE_SHARE:
        rarer = min(mean, 1.0 - mean)
        if np.hypot(found.error, drawn) >= LARGEST_OF_RARER * rarer:
            return "rare_sign"
    found = replace(found, conservative=False)
    return found.times(1.0 / mean) if quantity is q.UNIFORMITY else found


def errors_of_sample(
    pairs: tuple[IntArray, IntArray], cosines: FloatArray, m: int, mean: float, std: float
) -> PairErrors:
    """Return the errors from the cosines of drawn pairs, in the order of the pairs."""
    if m < LEAST_ROWS:
        return TOO_FEW_ROWS
    found: dict[Quantity, RowError | Caveat] = {}
    drawn = DrawnPairs(*pairs, m)
    for quantity, kernel in make_kernels(mean, std).items():
        values = kernel(cosines)
        level, error = float(values.mean()), drawn.find_error(values)
        found[quantity] = adapt(quantity, level, error, share_error(level, len(values)))
    return PairErrors(found, None if len(drawn.rows) == m else drawn.rows)


def errors_of_all(facts: Facts, reader: RowReader, mean: float, std: float) -> PairErrors:
    """Return the errors from the means of some rows over all their pairs."""
    if facts.m < LEAST_ROWS:
        return TOO_FEW_ROWS
    places = sample_rows(np.arange(facts.m), ERROR_ROWS, facts.generator("pair errors"))
    kernels = make_kernels(mean, std)
    step = max(1, HELD // facts.m)

    def average(number: int) -> FloatArray:
        """Return mean over pairs, mean square and signed mean of each kernel and row."""
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
    found: dict[Quantity, RowError | Caveat] = {}
    for quantity, (rows, squares, signed) in zip(kernels, means, strict=True):
        level = float(rows.mean())
        spread = float(np.sqrt(max(0.0, squares.mean() - level**2)))
        error = error_from_row_means(rows, level, spread, facts.m, signed)
        found[quantity] = adapt(quantity, level, error)
    return PairErrors(found, None if len(places) == facts.m else places)


def compute_cosines(facts: Facts, reader: RowReader, places: IntArray) -> FloatArray:
    """Compute the cosines of some kept rows with all of them, shape (len(places), M)."""
    unit = reader.take_unit(facts.kept[places])
    step = max(1, HELD // facts.d)
    parts = [
        unit @ reader.take_unit(facts.kept[start : start + step]).T
        for start in range(0, facts.m, step)
    ]
    return np.clip(np.hstack(parts), -1.0, 1.0)


def error_of_mean(angles: FloatArray, length: float, mean: float, std: float, m: int) -> RowError:
    """Return the error of the mean cosine of m rows, from angles of some or all rows to their mean.

    The mean cosine of a row with the others is (cos θ_i·‖Σŵ‖ − 1)/(M − 1); `length` is ‖Σŵ‖.
    """
    row_means = (np.cos(angles) * length - 1.0) / (m - 1.0)
    return error_from_row_means(row_means, mean, std, m, whole=True)


#: What the sample of pairs is for.
OF_PAIRS = (q.POSITIVE_SHARE, q.CONE_APERTURE, q.UNIFORMITY, q.QUANTILES, q.HISTOGRAM)


def skip_pairs(options: Options, names: Collection[str]) -> Options:
    """Return the options without the sample of pairs, where no name needs it."""
    needed = any(quantity.name in names for quantity in OF_PAIRS)
    return options if needed else replace(options, pairs=0)
