"""A text to train on that nobody wrote."""

from __future__ import annotations

import numpy as np

from embgeo.training.data import Corpus, Vocabulary


def zipf_corpus(types: int, length: int) -> Corpus:
    """Tokens drawn by Zipf's law: the k-th of `types` is 1/k as frequent as the first."""
    counts = (1e6 / np.arange(1, types + 1)).round().astype(np.int64)
    rows = np.random.default_rng(0).choice(types, length, p=counts / counts.sum())
    names = tuple(f"w{row}" for row in range(types))
    vocabulary = Vocabulary(names, counts, unknown=None, end=None)
    return Corpus("drawn", vocabulary, rows, rows, None, "stream", (), {})
