"""Tokens a second of llama in `embgeo train`, next to a plain model of the same size.

    python benchmarks/llama_step.py [--size tiny|cpu] [--device cpu|cuda] [--rounds K]

The peer is written with layers of torch alone: each weight of its own, positions turned as complex
numbers, `F.cross_entropy` and `torch.optim.AdamW`. Ours is the loop of `embgeo train` itself, on
random windows, also with ``training.compile``. Before any time is taken, both compute loss and
gradient of the embedding for one batch from the same weights: they have to agree. Then they take
turns as in `training_step.py`, on the same windows.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.harness.steps import Steps, compare_speed, require
from benchmarks.harness.zipf import zipf_corpus
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.loop.trainer import Trainer
from embgeo.training.settings import from_tables

PEER = "plain torch"
CLIP, RATE = 1.0, 1e-3


@dataclass(frozen=True)
class Size:
    """Of the models and of a batch."""

    n: int
    d: int
    layers: int
    heads: int
    kv_heads: int
    inner: int
    batch: int
    bptt: int


SIZES = {
    "tiny": Size(50, 16, 2, 4, 2, 24, 4, 8),
    # The preset tiny-llama-cpu.
    "cpu": Size(4_096, 128, 4, 4, 2, 352, 16, 128),
}


class PeerBlock(nn.Module):
    """A block with one weight for each use."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size, self.width = size, size.d // size.heads
        of_keys = size.kv_heads * self.width
        self.first, self.second = nn.RMSNorm(size.d, eps=1e-5), nn.RMSNorm(size.d, eps=1e-5)
        self.query = nn.Linear(size.d, size.d, bias=False)
        self.key = nn.Linear(size.d, of_keys, bias=False)
        self.value = nn.Linear(size.d, of_keys, bias=False)
        self.out = nn.Linear(size.d, size.d, bias=False)
        self.gate = nn.Linear(size.d, size.inner, bias=False)
        self.up = nn.Linear(size.d, size.inner, bias=False)
        self.down = nn.Linear(size.inner, size.d, bias=False)

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        size, normed = self.size, self.first(x)
        layers = ((self.query, size.heads), (self.key, size.kv_heads), (self.value, size.kv_heads))
        query, key, value = (
            layer(normed).unflatten(-1, (heads, self.width)).transpose(1, 2)
            for layer, heads in layers
        )
        served = size.heads // size.kv_heads
        key, value = (each.repeat_interleave(served, dim=1) for each in (turn(key, turns), value))
        seen = F.scaled_dot_product_attention(turn(query, turns), key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        normed = self.second(x)
        found: Tensor = x + self.down(F.silu(self.gate(normed)) * self.up(normed))
        return found


class Peer(nn.Module):
    """The whole model, tied."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size.n, size.d)
        self.blocks = nn.ModuleList(PeerBlock(size) for _ in range(size.layers))
        self.norm = nn.RMSNorm(size.d, eps=1e-5)
        width = size.d // size.heads
        rates = 10_000.0 ** (-torch.arange(0, width, 2) / width)
        angles = torch.outer(torch.arange(size.bptt), rates)
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Mean loss of windows of shape (T, B)."""
        states = self.embedding(inputs.T)
        for block in self.blocks:
            states = block(states, self.turns)
        logits = self.norm(states) @ self.embedding.weight.T
        return F.cross_entropy(logits.flatten(0, 1), targets.T.flatten())


def turn(x: Tensor, turns: Tensor) -> Tensor:
    """Features k and k + width/2 as one complex number, turned."""
    first, second = x.chunk(2, dim=-1)
    turned = torch.complex(first, second) * turns
    return torch.cat((turned.real, turned.imag), dim=-1)


def make_loop(size: Size, device: str, *, compiled: bool = False) -> Trainer:
    """Our loop, without weight decay."""
    model = {"d": size.d, "layers": size.layers, "heads": size.heads, "kv_heads": size.kv_heads}
    training = {"batch": size.batch, "bptt": size.bptt, "windows": "random", "clip": CLIP}
    tables: dict[str, Any] = {
        "model": {"name": "llama", "feedforward": size.inner, **model},
        "optimizer": {"kind": "adamw", "lr": RATE, "weight_decay": 0.0},
        "training": {**training, "device": device, "epochs": 1_000_000, "compile": compiled},
    }
    corpus = zipf_corpus(size.n, size.batch * (size.bptt * 8 + 1))
    return Trainer(from_tables(tables), corpus, torch.device(device), ProcessGroup())


def copy(peer: Peer, ours: Any) -> None:
    """Give the peer our weights."""
    with torch.no_grad():
        peer.embedding.weight.copy_(ours.embedding.weight)
        peer.norm.weight.copy_(ours.norm.weight)
        for theirs, block in zip(peer.blocks, ours.blocks, strict=True):
            own: Any = theirs
            parts = ((own.query, own.key, own.value), (own.gate, own.up))
            for layers, joint in zip(parts, (block.attention_in, block.inner_in), strict=True):
                sizes = [layer.out_features for layer in layers]
                for layer, weight in zip(layers, joint.weight.split(sizes), strict=True):
                    layer.weight.copy_(weight)
            own.out.weight.copy_(block.attention_out.weight)
            own.down.weight.copy_(block.inner_out.weight)


def check(size: Size, device: str) -> None:
    """Stop unless loss and gradient agree."""
    ours, theirs = make_loop(size, device), Peer(size).to(device)
    copy(theirs, ours.model)
    batch: Any = ours.batches.take()
    own, objective = ours.loss(batch)
    objective.backward()  # type: ignore[no-untyped-call]
    loss = theirs.loss(batch.inputs, batch.targets)
    loss.backward()  # type: ignore[no-untyped-call]
    require("loss", own, loss)
    found, expected = ours.model.embedding.weight.grad, theirs.embedding.weight.grad
    assert expected is not None
    require("gradient of the embedding", found, expected)


def prepare(size: Size, device: str) -> tuple[Steps, float]:
    """The peer's step and ours, and the tokens of one."""
    ours, feed, peer = (
        make_loop(size, device),
        make_loop(size, device).batches,
        Peer(size).to(device),
    )
    copy(peer, ours.model)
    fused = torch.device(device).type in ("cpu", "cuda")
    optimizer = torch.optim.AdamW(peer.parameters(), lr=RATE, weight_decay=0.0, fused=fused)

    def step() -> None:
        batch: Any = feed.take()
        optimizer.zero_grad()
        peer.loss(batch.inputs, batch.targets).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(peer.parameters(), CLIP)
        optimizer.step()

    compiled = make_loop(size, device, compiled=True)
    steps = {PEER: step, "llama": ours.step, "llama, compiled": compiled.step}
    return steps, size.batch * size.bptt


if __name__ == "__main__":
    compare_speed(__doc__, SIZES, check, prepare)
