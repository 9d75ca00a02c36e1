"""Cosines of the word pairs of sets of word similarity."""

from collections.abc import Sequence

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.values import format_number
from embgeo.training.data.documents import WordPairs
from embgeo.training.data.vocabulary import Vocabulary
from embgeo.training.study import word_similarity


def measure_similarity(
    W: FloatArray, vocabulary: Vocabulary, sets: Sequence[WordPairs]
) -> word_similarity.WordSimilarity:
    """Measure the cosines of all pairs of words in the vocabulary with non-zero rows.

    `W`: a row for each token of the vocabulary, shape (N, d); computed in float64.
    """
    row = vocabulary.map_rows()
    return word_similarity.WordSimilarity(
        tuple(
            word_similarity.SetCosines(
                one.name, one.gold, tuple(_cosine(W, row, *pair) for pair in one.pairs)
            )
            for one in sets
        )
    )


def _cosine(W: FloatArray, row: dict[str, int], first: str, second: str) -> float | None:
    """Return the cosine of two words; None if undefined."""
    if first not in row or second not in row:
        return None
    a, b = W[[row[first], row[second]]].astype(np.float64)
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else None


def correlate(found: word_similarity.WordSimilarity) -> dict[str, float | None]:
    """Return Spearman's ρ of each set, without pairs that have no cosine, and with 0 for them."""
    known = {one.name: word_similarity.spearman(*one.known) for one in found.sets}
    return known | {
        one.name + word_similarity.ALL: word_similarity.spearman(*one.filled) for one in found.sets
    }


def describe_intervals(found: word_similarity.WordSimilarity) -> str:
    """Describe ρ of each set with its bootstrap interval."""
    parts = []
    for one in found.sets:
        rho, interval = (
            word_similarity.spearman(*one.known),
            word_similarity.bootstrap_correlation(*one.known),
        )
        if rho is not None and interval is not None:
            low, high = (format_number(end, 2) for end in interval)
            title, n = word_similarity.SETS[one.name][0], len(one.known[1])
            parts.append(f"{title} {format_number(rho, 3)} ({low} to {high}; {n:,} pairs)")
    return f"ρ (95% over other pairs, a bootstrap): {'; '.join(parts)}"
