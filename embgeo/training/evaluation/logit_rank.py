"""The rank of the log-probabilities of a language model, which a single softmax bounds."""

from __future__ import annotations

import copy

import numpy as np
import torch

from embgeo.core.arrays import IntArray
from embgeo.training.evaluation.perplexity import STATEFUL_BPTT, read_windows
from embgeo.training.models.language_model import LanguageModel


@torch.no_grad()
def rank_log_probabilities(
    model: LanguageModel, rows: IntArray, *, bptt: int = STATEFUL_BPTT
) -> int:
    """Rank of the matrix of ln p of the first 4·(d + 2) contexts, in float64.

    A softmax of W·h + b has rank d + 2 at most: the columns of W, b, and the normalizer. Singular
    values count above σ₁·ε·(the longer side), as in `numpy.linalg.matrix_rank`.

    `rows`: the text. `bptt`: tokens of a window.

    References
    ----------
    Yang et al., "Breaking the softmax bottleneck", ICLR 2018, §2.2 and §3.3.
    """
    own = copy.deepcopy(model).to("cpu", torch.float64).eval()
    windows = torch.split(torch.from_numpy(rows[: 4 * (model.d + 2)]).unsqueeze(1), bptt)
    parts = [
        own.head(output.hidden[:, 0]).log_softmax(dim=-1)
        for output, _ in read_windows(own, zip(windows, windows, strict=True))
    ]
    return int(np.linalg.matrix_rank(torch.cat(parts).numpy()))
