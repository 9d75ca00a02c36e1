"""A recurrent convolutional network for classes of documents."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from embgeo.training.checks import share, whole
from embgeo.training.models.embedding_model import EmbeddingModel


class Rcnn(EmbeddingModel):
    """Classes of documents from tanh(W [c_l; e; c_r]), the maximum over the tokens.

    Recurrent layers compute c_l of a token from all tokens before it, and c_r from all after it. As
    no token is predicted, the output matrix is the input embedding, so that methods on either act
    on the same matrix. The matrix of the classes is ``classes.weight``.

    Parameters
    ----------
    n_tokens : int
        Tokens of the vocabulary, N.
    n_classes : int
    d : int
        Columns of the embedding.
    context, hidden : int
        Units of each recurrent layer, and of the layer before the maximum.
    dropout : float
        Dropout of embedded tokens.

    References
    ----------
    Lai et al., "Recurrent convolutional neural networks for text classification", AAAI 2015,
    Eq. 1–7.
    """

    NAME: ClassVar[str] = "rcnn"
    SOURCE: ClassVar[str] = "Lai et al. 2015, Eq. 1–7"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "the embedding is drawn at random; Lai et al. start from that of a skip-gram model",
        "dropout on the embedding, and a variant of Adam in place of plain SGD",
        "contexts and the layer before the maximum have 100 units; documents are cut after 100 "
        "tokens by default, where the paper reads whole documents",
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
        self.left, self.right = nn.RNN(self.d, units), nn.RNN(self.d, units)
        #: c_l of the first token and c_r of the last one.
        self.start = nn.Parameter(torch.zeros(2, units))
        self.combine = nn.Linear(self.d + 2 * units, whole("hidden", hidden))
        self.classes = nn.Linear(hidden, n_classes)

    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """Logits of the classes, shape (B, C), of documents (B, T) with `lengths` tokens each."""
        x = self.dropout(self.embedding(rows)).transpose(0, 1)
        place = torch.arange(len(x), device=rows.device)[:, None]
        length = lengths.to(rows.device)
        first, last = self.start[:, None].expand(-1, len(rows), -1).contiguous()
        # Whole batches, the second time of mirrored documents, take half of the time of packed
        # sequences. States after the end of a document are not used.
        mirrored = torch.where(place < length, length - 1 - place, place)
        before = self.left(x, first[None])[0]
        after = mirror(self.right(mirror(x, mirrored), last[None])[0], mirrored)
        left = torch.cat([first[None], before[:-1]])
        right = torch.where((place + 1 < length)[:, :, None], after.roll(-1, dims=0), last)
        hidden = torch.tanh(self.combine(torch.cat([left, x, right], dim=-1)))
        behind = (place >= length)[:, :, None]
        logits: Tensor = self.classes(hidden.masked_fill(behind, -torch.inf).amax(dim=0))
        return logits


def mirror(x: Tensor, places: Tensor) -> Tensor:
    """Gather states, shape (T, B, d), from other places, shape (T, B)."""
    return x.gather(0, places[:, :, None].expand(-1, -1, x.shape[2]))
