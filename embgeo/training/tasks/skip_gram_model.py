"""Skip-gram with negative sampling: a matrix for words and one for their neighbors."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.training.models.embedding_model import EmbeddingModel


class SkipGram(EmbeddingModel):
    """Scores u·v of a word u, a row of the embedding, and a neighbor v, a row of the output matrix.

    All rows are initially uniform in ±1/(2d).

    Parameters
    ----------
    n_tokens : int
        Tokens of the vocabulary, N.
    d : int
        Columns of both matrices.

    References
    ----------
    Mikolov et al., "Distributed representations of words and phrases and their compositionality",
    NeurIPS 2013, §2.2.
    """

    NAME: ClassVar[str] = "skip-gram"
    SOURCE: ClassVar[str] = "Mikolov et al. 2013, Eq. 4"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "all pairs of a batch share their negatives, weighted so that a pair has the published "
        "number of them in expectation; the paper draws negatives for each pair",
        "frequent words are subsampled as in the code of word2vec, (√(f/t) + 1)·t/f, not by Eq. 5",
        "a step uses the mean loss of a batch of pairs; word2vec takes a step for each pair",
        "rows of contexts are initialized like those of words; those of word2vec start at zero",
        "about 2 % of the pairs of an epoch, drawn at random, are left out",
    )

    def __init__(self, n_tokens: int, *, d: int = 100) -> None:
        super().__init__(n_tokens, d)
        self.make_embedding((torch.rand(self.n_tokens, self.d) - 0.5) / self.d)
        assert isinstance(self.embedding, nn.Embedding)
        self.embedding.sparse = True
        self.make_decoder((torch.rand(self.n_tokens, self.d) - 0.5) / self.d, bias=False)

    def contexts(self, ids: Tensor) -> Tensor:
        """Look up rows of the output matrix, with a sparse gradient."""
        weight: Any = self.decoder.weight
        return F.embedding(ids, weight, sparse=weight.is_leaf)


def sampling_loss(words: Tensor, contexts: Tensor, negatives: Tensor, number: int) -> Tensor:
    """Mean over pairs of −ln σ(u·v) − k·mean_s ln σ(−u·v_s).

    The S negatives of all pairs count k/S times each, so that a pair has k in expectation.

    `words`, `contexts`: rows u and v of the pairs, shape (B, d). `negatives`: rows v_s, shape
    (S, d). `number`: k.
    """
    near = F.softplus(-(words * contexts).sum(dim=1)).mean()
    # The gradient of a sum is one number, the gradient of a mean a whole matrix.
    far = F.softplus(words @ negatives.T).sum()
    return near + far * (number / (len(words) * len(negatives)))
