"""A network of two convolutions, whose output layer has a row for each class."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from embgeo.training.checks import flag, share, whole
from embgeo.training.models.embedding_model import EmbeddingModel


class Cnn(EmbeddingModel):
    """Classes of images: two convolutions of 5 × 5, each with a maximum over 2 × 2, and two layers.

    The softmax over classes is of h·Wᵀ (+ b). W, shape (C, d), takes the place of the embedding of
    other models: methods act on it, and reports measure it.

    Parameters
    ----------
    n_tokens : int
        Classes, C.
    shape : tuple of two int
        Rows and columns of an image.
    d : int
        Units of the layer before the softmax.
    filters : int
        Filters of the first convolution; the second has twice as many.
    dropout : float
        Dropout of these units.
    bias : bool
        Whether the softmax has a bias.

    References
    ----------
    LeCun et al., "Gradient-based learning applied to document recognition", 1998, §II, for layers
    of this kind; Gao et al. 2019, §3.1, do not give the sizes of theirs.
    """

    NAME: ClassVar[str] = "cnn"
    SOURCE: ClassVar[str] = "Gao et al. 2019, §3.1 (a two-layer convolutional network)"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "the paper does not give the sizes of its network: here 32 and 64 filters of 5 × 5, and a "
        "layer of 128 units before the softmax, which has no bias",
    )

    def __init__(
        self,
        n_tokens: int,
        shape: tuple[int, int] = (28, 28),
        *,
        d: int = 128,
        filters: int = 32,
        dropout: float = 0.0,
        bias: bool = False,
    ) -> None:
        super().__init__(n_tokens, d)
        self.shape, n = shape, whole("filters", filters)
        self.make_embedding((2.0 * torch.rand(self.n_tokens, self.d) - 1.0) / math.sqrt(self.d))
        self.make_decoder(None, bias=flag("bias", bias))
        # Channels last is faster on a CPU; see benchmarks/README.md.
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, n, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(n, 2 * n, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.combine = nn.Linear(2 * n * (shape[0] // 4) * (shape[1] // 4), self.d)
        self.dropout = nn.Dropout(share("dropout", dropout))

    def forward(self, pixels: Tensor, _lengths: Tensor) -> Tensor:
        """Logits of the classes, shape (B, C), of gray values from 0 to 255, shape (B, H·W)."""
        gray = pixels.to(self.combine.weight.dtype).view(-1, 1, *self.shape) / 255.0
        hidden = torch.relu(self.combine(self.convolutions(gray).flatten(1)))
        logits: Tensor = self.decoder(self.dropout(hidden))
        return logits
