"""The Transformer that reads a sentence and writes its translation."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.core.errors import BadOption
from embgeo.training.checks import choice, flag, share, whole
from embgeo.training.models.embedding_model import EmbeddingModel

#: Keys and values of the places of a sentence, split over the heads: each (B, heads, T, d/heads).
Places = tuple[Tensor, Tensor]
#: What a decoder block keeps: places of the source, and those of the target so far.
Kept = tuple[Places, Places]

TYINGS = ("three-way", "decoder", "none")
#: The embedding of the source in a saved model, where it is a matrix of its own.
SOURCE_TENSOR = "source.weight"


class EncoderDecoder(EmbeddingModel):
    """An encoder of the source, and a decoder that sees it and the target so far.

    The embedding is that of the target; with ``tied = "three-way"`` the source has the same one.

    Parameters
    ----------
    n_tokens : int
        Tokens of the vocabulary, N.
    n_source : int, optional
        Tokens of that of the source, where it has its own.
    d, feedforward : int
        Columns of the embedding and of all states; units of the layers inside of blocks.
    layers, heads : int
        Blocks of the encoder, and as many of the decoder; heads of each attention.
    dropout : float
        Share of numbers that a step sets to zero: of embedded tokens, attention weights, units of
        feed-forward layers, and of what each part adds.
    norm : {"before", "after"}
        Where layers are normalized: before each part, or after what it adds, as published.
    tied : {"three-way", "decoder", "none"}
        Which matrices are one: all three, those of the target and the output, or none.
    bias : bool
        Whether the output layer has a bias.

    References
    ----------
    Vaswani et al., "Attention is all you need", NeurIPS 2017, §3; Xiong et al., "On layer
    normalization in the transformer architecture", ICML 2020 (normalization before each part).
    """

    NAME: ClassVar[str] = "encoder-decoder"
    SOURCE: ClassVar[str] = "Vaswani et al. 2017, §3"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "dropout also acts on attention weights and inside of feed-forward layers, as in public "
        "code",
    )

    def __init__(
        self,
        n_tokens: int,
        n_source: int | None = None,
        *,
        d: int = 512,
        layers: int = 6,
        heads: int = 8,
        feedforward: int = 2048,
        dropout: float = 0.1,
        norm: str = "after",
        tied: str = "three-way",
        bias: bool = False,
    ) -> None:
        super().__init__(n_tokens, d)
        if d % whole("heads", heads) or d % 2:
            raise BadOption(
                f"heads is {heads}, and d is {d}", way_out="give an even d that heads divides"
            )
        choice("tied", tied, TYINGS)
        before = choice("norm", norm, ("before", "after")) == "before"
        inner, p = whole("feedforward", feedforward), share("dropout", dropout)
        self.make_embedding(self.draw_rows(self.n_tokens))
        self.source = None if tied == "three-way" else nn.Embedding(1, d, device="meta")
        if self.source is not None:
            self.source.weight = nn.Parameter(self.draw_rows(n_source or self.n_tokens))
        self.dropout = nn.Dropout(p)
        number = whole("layers", layers)
        self.encoder = nn.ModuleList(
            AttentionBlock(d, heads, inner, p, before=before, reads=False) for _ in range(number)
        )
        self.writer = nn.ModuleList(
            AttentionBlock(d, heads, inner, p, before=before, reads=True) for _ in range(number)
        )
        self.norm_source = nn.LayerNorm(d) if before else nn.Identity()
        self.norm_target = nn.LayerNorm(d) if before else nn.Identity()
        self.make_decoder(
            self.draw_rows(self.n_tokens) if tied == "none" else None, bias=flag("bias", bias)
        )

    def draw_rows(self, n: int) -> Tensor:
        """Rows with a norm of about 1, which √d multiplies where they are embedded."""
        return torch.randn(n, self.d) / math.sqrt(self.d)

    def get_source_embeddings(self) -> nn.Embedding | None:
        """The embedding of the source, where it is not that of the target."""
        return self.source

    def embedding_parameters(self) -> list[Tensor]:
        own = [] if self.source is None else [self.source.weight]
        return [*super().embedding_parameters(), *own]

    def forward(self, source: Tensor, lengths: Tensor, inputs: Tensor) -> Tensor:
        """What the output layer is applied to, shape (B, T, d), of `inputs` of shape (B, T).

        Parameters
        ----------
        source : Tensor of int64
            Shape (B, S).
        lengths : Tensor of int64
            Tokens of each source sentence; what stands behind them is not seen. Shape (B,).
        inputs : Tensor of int64
            The target behind its first token; at each place, only what stands before is seen.
        """
        seen = mask_ends(lengths, source.shape[1])
        return self.write(inputs, self.read(source, seen), seen)[0]

    def read(self, source: Tensor, seen: Tensor) -> list[Places]:
        """The source as each block of the decoder sees it; `seen` is from `mask_ends`."""
        states = self.embed(source, self.embedding if self.source is None else self.source)
        for block in self.encoder:
            states = block(states, seen)[0]
        states = self.norm_source(states)
        return [block.reading.split(states) for block in self.writer]  # type: ignore[operator]

    def write(
        self,
        inputs: Tensor,
        sources: list[Places],
        seen: Tensor,
        before: list[Places] | None = None,
    ) -> tuple[Tensor, list[Places]]:
        """States at some places of the target, and the keys and values of all places so far.

        With `before`, those of earlier places, `inputs` is the one token behind them.
        """
        start = 0 if before is None else before[0][0].shape[2]
        states = self.embed(inputs, self.embedding, start)
        kept = []
        for number, block in enumerate(self.writer):
            past = None if before is None else before[number]
            states, places = block(states, seen, sources[number], past)
            kept.append(places)
        return self.norm_target(states), kept

    def head(self, hidden: Tensor) -> Tensor:
        """Logits of shape (…, N) for states of shape (…, d)."""
        logits: Tensor = self.decoder(hidden)
        return logits

    def embed(self, rows: Tensor, embedding: nn.Module, start: int = 0) -> Tensor:
        """Embedded tokens × √d, with their places from `start` on."""
        states: Tensor = embedding(rows) * math.sqrt(self.d)
        waves = draw_waves(rows.shape[1], self.d, start, rows.device)
        dropped: Tensor = self.dropout(states + waves.to(states.dtype))
        return dropped


class AttentionBlock(nn.Module):
    """Attention to the sentence itself, to the source where it `reads`, and feed-forward layers."""

    def __init__(
        self, d: int, heads: int, inner: int, dropout: float, *, before: bool, reads: bool
    ) -> None:
        super().__init__()
        self.before, self.reads = before, reads
        self.itself = Attention(d, heads, dropout)
        if reads:
            self.reading = Attention(d, heads, dropout)
        self.inner = nn.Sequential(
            make_linear(d, inner), nn.ReLU(), nn.Dropout(dropout), make_linear(inner, d)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2 + reads))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        states: Tensor,
        seen: Tensor,
        source: Places | None = None,
        past: Places | None = None,
    ) -> tuple[Tensor, Places]:
        """States of shape (B, T, d), and keys and values of the sentence so far."""
        given = self.prepare(states, 0)
        places = self.itself.split(given)
        if past is not None:
            places = tuple(torch.cat(pair, dim=2) for pair in zip(past, places, strict=True))  # type: ignore[assignment]
        alone = self.itself(
            given,
            places,
            None if self.reads else seen,
            causal=self.reads and past is None,
        )
        states = self.add(states, alone, 0)
        if source is not None:
            read = self.reading(self.prepare(states, 1), source, seen)
            states = self.add(states, read, 1)
        last = len(self.norms) - 1
        return self.add(states, self.inner(self.prepare(states, last)), last), places

    def prepare(self, states: Tensor, part: int) -> Tensor:
        """What a part is given."""
        found: Tensor = self.norms[part](states) if self.before else states
        return found

    def add(self, states: Tensor, found: Tensor, part: int) -> Tensor:
        """The states with what a part made of them."""
        states = states + self.dropout(found)
        return states if self.before else self.norms[part](states)


class Attention(nn.Module):
    """Attention with several heads."""

    def __init__(self, d: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.p = heads, dropout
        self.query, self.key, self.value, self.out = (
            make_linear(d, d, bias=False) for _ in range(4)
        )

    def split(self, states: Tensor) -> Places:
        """Keys and values of states."""
        return self.divide(self.key(states)), self.divide(self.value(states))

    def divide(self, states: Tensor) -> Tensor:
        """Shape (B, T, d) as (B, heads, T, d/heads)."""
        return states.view(*states.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(
        self, states: Tensor, places: Places, seen: Tensor | None, *, causal: bool = False
    ) -> Tensor:
        """What the states see of the places; `seen` says which, or all and none behind."""
        found = F.scaled_dot_product_attention(
            self.divide(self.query(states)),
            *places,
            attn_mask=seen,
            dropout_p=self.p if self.training else 0.0,
            is_causal=causal,
        )
        out: Tensor = self.out(found.transpose(1, 2).flatten(2))
        return out


def mask_ends(lengths: Tensor, longest: int) -> Tensor:
    """Whether a place is inside of its sentence, for each; shape (B, 1, 1, T)."""
    inside: Tensor = torch.arange(longest, device=lengths.device) < lengths[:, None]
    return inside[:, None, None]


def draw_waves(length: int, d: int, start: int, device: torch.device) -> Tensor:
    """Sines (even columns) and cosines (odd ones) of places from `start` on; shape (length, d)."""
    k = torch.arange(0, d, 2, device=device, dtype=torch.float32)
    places = torch.arange(start, start + length, device=device, dtype=torch.float32)
    angles = torch.outer(places, 10_000.0 ** (-k / d))
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def make_linear(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """A layer with weights by Glorot, and a bias of zeros if it has one."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
