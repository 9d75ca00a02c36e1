"""Transformer-XL: attention by distance over the window and a memory of earlier windows."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.training import components
from embgeo.training.models import blocks
from embgeo.training.models.blocks import linear, normal
from embgeo.training.models.language_model import LanguageModel, Output
from embgeo.training.registry import take

#: The inputs of each block for the tokens of the memory, shape (B, M, d).
Memory = tuple[Tensor, ...]


class TransformerXL(LanguageModel):
    """Blocks of attention by content and distance, normalized after each addition.

    Settings are those of `embgeo.training.components.TransformerXL`.

    Attributes
    ----------
    clamp : int or None
        The largest distance; longer ones count as this one.
    same_length : bool
        Whether each token sees at most as many tokens as the memory holds, so that all have the
        same context.

    References
    ----------
    Dai et al., "Transformer-XL: attentive language models beyond a fixed-length context", ACL 2019,
    section 3 and the code at github.com/kimiyoung/transformer-xl.
    """

    NAME: ClassVar[str] = "transformer-xl"
    SETTINGS = components.TransformerXL
    SOURCE: ClassVar[str] = "Dai et al. 2019"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "a full softmax with one matrix in place of the adaptive softmax with cut-offs, in which "
        "rows of rare tokens have other gradients",
    )
    WINDOWED: ClassVar[bool] = True

    def __init__(self, n_tokens: int, **settings: Any) -> None:
        own: components.TransformerXL = take(self, settings)
        d, heads = own.d, own.heads
        super().__init__(n_tokens, d)
        self.dropout, self.memory = own.dropout, own.memory
        self.clamp: int | None = None
        self.same_length = False
        inner = own.feedforward or 4 * d
        self.make_embedding(normal(n_tokens, d))
        # Parameters of one dimension are biases, without weight decay.
        self.content_bias = nn.Parameter(normal(heads, d // heads).flatten())
        self.distance_bias = nn.Parameter(normal(heads, d // heads).flatten())
        self.blocks = nn.ModuleList(
            blocks.Block(
                RelativeAttention(d, heads),
                blocks.FeedForward(blocks.pair(d, inner), F.relu, self.dropout),
                self.dropout,
                norm=partial(nn.LayerNorm, d),
                before=False,
            )
            for _ in range(own.layers)
        )
        self.make_decoder(None if own.tied else normal(n_tokens, d), bias=own.bias)

    def layers_of(self, rows: Tensor, state: Memory | None) -> Output:
        states = self.drop(rows.transpose(0, 1) * self.d**0.5)
        memory = state or tuple(states[:, :0] for _ in self.blocks)
        length, before = states.shape[1], memory[0].shape[1]
        times = torch.arange(before + length - 1, -1, -1.0, device=states.device)
        angles = blocks.compute_angles(times.clamp(max=self.clamp or math.inf), self.d)
        distances = self.drop(torch.cat((angles.sin(), angles.cos()), dim=-1).to(states.dtype))
        longest = max(1, self.memory) if self.same_length else None
        hidden = hide(length, before, longest, states.device)
        biases = self.content_bias, self.distance_bias
        kept = []
        for block, seen in zip(self.blocks, memory, strict=True):
            context = torch.cat((seen, states), dim=1)
            kept.append(context[:, max(0, before + length - self.memory) :].detach())
            states = block(states, context, distances, biases, hidden)
        found = self.drop(states).transpose(0, 1).contiguous()
        return Output(found, states.transpose(0, 1), tuple(kept))

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)

    @contextmanager
    def reading(
        self, memory: int | None, clamp: int | None, *, same_length: bool
    ) -> Iterator[None]:
        """Evaluate with these settings inside the block; `memory` of None keeps the present one.

        A model that was trained without a memory is evaluated without one.
        """
        before = self.memory, self.clamp, self.same_length
        self.memory = self.memory if memory is None or self.memory == 0 else memory
        self.clamp, self.same_length = clamp, same_length and self.memory > 0
        try:
            yield
        finally:
            self.memory, self.clamp, self.same_length = before


class RelativeAttention(blocks.Attention):
    """softmax of ((q + u)·k + (q + v)·r)/√width over the context (Dai et al., §3.3)."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__(d // heads, 0.0)
        self.query = linear(d, d, bias=False)
        self.key_value = linear(d, 2 * d, bias=False)
        self.distance = linear(d, d, bias=False)
        self.out = linear(d, d, bias=False)

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        distances: Tensor,
        biases: tuple[Tensor, Tensor],
        hidden: Tensor,
    ) -> Tensor:
        split = (-1, self.width)
        query = self.query(x).unflatten(-1, split)
        key, value = map(self.divide, self.key_value(context).chunk(2, dim=-1))
        distance = self.distance(distances).unflatten(-1, split)
        content_bias, distance_bias = (bias.view(split) for bias in biases)
        by_distance = torch.einsum("bthw,jhw->bhtj", query + distance_bias, distance)
        scores = shift(by_distance) * self.width**-0.5
        mask = scores.masked_fill(hidden, -torch.inf)
        return self.attend((query + content_bias).transpose(1, 2), key, value, mask)


def shift(scores: Tensor) -> Tensor:
    """Move scores from columns of distances to columns of tokens; shape (B, H, T, L).

    Column j holds distance L − 1 − j before, and the distance (L − T + t) − j of token j in row t
    after; columns of later tokens are arbitrary.
    """
    batch, heads, length, context = scores.shape
    padded = F.pad(scores, (1, 0)).view(batch, heads, context + 1, length)
    return padded[:, :, 1:].view(batch, heads, length, context)


def hide(length: int, before: int, longest: int | None, device: torch.device) -> Tensor:
    """Mask later tokens, and all but the last `longest` ones; shape (T, before + T)."""
    places = torch.arange(before + length, device=device)
    distance = (before + torch.arange(length, device=device)).unsqueeze(1) - places
    found = distance < 0
    return found if longest is None else found | (distance >= longest)
