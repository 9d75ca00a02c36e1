"""Sampled numbers of two matrices from the same sample: the error of their difference.

Two analyses of equally many rows with the same seed look at the same pairs of tokens. What chance
there is in the choice of pairs then moves both sides alike, and largely drops out of the
difference; adding the errors of both sides would overstate it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from embgeo.compare.bootstrap import interval, resampled_means
from embgeo.compare.comparison import Matching
from embgeo.matrix import Matrix
from embgeo.metrics.base import Options
from embgeo.metrics.pairs import POSITIVE_SHARE, UNIFORMITY, drawn_pairs
from embgeo.passes import Progress, Run
from embgeo.result import Analysis
from embgeo.stats.base import FloatArray

NONE: Mapping[str, Paired] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Paired:
    """The error of a difference, from a sample that both sides share."""

    standard_error: float
    interval: tuple[float, float]
    note: str


def paired_errors(
    first: Analysis, second: Analysis, matrices: tuple[Matrix, Matrix], matching: Matching
) -> Mapping[str, Paired]:
    """For numbers over sampled pairs of rows; nothing where the samples are not the same one.

    Parameters
    ----------
    first, second : Analysis
    matrices : tuple of two Matrix
    matching : Matching
    """
    pairs = same_sample(first, second, matching)
    if not pairs:
        return NONE
    sides = [
        pair_terms(analysis, matrix, pairs)
        for analysis, matrix in zip((first, second), matrices, strict=True)
    ]
    note = f"paired bootstrap over the same {pairs:,} pairs on both sides"
    means = resampled_means(np.hstack(sides), int(first.provenance["seed"]))
    differences = {
        POSITIVE_SHARE.name: means[:, 2] - means[:, 0],
        UNIFORMITY.name: np.log(means[:, 3]) - np.log(means[:, 1]),
    }
    return {
        name: Paired(float(values.std(ddof=1)), interval(values), note)
        for name, values in differences.items()
        # No spread at all (every pair positive on both sides) is no proof that there is none.
        if np.ptp(values) > 0
    }


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
    drawn = [(a.provenance.get("seed"), chosen_pairs(a)) for a in (first, second)]
    sampled = [(s := a.scalar(UNIFORMITY.name)) is not None and s.sample for a in (first, second)]
    return drawn[0][1] if drawn[0] == drawn[1] and all(sampled) else 0


def chosen_pairs(analysis: Analysis) -> int:
    return int(analysis.provenance.get("options", {}).get("pairs") or 0)


def pair_terms(analysis: Analysis, matrix: Matrix, pairs: int) -> FloatArray:
    """For each pair that the analysis drew: whether its cosine is positive, and exp(4·cos − 4)."""
    options = Options(seed=int(analysis.provenance["seed"]), pairs=pairs)
    context = replace(Run(matrix, options, Progress()).context, kept=analysis.rows)
    cosines = np.concatenate(
        [
            np.einsum("ij,ij->i", context.unit_rows(i), context.unit_rows(j))
            for i, j in drawn_pairs(context, pairs)
        ]
    )
    return np.column_stack([cosines > 0, np.exp(4.0 * np.clip(cosines, -1.0, 1.0) - 4.0)])
