"""Pairs a second of skip-gram in `embgeo train`, next to plain torch.

    python benchmarks/skip_gram_step.py [--size tiny|cpu] [--device cpu|cuda] [--rounds K]

The peer has two `nn.Embedding` with sparse gradients, scores of all pairs and negatives through
`F.logsigmoid`, and `torch.optim.SGD`. Ours is the loop of `embgeo train` itself. Before any time is
taken, both take two steps from the same weights on the same pairs and negatives: loss and words
have to agree. Then they take turns as in `training_step.py`, each drawing its pairs from the text.
A step of the table is a hundred steps of training.
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
from embgeo.training.data.documents import DocumentCorpus, TokenStream
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.loop.trainer import Trainer
from embgeo.training.settings import from_tables

PEER = "plain torch"
NEGATIVES, STEPS = 5, 100


@dataclass(frozen=True)
class Size:
    """Of the model, a batch and a text in documents of 200 words."""

    n: int
    d: int
    batch: int
    shared: int
    tokens: int
    rate: float


SIZES = {
    "tiny": Size(60, 8, 16, 8, 4_000, 0.5),
    # The preset skipgram-cpu.
    "cpu": Size(20_000, 100, 1_024, 128, 600_000, 102.4),
}


class Peer(nn.Module):
    """Both matrices, and the loss of a batch of pairs."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.words = nn.Embedding(size.n, size.d, sparse=True)
        self.contexts = nn.Embedding(size.n, size.d, sparse=True)

    def loss(self, words: Tensor, contexts: Tensor, negatives: Tensor) -> Tensor:
        u, v, others = self.words(words), self.contexts(contexts), self.contexts(negatives)
        near = F.logsigmoid((u * v).sum(dim=1)).mean()
        far = F.logsigmoid(-(u @ others.T)).mean()
        return -(near + NEGATIVES * far)


def make_loop(size: Size, device: str) -> Trainer:
    """Our loop."""
    drawn = zipf_corpus(size.n, size.tokens)
    rows = drawn.train.astype(np.int32)
    stream = TokenStream(rows, np.arange(size.tokens, dtype=np.int32) // 200)
    corpus = DocumentCorpus("drawn", drawn.vocabulary, stream, stream.take(1_000), (), (), {})
    tables: dict[str, Any] = {
        "task": {"name": "skipgram", "negatives": NEGATIVES, "shared": size.shared},
        "model": {"name": "skip-gram", "d": size.d},
        "optimizer": {"kind": "sgd", "lr": size.rate, "schedule": "constant"},
        "training": {"batch": size.batch, "clip": 0.0, "device": device, "epochs": 1_000_000},
    }
    return Trainer(from_tables(tables), corpus, torch.device(device), ProcessGroup())


def copy(peer: Peer, ours: Any) -> None:
    """Give the peer our weights."""
    with torch.no_grad():
        peer.words.weight.copy_(ours.embedding.weight)
        peer.contexts.weight.copy_(ours.decoder.weight)


def step_peer(peer: Peer, feed: Any, optimizer: torch.optim.Optimizer) -> Tensor:
    """One step; its loss."""
    batch = feed.take()
    optimizer.zero_grad()
    loss = peer.loss(batch.words, batch.contexts, batch.negatives)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss


def check(size: Size, device: str) -> None:
    """Stop unless losses of two steps and the words after them agree."""
    ours, feed, theirs = (
        make_loop(size, device),
        make_loop(size, device).batches,
        Peer(size).to(device),
    )
    copy(theirs, ours.model)
    optimizer = torch.optim.SGD(theirs.parameters(), lr=size.rate)
    for _ in range(2):
        require("loss", ours.step().loss, step_peer(theirs, feed, optimizer))
    require("words", ours.model.embedding.weight, theirs.words.weight)


def prepare(size: Size, device: str) -> tuple[Steps, float]:
    """A hundred steps of the peer and of ours, and the pairs of them."""
    ours, feed, peer = (
        make_loop(size, device),
        make_loop(size, device).batches,
        Peer(size).to(device),
    )
    copy(peer, ours.model)
    optimizer = torch.optim.SGD(peer.parameters(), lr=size.rate)
    steps: Steps = {
        PEER: lambda: [step_peer(peer, feed, optimizer) for _ in range(STEPS)],
        "skip-gram": lambda: [ours.step() for _ in range(STEPS)],
    }
    return steps, STEPS * size.batch


if __name__ == "__main__":
    compare_speed(__doc__, SIZES, check, prepare)
