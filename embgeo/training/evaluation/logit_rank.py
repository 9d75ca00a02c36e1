"""The rank of what a language model says: one softmax cannot exceed its embedding's columns."""

from __future__ import annotations

import copy

import numpy as np
import numpy.typing as npt
import torch

from embgeo.training.evaluation.perplexity import STATEFUL_BPTT
from embgeo.training.models.language_model import LanguageModel, detach


@torch.no_grad()
def rank_log_probabilities(
    model: LanguageModel, rows: npt.NDArray[np.int64], *, bptt: int = STATEFUL_BPTT
) -> int:
    """Rank of the matrix of ln p of the first 4·(d + 2) contexts, in float64.

    A softmax of W·h + b gives d + 2 at most: the columns of W, b, and what normalizes. Singular
    values count above σ₁·ε·(the longer side), as `numpy.linalg.matrix_rank` has it.

    The model is left as it is. `rows`: the text. `bptt`: tokens of a window.

    References
    ----------
    Yang et al., "Breaking the softmax bottleneck", ICLR 2018, §2.2 and §3.3.
    """
    own = copy.deepcopy(model).to("cpu", torch.float64).eval()
    text = torch.from_numpy(rows[: 4 * (model.d + 2)]).unsqueeze(1)
    parts, state = [], None
    for window in torch.split(text, bptt):
        output = own(window, state)
        state = detach(output.state)
        parts.append(own.head(output.hidden[:, 0]).log_softmax(dim=-1))
    return int(np.linalg.matrix_rank(torch.cat(parts).numpy()))
