"""The unigram model: each token as often as in the training split, whatever stands before it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption


def log_unigram(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """ln p(token) of the unigram model.

    p(w) = max(c_w, 1) / Σ_v max(c_v, 1): relative frequencies, where a token that does not occur in
    the training split (some rows of a tokenizer) counts as one that occurs once, so that every
    token is possible.

    `counts`: of the tokens in the training split; shape (N,). The result has shape (N,); exp of it
    sums to 1.
    """
    raised = np.maximum(np.asarray(counts, dtype=np.float64), 1.0)
    return np.asarray(np.log(raised) - np.log(raised.sum()))


def unigram_perplexity(counts: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> float:
    """Perplexity of the unigram model over the tokens that a language model predicts.

    A language model that is not below it has learned less than the frequencies of the tokens.

    `counts`: of the tokens in the training split; shape (N,). `rows`: the split; shape (n,). All
    tokens but the first count, as for a model's perplexity.
    """
    if len(rows) < 2:
        raise BadOption(
            f"{len(rows)} tokens hold none to predict", way_out="give a split with more text"
        )
    return math.exp(-log_unigram(counts)[rows[1:]].mean())
