"""What all Transformers share: attention, feed-forward layers, how both are added, positions."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.training.methods.weights import make_linear

#: Standard deviation of initial weights.
SPREAD = 0.02


class Block(nn.Module):
    """Attention, then a feed-forward layer, each added to the states; shape (B, T, d).

    `reading`: attention to something else, between both.
    """

    def __init__(
        self,
        attention: nn.Module,
        inner: nn.Module,
        dropout: float,
        *,
        norm: Callable[[], nn.Module],
        before: bool = True,
        reading: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.attention = Added(attention, norm(), dropout, before=before)
        self.inner = Added(inner, norm(), dropout, before=before)
        self.reading = None
        if reading is not None:
            self.reading = Added(reading, norm(), dropout, before=before)

    def forward(self, x: Tensor, *seen: Any, read: Sequence[Any] = ()) -> Tensor:
        """`seen`, `read`: the further arguments of the attention and of `reading`."""
        x = self.attention(x, *seen)
        if self.reading is not None:
            x = self.reading(x, *read)
        found: Tensor = self.inner(x)
        return found


class Added(nn.Module):
    """x + layer(norm(x)), or without `before` norm(x + layer(x))."""

    def __init__(self, layer: nn.Module, norm: nn.Module, dropout: float, *, before: bool) -> None:
        super().__init__()
        self.dropout, self.before = dropout, before
        if before:
            self.norm, self.layer = norm, layer
        else:  # in this order, by which clipping adds the norms of gradients
            self.layer, self.norm = layer, norm

    def forward(self, x: Tensor, *seen: Any) -> Tensor:
        found = self.layer(self.norm(x) if self.before else x, *seen)
        x = x + F.dropout(found, self.dropout, self.training)
        return x if self.before else self.norm(x)


class FeedForward(nn.Module):
    """out(activate(in(x))), with dropout of the units between."""

    def __init__(
        self,
        layers: tuple[nn.Linear, nn.Linear],
        activate: Callable[[Tensor], Tensor],
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.inward, self.outward = layers
        self.activate, self.dropout = activate, dropout

    def forward(self, x: Tensor) -> Tensor:
        units = F.dropout(self.activate(self.inward(x)), self.dropout, self.training)
        found: Tensor = self.outward(units)
        return found


class Attention(nn.Module):
    """Attention in heads of `width` features; subclasses make queries, keys and values."""

    out: nn.Linear

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.width, self.dropout = width, dropout

    def divide(self, x: Tensor) -> Tensor:
        """Split features, shape (B, T, heads·width), over the heads: (B, heads, T, width)."""
        return x.view(*x.shape[:2], -1, self.width).transpose(1, 2)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        causal: bool = False,
    ) -> Tensor:
        """Return out(softmax(q·k/√width)·v), shape (B, T, d)."""
        p = self.dropout if self.training else 0.0
        seen = F.scaled_dot_product_attention(query, key, value, mask, p, causal)
        found: Tensor = self.out(seen.transpose(1, 2).flatten(2))
        return found


class CausalAttention(Attention):
    """Attention of each place to itself and those before it.

    `kv_heads`: heads of keys and values, each for several heads of queries. `spread`: of the
    initial weights of the last layer.
    """

    def __init__(
        self, d: int, heads: int, kv_heads: int, dropout: float, *, spread: float, bias: bool
    ) -> None:
        super().__init__(d // heads, dropout)
        self.sizes = [heads, kv_heads, kv_heads]
        self.inward = linear(d, sum(self.sizes) * self.width, bias=bias)
        self.out = linear(d, d, spread, bias=bias)

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """`turns`: the cosines and sines of `rotations`."""
        split = self.inward(x).view(*x.shape[:2], -1, self.width)
        # Split before heads come before places: the gradients are then joined without a copy.
        query, key, value = (part.transpose(1, 2) for part in torch.split(split, self.sizes, dim=2))
        if turns is not None:
            query, key = rotated(query, *turns), rotated(key, *turns)
        served = query.shape[1] // key.shape[1]
        if served > 1:
            key, value = (each.repeat_interleave(served, dim=1) for each in (key, value))
        return self.attend(query, key, value, causal=True)


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


def linear(inputs: int, outputs: int, spread: float = SPREAD, *, bias: bool = True) -> nn.Linear:
    """Return a layer with normal weights and, optionally, a zero bias."""
    return make_linear(normal(outputs, inputs, spread), torch.zeros(outputs) if bias else None)


def pair(
    d: int, units: int, spread: float = SPREAD, *, gates: int = 1, bias: bool = True
) -> tuple[nn.Linear, nn.Linear]:
    """Return the layers of a feed-forward layer of `units`, each of which reads `gates` inputs."""
    return linear(d, gates * units, bias=bias), linear(units, d, spread, bias=bias)


def normal(rows: int, columns: int, spread: float = SPREAD) -> Tensor:
    return torch.empty(rows, columns).normal_(std=spread)
