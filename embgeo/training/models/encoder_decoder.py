"""What models of translation share, and the encoder-decoder Transformer."""

import math
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.training import components
from embgeo.training.methods.weights import make_embedding
from embgeo.training.models.blocks import (
    Attention,
    Block,
    FeedForward,
    encode_places,
)
from embgeo.training.models.language_model import EmbeddingModel
from embgeo.training.registry import take

#: Two tensors with a row for each sentence. Of the Transformer: keys and values of its places,
#: split over the heads, each (B, heads, T, d/heads).
Places = tuple[Tensor, Tensor]

#: The source embedding of a saved model with one of its own.
SOURCE_TENSOR = "source.weight"


class TranslationModel(EmbeddingModel):
    """An encoder of the source, and a decoder that attends to it and writes the target.

    ``embedding`` belongs to the target, and with ``tied = "three-way"`` also to the source.
    """

    def make_embeddings(self, n_source: int | None, tied: str) -> None:
        """Make the embedding of the target and, unless it is shared, that of the source."""
        self.make_embedding(self.draw_rows(self.n_tokens))
        self.source: nn.Module | None = None
        if tied != "three-way":
            self.source = make_embedding(self.draw_rows(n_source or self.n_tokens))

    def make_output(self, tied: str, *, bias: bool) -> None:
        """Make the output layer, tied to the embedding of the target unless `tied` is "none"."""
        self.make_decoder(self.draw_rows(self.n_tokens) if tied == "none" else None, bias=bias)

    def draw_rows(self, n: int) -> Tensor:
        """Draw the rows of an embedding or of the output layer."""
        raise NotImplementedError

    def get_source_embeddings(self) -> nn.Module | None:
        """Return the embedding of the source, if it has its own."""
        return self.source

    def embedding_parameters(self) -> list[Tensor]:
        own = [] if self.source is None else list(self.source.parameters())
        return [*super().embedding_parameters(), *own]

    def forward(self, source: Tensor, lengths: Tensor, inputs: Tensor) -> Tensor:
        """Return the input of the output layer, shape (B, T, d).

        `source`: shape (B, S). `lengths`: tokens of each source sentence; later ones are masked.
        `inputs`: the target so far, shape (B, T); no place sees later ones.
        """
        seen = mask_ends(lengths, source.shape[1])
        return self.write(inputs, self.read(source, seen), seen)[0]

    def read(self, source: Tensor, seen: Tensor) -> list[Places]:
        """Compute what `write` needs of the source, shape (B, S); `seen` as of `mask_ends`."""
        raise NotImplementedError

    def write(
        self,
        inputs: Tensor,
        sources: list[Places],
        seen: Tensor,
        before: list[Places] | None = None,
    ) -> tuple[Tensor, list[Places]]:
        """Compute the states of the target, shape (B, T, d), and what later tokens need of them.

        With `before`, what is needed of earlier tokens, `inputs` is the one token after them.
        """
        raise NotImplementedError


