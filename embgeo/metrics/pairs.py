"""Distribution of the cosine over pairs of rows, sampled or complete (definitions, section 3)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TypeVar

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.options import Options
from embgeo.core.quantities import cosine as q
from embgeo.core.values import Histogram, Scalar, Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.halves import GROUPS, sum_halves
from embgeo.numerics.scores import share_error
from embgeo.stats import PairHistogram, PairSample
from embgeo.stats.block import Block
from embgeo.stats.pair_cosines import FINE_BINS
from embgeo.stats.reader import RowReader

#: Up to this many pairs every cosine is kept, and all quantiles are exact.
KEPT_PAIRS = 5_000_000
#: Pairs in the sample of halves, where all pairs are visited.
PAIRS_OF_HALVES = 100_000
#: Rows, and entries at most, in a block of the search over all pairs.
BLOCK_ROWS = 1024
BLOCK_ENTRIES = 2**22
P = TypeVar("P", PairSample, PairHistogram)


def compute_pair_values(
    facts: Facts, reader: RowReader, shared: SharedStatistics
) -> tuple[list[Value], FloatArray | None]:
    """Compute values over all pairs or a sample of pairs, and return the cosines of a sample."""
    if facts.m < 2 or facts.options.pairs == 0:
        reason = "a single row has no pairs" if facts.m < 2 else "no pairs were requested"
        return [one.undefined(reason) for one in (q.POSITIVE_SHARE, q.CONE_APERTURE)], None
    pairs = facts.pairs
    requested = facts.options.pairs
    if pairs <= (requested or 0) or (requested is None and pairs <= KEPT_PAIRS):
        sample = visit_all_pairs(facts, reader, PairSample())
        return summarize_sample(sample, f"all {pairs:,} pairs", exact=True), None
    if requested is None:
        counted = reader.count_pairs() or visit_all_pairs(facts, reader, PairHistogram())
        return summarize_histogram(counted, f"all {pairs:,} pairs"), None
    sample = PairSample()
    drawn = sample_cosines(facts, reader, shared.norms, requested)
    sample.add(drawn)
    looked_at = f"{requested:,} of {pairs:,} pairs, drawn uniformly"
    return summarize_sample(sample, looked_at, exact=False), drawn


def list_pair_rows(facts: Facts) -> IntArray:
    """List rows that `compute_pair_values` reads."""
    if facts.m < 2 or facts.options.pairs == 0:
        return NO_ROWS
    requested = facts.options.pairs
    if requested is None or facts.pairs <= requested:
        return facts.kept
    return np.asarray(facts.kept[np.unique(np.concatenate(draw_pairs(facts, requested)))])


def measure_positive_halves(
    facts: Facts, reader: RowReader, norms: FloatArray, drawn: FloatArray | None
) -> FloatArray | None:
    """Measure the share of positive cosines in each half, to first order, from a sample of pairs.

    A pair counts for each of its two rows: in a half with rows of a share p the share of all pairs
    changes by twice p less its mean. `drawn`: the cosines of the sample, if there is one.
    """
    if facts.kept_groups is None or facts.m < 2 or facts.options.pairs == 0:
        return None
    count = facts.options.pairs or PAIRS_OF_HALVES
    cosines = sample_cosines(facts, reader, norms, count) if drawn is None else drawn
    positive = cosines > 0.0
    labels = facts.kept_groups[np.concatenate(draw_pairs(facts, count))]
    of_groups = [np.bincount(labels, w, GROUPS) for w in (None, np.tile(positive, 2))]
    n, found = (sum_halves(np.asarray(sums, dtype=np.float64)) for sums in of_groups)
    share = float(positive.mean())
    return share + 2.0 * (found / n - share)


def draw_pairs(facts: Facts, count: int) -> tuple[IntArray, IntArray]:
    """Draw positions i ≠ j among the kept rows, uniform, with replacement."""
    rng = facts.generator("pairs")
    first = rng.integers(0, facts.m, size=count)
    second = rng.integers(0, facts.m - 1, size=count)
    second += second >= first
    return first, second


def sample_cosines(facts: Facts, reader: RowReader, norms: FloatArray, count: int) -> FloatArray:
    """Return the cosines of uniform pairs i ≠ j of kept rows, with replacement, in float64."""
    first, second = draw_pairs(facts, count)
    # Rows that stay in the cache, of neighboring numbers on one side.
    order, step = np.argsort(first, kind="stable"), max(1, 2**16 // facts.d)
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
    return cosines


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
        Histogram(q.HISTOGRAM, edges, counts.astype(np.float64), "cosine", "pairs", note=looked_at),
    ]


def summarize_histogram(pairs: PairHistogram, looked_at: str) -> list[Value]:
    """Summarize the cosines of every pair."""
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


#: What the sample of pairs is for.
OF_PAIRS = (q.POSITIVE_SHARE, q.CONE_APERTURE, q.HISTOGRAM)


def skip_pairs(options: Options, names: Collection[str]) -> Options:
    """Return the options without the sample of pairs, where no name needs it."""
    needed = any(quantity.name in names for quantity in OF_PAIRS)
    return options if needed else replace(options, pairs=0)
