"""Word vectors of gensim, known by what they offer: every generation of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.matrix import Frequency
from embgeo.io.bounded.small_files import safe_text
from embgeo.io.labels.counts_file import from_rank
from embgeo.io.memory.held import HeldMatrix


def find_matrix(W: Any) -> HeldMatrix | None:
    """Of KeyedVectors, or of a model that holds them as ``wv``."""
    vectors = getattr(W, "wv", W)
    rows = getattr(vectors, "vectors", None)
    words = getattr(vectors, "index_to_key", None) or getattr(vectors, "index2word", None)
    if not isinstance(rows, np.ndarray) or not isinstance(words, list):
        return None
    rows = rows[: len(words)]  # Doc2Vec and FastText may hold more
    return HeldMatrix(
        rows,
        name="vectors",
        tokens=tuple(safe_text(str(word)) for word in words),
        frequency=frequency(vectors, words),
        format="gensim vectors",
    )


def frequency(vectors: Any, words: list[Any]) -> Frequency | None:
    """Counts of the training corpus, or what gensim puts in their place."""
    counts = counts_of(vectors, words)
    if counts is None or not np.isfinite(counts).all() or (counts < 0).any() or not counts.any():
        return None
    # Files without counts are given N, N−1, …, 1: only the order means something.
    if np.array_equal(counts, np.arange(len(words), 0, -1)):
        return from_rank(len(words))
    return Frequency("counts", counts, "counts in the gensim vectors")


def counts_of(vectors: Any, words: list[Any]) -> npt.NDArray[np.float64] | None:
    stored = getattr(vectors, "expandos", {}).get("count")
    if stored is None:
        old = getattr(vectors, "__dict__", {}).get("vocab")  # gensim before 4
        if not isinstance(old, dict):
            return None
        stored = [getattr(old.get(word), "count", -1) for word in words]
    counts = np.asarray(stored, dtype=np.float64)
    return counts if counts.shape == (len(words),) else None