class EncoderDecoder(TranslationModel):
    """The Transformer for translation.

    Parameters
    ----------
    n_tokens : int
        Tokens of the vocabulary, N.
    n_source : int, optional
        Tokens of the vocabulary of the source, if it has its own.
    settings
        Those of `embgeo.training.components.EncoderDecoder`.

    References
    ----------
    Vaswani et al., "Attention is all you need", NeurIPS 2017, §3; Xiong et al., "On layer
    normalization in the transformer architecture", ICML 2020 (normalization before each part).
    """

    NAME: ClassVar[str] = "encoder-decoder"
    SETTINGS = components.EncoderDecoder
    SOURCE: ClassVar[str] = "Vaswani et al. 2017, §3"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "dropout also acts on attention weights and inside feed-forward layers, as in public code",
    )

    def __init__(self, n_tokens: int, n_source: int | None = None, **settings: Any) -> None:
        own: components.EncoderDecoder = take(self, settings)
        d, heads, inner, p = own.d, own.heads, own.feedforward, own.dropout
        super().__init__(n_tokens, d)
        before = own.norm == "before"
        self.make_embeddings(n_source, own.tied)
        self.dropout = nn.Dropout(p)

        def make_block(*, reads: bool) -> Block:
            itself = PlacesAttention(d, heads, p)
            reading = PlacesAttention(d, heads, p) if reads else None
            feed = FeedForward((make_linear(d, inner), make_linear(inner, d)), F.relu, p)
            norm = partial(nn.LayerNorm, d)
            return Block(itself, feed, p, norm=norm, before=before, reading=reading)

        self.encoder = nn.ModuleList(make_block(reads=False) for _ in range(own.layers))
        self.writer = nn.ModuleList(make_block(reads=True) for _ in range(own.layers))
        self.norm_source = nn.LayerNorm(d) if before else nn.Identity()
        self.norm_target = nn.LayerNorm(d) if before else nn.Identity()
        self.make_output(own.tied, bias=own.bias)

    def draw_rows(self, n: int) -> Tensor:
        """Draw rows of a norm of about 1, which `embed` multiplies by √d."""
        return torch.randn(n, self.d) / math.sqrt(self.d)

    def read(self, source: Tensor, seen: Tensor) -> list[Places]:
        """Compute keys and values of the source for each block."""
        states = self.embed(source, self.embedding if self.source is None else self.source)
        for block in self.encoder:
            states = block(states, seen)
        states = self.norm_source(states)
        return [block.reading.layer.split(states) for block in self.writer]  # type: ignore[union-attr,operator]

    def write(
        self,
        inputs: Tensor,
        sources: list[Places],
        seen: Tensor,
        before: list[Places] | None = None,
    ) -> tuple[Tensor, list[Places]]:
        """Compute the states of the target, and its keys and values in each block."""
        start = 0 if before is None else before[0][0].shape[2]
        states = self.embed(inputs, self.embedding, start)
        kept: list[Places] = []
        for number, block in enumerate(self.writer):
            past = None if before is None else before[number]
            states = block(states, None, None, past, kept, read=(seen, sources[number]))
        return self.norm_target(states), kept

    def embed(self, rows: Tensor, embedding: nn.Module, start: int = 0) -> Tensor:
        """Return embedded tokens × √d plus the encoding of their places, which begin at `start`."""
        states: Tensor = embedding(rows) * math.sqrt(self.d)
        waves = encode_places(rows.shape[1], self.d, start, rows.device)
        dropped: Tensor = self.dropout(states + waves.to(states.dtype))
        return dropped


class PlacesAttention(Attention):
    """Attention to keys and values that can be kept."""

    def __init__(self, d: int, heads: int, dropout: float) -> None:
        super().__init__(d // heads, dropout)
        self.query, self.key, self.value, self.out = (
            make_linear(d, d, bias=False) for _ in range(4)
        )

    def split(self, states: Tensor) -> Places:
        """Return the keys and values of states."""
        return self.divide(self.key(states)), self.divide(self.value(states))

    def forward(
        self,
        states: Tensor,
        seen: Tensor | None,
        source: Places | None = None,
        past: Places | None = None,
        kept: list[Places] | None = None,
    ) -> Tensor:
        """Attend to the places of `source`, or of the states themselves and of `past` before them.

        `seen`: mask of the places; without it, none is later. `kept` gets the places of the states.
        """
        places = self.split(states) if source is None else source
        if past is not None:
            places = torch.cat((past[0], places[0]), dim=2), torch.cat((past[1], places[1]), dim=2)
        if kept is not None:
            kept.append(places)
        causal = seen is None and past is None
        return self.attend(self.divide(self.query(states)), *places, seen, causal=causal)


def mask_ends(lengths: Tensor, longest: int) -> Tensor:
    """Return the places inside their sentences; shape (B, 1, 1, T)."""
    inside: Tensor = torch.arange(longest, device=lengths.device) < lengths[:, None]
    return inside[:, None, None]


def make_linear(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """Make a layer with Glorot weights and, optionally, a zero bias."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
