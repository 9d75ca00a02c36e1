"""A recurrent convolutional network: every token with its contexts, and the maximum over tokens."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from embgeo.training.checks import share, whole
from embgeo.training.models.embedding_model import EmbeddingModel


class Rcnn(EmbeddingModel):
    """Classes of documents from tanh(W [c_l; e; c_r]), the maximum over the tokens.

    c_l of a token is made of all tokens before it, c_r of all after it, each by a recurrent layer.
    No token is predicted: the output matrix is that of the input, so that methods on either find
    the same one. The matrix of the classes is ``classes.weight``.

    Parameters
    ----------
    n_tokens : int
        Tokens of the vocabulary, N.
    n_classes : int
    d : int
        Columns of the embedding.
    context, hidden : int
        Units of each recurrent layer, and of the layer that the maximum is taken of.
    dropout : float
        Share of the numbers of the embedded tokens that a step sets to zero.

    References
    ----------
    Lai et al., "Recurrent convolutional neural networks for text classification", AAAI 2015,
    Eq. 1–7.
    """

    NAME: ClassVar[str] = "rcnn"
    SOURCE: ClassVar[str] = "Lai et al. 2015, Eq. 1–7"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "the embedding is drawn at random, where Lai et al. begin with that of a skip-gram model",
        "dropout on the embedding, and an optimizer of Adam's kind in place of plain SGD",
        "contexts and the layer that the maximum is taken of have 100 units, and documents 100 "
        "tokens by default, where whole documents were published",
    )

    def __init__(
        self,
        n_tokens: int,
        n_classes: int = 2,
        *,
        d: int = 100,
        context: int = 100,
        hidden: int = 100,
        dropout: float = 0.5,
    ) -> None:
        super().__init__(n_tokens, d)
        units = whole("context", context)
        self.make_embedding(0.1 * torch.randn(self.n_tokens, self.d))
        self.make_decoder(None, bias=False)
        self.dropout = nn.Dropout(share("dropout", dropout))
        self.contexts = nn.RNN(self.d, units, batch_first=True, bidirectional=True)
        #: c_l of the first token and c_r of the last one.
        self.start = nn.Parameter(torch.zeros(2, units))
        self.combine = nn.Linear(self.d + 2 * units, whole("hidden", hidden))
        self.classes = nn.Linear(hidden, n_classes)

    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """Logits of the classes, shape (B, C), of documents (B, T) with `lengths` tokens each."""
        embedded = self.dropout(self.embedding(rows))
        n, longest, _ = embedded.shape
        start = self.start[:, None].expand(-1, n, -1).contiguous()
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.contexts(packed, start)[0], batch_first=True)
        before, after = states.chunk(2, dim=-1)
        place = torch.arange(longest, device=rows.device)[None, :, None]
        length = lengths.to(rows.device)[:, None, None]
        left = torch.cat([start[0][:, None], before[:, :-1]], dim=1)
        right = torch.where(place + 1 < length, after.roll(-1, dims=1), self.start[1])
        hidden = torch.tanh(self.combine(torch.cat([left, embedded, right], dim=-1)))
        logits: Tensor = self.classes(hidden.masked_fill(place >= length, -torch.inf).amax(dim=1))
        return logits
