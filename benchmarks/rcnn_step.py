"""Documents a second of the RCNN in `embgeo train`, next to plain torch.

    python benchmarks/rcnn_step.py [--size tiny|cpu] [--device cpu|cuda] [--rounds K]

The peer has a recurrent layer for each direction that walks over the places of a batch one after
the other and masks those behind the end of a document, `F.cross_entropy` and `torch.optim.Adam`.
Ours is the loop of `embgeo train` itself. Before any time is taken, both compute loss and gradient
of the embedding of one batch from the same weights without dropout: they have to agree. Then they
take turns as in `training_step.py`, on the same documents.
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

import numpy as np

from benchmarks.harness.steps import Steps, compare_speed, require
from benchmarks.harness.zipf import zipf_corpus
from embgeo.training.data.labeled_corpus import LabeledCorpus, LabeledDocuments
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.loop.trainer import Trainer
from embgeo.training.settings import from_tables

PEER = "plain torch"
CLASSES, DROPOUT, RATE = 4, 0.5, 1e-3


@dataclass(frozen=True)
class Size:
    """Of the model and of a batch of documents with `length` tokens at most, and half at least."""

    n: int
    d: int
    batch: int
    length: int


SIZES = {
    "tiny": Size(50, 6, 5, 8),
    # The presets imdb-cpu and 20ng-cpu.
    "cpu": Size(30_000, 100, 64, 100),
}


class Peer(nn.Module):
    """Contexts of both sides, the layer on top, and the maximum over the tokens."""

    def __init__(self, size: Size, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size.n, size.d)
        self.drop = nn.Dropout(dropout)
        self.left, self.right = nn.RNNCell(size.d, size.d), nn.RNNCell(size.d, size.d)
        self.start = nn.Parameter(torch.zeros(2, size.d))
        self.combine = nn.Linear(3 * size.d, size.d)
        self.classes = nn.Linear(size.d, CLASSES)

    def loss(self, rows: Tensor, lengths: Tensor, classes: Tensor) -> Tensor:
        embedded = self.drop(self.embedding(rows))
        real = torch.arange(rows.shape[1], device=rows.device) < lengths.to(rows.device)[:, None]
        walk = range(rows.shape[1])
        left = self.walk(self.left, self.start[0], embedded, real, walk)
        right = self.walk(self.right, self.start[1], embedded, real, reversed(walk))
        hidden = torch.tanh(self.combine(torch.cat([left, embedded, right], dim=-1)))
        scores = self.classes(hidden.where(real[:, :, None], -torch.inf).amax(dim=1))
        return F.cross_entropy(scores, classes)

    def walk(self, cell: Any, start: Tensor, x: Tensor, real: Tensor, places: Any) -> Tensor:
        """What each place sees of those before it on the walk."""
        state, seen = start.expand(len(x), -1), {}
        for t in places:
            seen[t] = state
            state = torch.where(real[:, t, None], cell(x[:, t], state), state)
        return torch.stack([seen[t] for t in sorted(seen)], dim=1)


def make_loop(size: Size, device: str, dropout: float = DROPOUT) -> Trainer:
    """Our loop."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(size.length // 2, size.length + 1, 8 * size.batch)
    drawn, ends = zipf_corpus(size.n, int(lengths.sum())), np.cumsum([0, *lengths])
    documents = LabeledDocuments(drawn.train, ends, generator.integers(0, CLASSES, len(lengths)))
    names = tuple(f"c{i}" for i in range(CLASSES))
    corpus = LabeledCorpus("drawn", drawn.vocabulary, names, *[documents] * 3, (), {})
    units = {"d": size.d, "context": size.d, "hidden": size.d}
    tables: dict[str, Any] = {
        "task": {"name": "classification"},
        "model": {"name": "rcnn", "dropout": dropout, **units},
        "optimizer": {"kind": "adam", "lr": RATE, "weight_decay": 0.0},
        "training": {"batch": size.batch, "clip": 0.0, "device": device, "epochs": 1_000_000},
    }
    return Trainer(from_tables(tables), corpus, torch.device(device), ProcessGroup())


def copy(peer: Peer, ours: Any) -> None:
    """Give the peer our weights."""
    with torch.no_grad():
        peer.embedding.weight.copy_(ours.embedding.weight)
        peer.start.copy_(ours.start)
        for cell, layer in ((peer.left, ours.left), (peer.right, ours.right)):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(cell, name).copy_(getattr(layer, f"{name}_l0"))
        peer.combine.load_state_dict(ours.combine.state_dict())
        peer.classes.load_state_dict(ours.classes.state_dict())


def check(size: Size, device: str) -> None:
    """Stop unless loss and gradient agree."""
    ours, theirs = make_loop(size, device, 0.0), Peer(size, 0.0).to(device)
    copy(theirs, ours.model)
    batch: Any = ours.batches.take()
    own, objective = ours.loss(batch)
    objective.backward()  # type: ignore[no-untyped-call]
    loss = theirs.loss(batch.rows, batch.lengths, batch.classes)
    loss.backward()  # type: ignore[no-untyped-call]
    require("loss", own, loss)
    found, expected = ours.model.embedding.weight.grad, theirs.embedding.weight.grad
    assert expected is not None
    require("gradient of the embedding", found, expected)


def prepare(size: Size, device: str) -> tuple[Steps, float]:
    """The peer's step and ours, and the documents of one."""
    ours, feed = make_loop(size, device), make_loop(size, device).batches
    peer = Peer(size, DROPOUT).to(device)
    copy(peer, ours.model)
    fused = torch.device(device).type in ("cpu", "cuda")
    optimizer = torch.optim.Adam(peer.parameters(), lr=RATE, fused=fused)

    def step() -> None:
        batch: Any = feed.take()
        optimizer.zero_grad()
        peer.loss(batch.rows, batch.lengths, batch.classes).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return {PEER: step, "rcnn": ours.step}, size.batch


if __name__ == "__main__":
    compare_speed(__doc__, SIZES, check, prepare)
