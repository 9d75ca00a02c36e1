"""Sampled numbers of two matrices from the same sample: the error of their difference.

Two analyses of equally many rows with the same seed look at the same pairs of tokens. What chance
there is in the choice of pairs then moves both sides alike, and largely drops out of the
difference; adding the errors of both sides would overstate it. How far such a difference is off is
learned from pairs drawn here, the same on both sides, by bootstrap.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from embgeo.comparison.bootstrap import interval, resampled_means
from embgeo.comparison.matching import Matching
from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.matrix import Matrix
from embgeo.core.quantities.cosine import POSITIVE_SHARE, UNIFORMITY
from embgeo.result.analysis import Analysis
from embgeo.stats.block import Block

#: Pairs drawn here at most: enough to know an error to a few percent.
MOST_PAIRS = 50_000


@dataclass(frozen=True, slots=True)
class PairedError:
    """How far a difference is off, where both sides share a sample.

    Attributes
    ----------
    standard_error : float
    below, above : float
        From the difference to the ends of its 95 % interval, one negative and one positive.
    note : str
    """

    standard_error: float
    below: float
    above: float
    note: str


NONE: Mapping[str, PairedError] = MappingProxyType({})


def paired_errors(
    first: Analysis, second: Analysis, matrices: tuple[Matrix, Matrix], matching: Matching
) -> Mapping[str, PairedError]:
    """For numbers over sampled pairs of rows; nothing where the samples are not the same one."""
    pairs = same_sample(first, second, matching)
    if not pairs:
        return NONE
    seed = int(first.provenance["seed"])
    drawn = draw_pairs(len(first.rows), min(pairs, MOST_PAIRS), seed)
    terms = np.hstack(
        [
            pair_terms(matrix, analysis.rows, drawn)
            for matrix, analysis in zip(matrices, (first, second), strict=True)
        ]
    )
    means = resampled_means(terms, seed)
    # Errors shrink with the root of the number of pairs.
    shrink = float(np.sqrt(len(terms) / pairs))
    found = {
        POSITIVE_SHARE.name: means[:, 2] - means[:, 0],
        UNIFORMITY.name: np.log(means[:, 3]) - np.log(means[:, 1]),
    }
    note = f"the same {pairs:,} pairs on both sides; paired bootstrap"
    return {
        name: paired(values - values.mean(), shrink, note)
        for name, values in found.items()
        # No spread at all (every pair positive on both sides) is no proof that there is none.
        if np.ptp(values) > 0
    }


def paired(replicates: FloatArray, shrink: float, note: str) -> PairedError:
    low, high = interval(replicates)
    return PairedError(shrink * float(replicates.std(ddof=1)), shrink * low, shrink * high, note)


def same_sample(first: Analysis, second: Analysis, matching: Matching) -> int:
    """Number of pairs that both analyses drew, if they are the same ones; else 0."""
    kept = len(first.rows)
    every = np.arange(kept)
    if not (
        len(second.rows) == kept
        and np.array_equal(matching.first, every)
        and np.array_equal(matching.second, every)
    ):
        return 0
    drawn = [(a.provenance.get("seed"), count_pairs(a)) for a in (first, second)]
    sampled = [(s := a.scalar(UNIFORMITY.name)) is not None and s.sample for a in (first, second)]
    return drawn[0][1] if drawn[0] == drawn[1] and all(sampled) else 0


def count_pairs(analysis: Analysis) -> int:
    return int(analysis.provenance.get("options", {}).get("pairs") or 0)


def draw_pairs(rows: int, count: int, seed: int) -> tuple[IntArray, IntArray]:
    """Uniform pairs i ≠ j, with replacement."""
    rng = np.random.default_rng([seed, zlib.crc32(b"paired errors")])
    first = rng.integers(0, rows, size=count)
    second = rng.integers(0, rows - 1, size=count)
    return first, second + (second >= first)


def pair_terms(matrix: Matrix, rows: IntArray, pairs: tuple[IntArray, IntArray]) -> FloatArray:
    """For each pair whether its cosine is positive, and exp(4·cos − 4); shape (pairs, 2)."""
    step = max(1, 2**20 // matrix.d)
    cosines = np.empty(len(pairs[0]))
    for start in range(0, len(cosines), step):
        left, right = (rows[side[start : start + step]] for side in pairs)
        units = (Block(side, matrix.take(side)).unit for side in (left, right))
        cosines[start : start + step] = np.einsum("ij,ij->i", *units)
    return np.column_stack([cosines > 0, np.exp(4.0 * np.clip(cosines, -1.0, 1.0) - 4.0)])
