"""A Transformer language model with causal attention."""

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.core.errors import BadOption
from embgeo.training.checks import choice, flag, require, share, whole
from embgeo.training.methods.weights import make_linear
from embgeo.training.models.language_model import LanguageModel, Output

#: Standard deviation of initial weights.
SPREAD = 0.02
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": F.gelu, "relu": F.relu}


class Transformer(LanguageModel):
    """Blocks of causal attention and a feed-forward layer, each with a LayerNorm.

    A window does not see the windows before it.

    Parameters
    ----------
    d : int
        Columns of the embedding, and features of all blocks.
    layers : int
        Blocks of attention and feed-forward layer.
    heads : int
        A divisor of d; with rotary positions, d/heads is even.
    feedforward : int, optional
        Units of the feed-forward layers; 4·d by default.
    dropout : float
        Dropout of embedded tokens, attention weights, and outputs of attention and feed-forward
        layers.
    norm : {"before", "after"}
        Whether to normalize before each layer, or after each addition as Vaswani et al. do.
    positions : {"learned", "rotary", "sinusoidal"}
        "sinusoidal" as Vaswani et al.: rows of a norm of about 1, multiplied by √d.
    context : int
        The number of learned positions, which limits windows; other positions have no limit.
    activation : {"gelu", "relu"}
        Of the feed-forward layers: GELU as Radford et al., or ReLU as Vaswani et al.
    n_tokens, embedding_dropout, tied, bias
        See :class:`LanguageModel`.

    References
    ----------
    Vaswani et al., "Attention is all you need", NeurIPS 2017; Radford et al., "Language models are
    unsupervised multitask learners", 2019; Su et al., "RoFormer: enhanced transformer with rotary
    position embedding", 2021.
    """

    NAME: ClassVar[str] = "transformer"
    SOURCE: ClassVar[str] = (
        "Vaswani et al. 2017, with the start and, by default, the order, positions and activation "
        "of Radford et al. 2019"
    )
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "a window does not see the windows before it, so that its first tokens have little context",
    )
    CARRIES_STATE: ClassVar[bool] = False

    def __init__(
        self,
        n_tokens: int,
        *,
        d: int = 256,
        layers: int = 4,
        heads: int = 4,
        feedforward: int | None = None,
        dropout: float = 0.1,
        embedding_dropout: float = 0.0,
        norm: str = "before",
        positions: str = "learned",
        context: int = 512,
        activation: str = "gelu",
        tied: bool = True,
        bias: bool = False,
    ) -> None:
        super().__init__(n_tokens, d, embedding_dropout=embedding_dropout)
        self.dropout = share("dropout", dropout)
        self.context = whole("context", context)
        choice("positions", positions, ("learned", "rotary", "sinusoidal"))
        before = choice("norm", norm, ("before", "after")) == "before"
        self.head_width = check_heads(d, heads, rotary=positions == "rotary")
        self.rotary, waves = positions == "rotary", positions == "sinusoidal"
        require("d", d, not (waves and d % 2), "give an even number for sinusoidal positions")
        self.scale = d**0.5 if waves else 1.0
        spread = d**-0.5 if waves else SPREAD
        inner = 4 * d if feedforward is None else whole("feedforward", feedforward)
        activate = ACTIVATIONS[choice("activation", activation, ACTIVATIONS)]
        self.make_embedding(normal(n_tokens, d, spread))
        learned = positions == "learned"
        self.positions = nn.Parameter(normal(context, d)) if learned else None
        self.longest = context if learned else None
        blocks = whole("layers", layers)
        self.blocks = nn.ModuleList(
            TransformerBlock(d, heads, inner, dropout, blocks, activate, before=before)
            for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(d) if before else nn.Identity()
        rows = None if flag("tied", tied) else normal(n_tokens, d, spread)
        self.make_decoder(rows, bias=bias)

    def embedding_parameters(self) -> list[Tensor]:
        learned = [] if self.positions is None else [self.positions]
        return [*super().embedding_parameters(), *learned]

    def layers_of(self, rows: Tensor, state: None) -> Output:  # noqa: ARG002
        states = rows.transpose(0, 1) * self.scale
        length = states.shape[1]
        turns: tuple[Tensor, Tensor] | None = None
        if self.rotary:
            turns = rotations(length, self.head_width, states.device)
        elif self.positions is None:
            states = states + encode_places(length, self.d, 0, states.device).to(states.dtype)
        else:
            if length > self.context:
                raise BadOption(
                    f"a window of {length} tokens, and {self.context} learned positions",
                    way_out="make context larger, windows shorter, or positions rotary",
                )
            states = states + self.positions[:length]
        states = F.dropout(states, self.dropout, self.training)
        for block in self.blocks:
            states = block(states, turns)
        found = self.norm(states).transpose(0, 1).contiguous()
        return Output(found, found, None)


class TransformerBlock(nn.Module):
    """x + attention(norm(x)), and then x + feed-forward(norm(x)); shape (B, T, d).

    Without `before` norm(x + attention(x)), and then norm(x + feed-forward(x)).
    """

    def __init__(
        self,
        d: int,
        heads: int,
        inner: int,
        dropout: float,
        blocks: int,
        activate: Callable[[Tensor], Tensor],
        *,
        before: bool,
    ) -> None:
        super().__init__()
        self.before, self.activate = before, activate
        self.heads, self.dropout = heads, dropout
        # All blocks add to the same states: the more blocks, the smaller their initial weights.
        added = SPREAD * (2 * blocks) ** -0.5
        self.norm_attention = nn.LayerNorm(d)
        self.attention_in = linear(d, 3 * d, SPREAD)
        self.attention_out = linear(d, d, added)
        self.norm_inner = nn.LayerNorm(d)
        self.inner_in = linear(d, inner, SPREAD)
        self.inner_out = linear(inner, d, added)

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor] | None) -> Tensor:
        given = self.norm_attention(x) if self.before else x
        x = self.add(x, self.attention(given, turns), self.norm_attention)
        given = self.norm_inner(x) if self.before else x
        return self.add(x, self.inner_out(self.activate(self.inner_in(given))), self.norm_inner)

    def add(self, x: Tensor, found: Tensor, norm: nn.Module) -> Tensor:
        x = x + F.dropout(found, self.dropout, self.training)
        return x if self.before else norm(x)

    def attention(self, x: Tensor, turns: tuple[Tensor, Tensor] | None) -> Tensor:
        batch, length, d = x.shape
        split = self.attention_in(x).view(batch, length, 3, self.heads, d // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind()
        if turns is not None:
            query, key = rotated(query, *turns), rotated(key, *turns)
        p = self.dropout if self.training else 0.0
        seen = F.scaled_dot_product_attention(query, key, value, dropout_p=p, is_causal=True)
        found: Tensor = self.attention_out(seen.transpose(1, 2).reshape(batch, length, d))
        return found


def check_heads(d: int, heads: int, *, rotary: bool) -> int:
    """Return the number of features of a head; `BadOption` if the heads do not divide d."""
    if d % whole("heads", heads) or (rotary and d // heads % 2):
        even = " into even numbers" if rotary else ""
        raise BadOption(f"heads is {heads}", way_out=f"give a number that divides {d}{even}")
    return d // heads


def rotations(length: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of the angles of `compute_angles` at times 0 to T − 1."""
    angles = compute_angles(torch.arange(length, device=device, dtype=torch.float32), width)
    return angles.cos(), angles.sin()


def compute_angles(times: Tensor, width: int) -> Tensor:
    """Compute the angles t·10000^(−2k/width) of sinusoids (Vaswani et al.), shape (T, width/2)."""
    k = torch.arange(0, width, 2, device=times.device, dtype=torch.float32)
    return torch.outer(times, 10_000.0 ** (-k / width))


def encode_places(length: int, d: int, start: int, device: torch.device) -> Tensor:
    """Return the sines (even columns) and cosines (odd ones) of places from `start` on.

    Shape (length, d).
    """
    places = torch.arange(start, start + length, device=device, dtype=torch.float32)
    angles = compute_angles(places, d)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def rotated(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotate feature k of both halves by the k-th angle; shape (…, T, width)."""
    first, second = x.chunk(2, dim=-1)
    turned = torch.cat((first * cosines - second * sines, second * cosines + first * sines), dim=-1)
    return turned.to(x.dtype)


def linear(inputs: int, outputs: int, spread: float, *, bias: bool = True) -> nn.Linear:
    """Return a layer with normal weights and, optionally, a zero bias."""
    return make_linear(normal(outputs, inputs, spread), torch.zeros(outputs) if bias else None)


def normal(rows: int, columns: int, spread: float = SPREAD) -> Tensor:
    return torch.empty(rows, columns).normal_(std=spread)
