"""Tokens a second of Transformer-XL in `embgeo train`, next to a plain one of the same size.

    python benchmarks/xl_step.py [--size tiny|cpu] [--device cpu|cuda] [--rounds K]

The peer is written with layers of torch alone, as the paper has it: both products of attention as
matrices of their own, added, masked and put through a softmax; `F.cross_entropy` and
`torch.optim.Adam`. Ours is the loop of `embgeo train` itself. Before any time is taken, both
take two steps without dropout from the same weights, large ones, the second with the memory of the
first: losses and embeddings have to agree. Then they take turns as in `training_step.py`.
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
CLIP, RATE = 0.25, 1e-3


@dataclass(frozen=True)
class Size:
    """Of the models and of a batch."""

    n: int
    d: int
    layers: int
    heads: int
    inner: int
    batch: int
    bptt: int


SIZES = {
    "tiny": Size(50, 8, 2, 2, 12, 3, 4),
    # The preset xl-cpu.
    "cpu": Size(5_000, 128, 2, 4, 512, 20, 32),
}


class PeerBlock(nn.Module):
    """One layer; names are those of ours, so that weights can be copied."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        d = size.d
        self.heads = size.heads
        self.query, self.distance = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.key_value = nn.Linear(d, 2 * d, bias=False)
        self.attention_out = nn.Linear(d, d, bias=False)
        self.norm_attention, self.norm_inner = nn.LayerNorm(d), nn.LayerNorm(d)
        self.inner_in, self.inner_out = nn.Linear(d, size.inner), nn.Linear(size.inner, d)

    def forward(
        self, x: Tensor, memory: Tensor, places: Tensor, biases: tuple[Tensor, Tensor], p: float
    ) -> Tensor:
        def drop(states: Tensor) -> Tensor:
            return F.dropout(states, p, self.training)

        def split(states: Tensor) -> Tensor:
            return states.unflatten(-1, (self.heads, -1))

        context = torch.cat((memory, x), dim=1)
        length, total = x.shape[1], context.shape[1]
        query = split(self.query(x))
        key, value = (split(part) for part in self.key_value(context).chunk(2, dim=-1))
        of_content, of_distance = (bias.view(self.heads, -1) for bias in biases)
        content = torch.einsum("bthw,bjhw->bhtj", query + of_content, key)
        by_place = torch.einsum("bthw,jhw->bhtj", query + of_distance, split(self.distance(places)))
        # Column j of `by_place` holds the distance total − 1 − j.
        rows, columns = torch.arange(length).unsqueeze(1), torch.arange(total)
        distance = (total - length + rows - columns).to(x.device)
        index = (total - 1 - distance).clamp(0, total - 1).expand_as(content)
        scores = (content + by_place.gather(-1, index)) * query.shape[-1] ** -0.5
        seen = scores.masked_fill(distance < 0, -torch.inf).softmax(dim=-1)
        attended = torch.einsum("bhtj,bjhw->bthw", seen, value).flatten(2)
        x = self.norm_attention(x + drop(self.attention_out(attended)))
        inner = drop(F.relu(self.inner_in(x)))
        found: Tensor = self.norm_inner(x + drop(self.inner_out(inner)))
        return found


class Peer(nn.Module):
    """The whole model, tied, with a memory of one window."""

    def __init__(self, size: Size, dropout: float) -> None:
        super().__init__()
        self.size, self.p = size, dropout
        self.embedding = nn.Embedding(size.n, size.d)
        self.content_bias = nn.Parameter(torch.zeros(size.d))
        self.distance_bias = nn.Parameter(torch.zeros(size.d))
        self.blocks = nn.ModuleList(PeerBlock(size) for _ in range(size.layers))
        self.decoder = nn.Linear(size.d, size.n)
        self.decoder.weight = self.embedding.weight

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.p, self.training)

    def forward(
        self, inputs: Tensor, targets: Tensor, memory: list[Tensor] | None
    ) -> tuple[Tensor, list[Tensor]]:
        """Mean loss of a window of shape (T, B), and the memory for the next."""
        x = self.drop(self.embedding(inputs.T) * self.size.d**0.5)
        memory = memory or [x[:, :0]] * self.size.layers
        distances = torch.arange(memory[0].shape[1] + len(inputs) - 1, -1, -1.0, device=x.device)
        k = torch.arange(0, self.size.d, 2, device=x.device)
        angles = torch.outer(distances, 10_000.0 ** (-k / self.size.d))
        places = self.drop(torch.cat((angles.sin(), angles.cos()), dim=-1))
        kept = []
        for block, before in zip(self.blocks, memory, strict=True):
            kept.append(x.detach())
            x = block(x, before, places, (self.content_bias, self.distance_bias), self.p)
        logits = self.decoder(self.drop(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.T.flatten()), kept


class Plain:
    """The peer's training, a step at a time, on the batches of a loop of ours."""

    def __init__(self, size: Size, device: str, dropout: float) -> None:
        ours = make_loop(size, device, dropout)
        self.batches = ours.batches
        self.model = Peer(size, dropout).to(device)
        self.model.load_state_dict(ours.model.state_dict())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=RATE, fused=True)
        self.memory: list[Tensor] | None = None

    def step(self) -> Tensor:
        batch: Any = self.batches.take()
        self.optimizer.zero_grad()
        memory = None if batch.first else self.memory
        loss, self.memory = self.model(batch.inputs, batch.targets, memory)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        return loss.detach()


def make_loop(size: Size, device: str, dropout: float) -> Trainer:
    """Our loop."""
    model = {"d": size.d, "layers": size.layers, "heads": size.heads, "feedforward": size.inner}
    tables: dict[str, Any] = {
        "model": {"name": "transformer-xl", "memory": size.bptt, "dropout": dropout, **model},
        "optimizer": {"kind": "adam", "lr": RATE, "weight_decay": 0.0},
        "training": {
            "batch": size.batch,
            "bptt": size.bptt,
            "clip": CLIP,
            "device": device,
            "epochs": 1_000_000,
        },
    }
    corpus = zipf_corpus(size.n, size.batch * (size.bptt * 8 + 1))
    return Trainer(from_tables(tables), corpus, torch.device(device), ProcessGroup())


def check(size: Size, device: str) -> None:
    """Stop unless losses and weights agree in two steps without dropout."""
    ours, theirs = make_loop(size, device, 0.0), Plain(size, device, 0.0)
    for parameter in ours.model.parameters():  # at the start, layers hardly count
        nn.init.normal_(parameter, std=0.3)
    theirs.model.load_state_dict(ours.model.state_dict())
    for _ in range(2):
        require("loss", ours.step().loss, theirs.step())
    require("embedding", ours.model.embedding.weight, theirs.model.embedding.weight)


def prepare(size: Size, device: str) -> tuple[Steps, float]:
    """The peer's step and ours, and the tokens of one."""
    plain, ours = Plain(size, device, 0.1), make_loop(size, device, 0.1)
    return {PEER: plain.step, "Transformer-XL": ours.step}, size.batch * size.bptt


if __name__ == "__main__":
    compare_speed(__doc__, SIZES, check, prepare)
