"""Cosines of the word pairs of sets of word similarity, and their correlations with ratings."""

from collections.abc import Sequence

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.values import format_number
from embgeo.numerics.scores import spearman
from embgeo.training.data.documents import WordPairs
from embgeo.training.data.vocabulary import Vocabulary
from embgeo.training.study.numbers import ALL, SETS
from embgeo.training.study.outcomes import LEAST_PAIRS, Outcomes, draw_scores
from embgeo.training.study.spread import take_percentiles


def measure_similarity(
    W: FloatArray, vocabulary: Vocabulary, sets: Sequence[WordPairs]
) -> Outcomes:
    """Measure the cosines of all pairs of words in the vocabulary with non-zero rows.

    `W`: a row for each token of the vocabulary, shape (N, d); computed in float64.
    """
    row = vocabulary.map_rows()
    pairs = tuple(
        (place, gold, find_cosine(W, row, *words))
        for place, one in enumerate(sets)
        for words, gold in zip(one.pairs, one.gold, strict=True)
    )
    return Outcomes("pairs", "test", pairs, names=tuple(one.name for one in sets))


def find_cosine(W: FloatArray, row: dict[str, int], first: str, second: str) -> float | None:
    """Return the cosine of two words; None if undefined."""
    if first not in row or second not in row:
        return None
    a, b = W[[row[first], row[second]]].astype(np.float64)
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else None


def correlate(found: Outcomes) -> dict[str, float | None]:
    """Return Spearman's ρ of each set, without pairs that have no cosine, and with 0 for them."""
    scores = (*found.names, *(name + ALL for name in found.names))
    return {
        score: correlate_pairs(pairs)
        for score in scores
        if (pairs := found.select(score)) is not None
    }


def correlate_pairs(pairs: FloatArray) -> float | None:
    """Return Spearman's ρ of two columns; None for few pairs or a constant column."""
    rho = float(spearman(*pairs.T)) if len(pairs) >= LEAST_PAIRS else np.nan
    return None if np.isnan(rho) else rho


def describe_intervals(found: Outcomes) -> str:
    """Describe ρ of each set with its interval over other pairs of words, by a bootstrap."""
    parts = []
    for name in found.names:
        pairs = found.select(name)
        if pairs is None or (rho := correlate_pairs(pairs)) is None:
            continue
        drawn = draw_scores(found, name)
        low, high = (format_number(end, 2) for end in take_percentiles(drawn[np.isfinite(drawn)]))
        shown = f"{format_number(rho, 3)} ({low} to {high}; {len(pairs):,} pairs)"
        parts.append(f"{SETS[name][0]} {shown}")
    return f"ρ (95% over other pairs, a bootstrap): {'; '.join(parts)}"
