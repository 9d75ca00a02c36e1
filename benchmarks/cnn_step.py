"""Images a second of the convolutional network in `embgeo train`, next to plain torch.

    python benchmarks/cnn_step.py [--size tiny|digits|mnist] [--device cpu|cuda] [--rounds K]

The peer is the usual script: a sequence of torch's layers, images that were made numbers from 0 to
1 before, `F.cross_entropy` and `torch.optim.Adam`. Ours is the loop of `embgeo train` itself, which
keeps bytes. Before any time is taken, both compute loss and gradient of the softmax of one batch
from the same weights: they have to agree. Then they take turns as in `training_step.py`, on the
same images.
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
from embgeo.training.data.images import ImageCorpus, encode
from embgeo.training.data.vocabulary import Vocabulary
from embgeo.training.loop.loop import Loop
from embgeo.training.loop.process import World
from embgeo.training.settings import from_tables

PEER = "plain torch"
CLASSES, RATE, BATCHES = 10, 1e-3, 8


@dataclass(frozen=True)
class Size:
    """Of an image, of the layers and of a batch."""

    side: int
    filters: int
    d: int
    batch: int


SIZES = {
    "tiny": Size(8, 3, 6, 5),
    # The presets digits-cpu and mnist.
    "digits": Size(8, 32, 128, 64),
    "mnist": Size(28, 32, 128, 64),
}


class Peer(nn.Sequential):
    """Two convolutions and two layers."""

    def __init__(self, size: Size) -> None:
        n, side = size.filters, size.side // 4
        first = (nn.Conv2d(1, n, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2))
        second = (nn.Conv2d(n, 2 * n, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2))
        layers = (nn.Flatten(), nn.Linear(2 * n * side * side, size.d), nn.ReLU())
        super().__init__(*first, *second, *layers, nn.Linear(size.d, CLASSES, bias=False))


def make_loop(size: Size, device: str) -> tuple[Loop, Tensor, Tensor]:
    """Our loop, and the peer's images and classes."""
    generator = np.random.default_rng(0)
    shape = (BATCHES * size.batch, size.side, size.side)
    pixels = generator.integers(0, 256, shape, dtype=np.uint8)
    labels = generator.integers(0, CLASSES, len(pixels), dtype=np.uint8)
    images = encode(pixels, labels, np.arange(CLASSES, dtype=np.uint8))
    names = tuple(map(str, range(CLASSES)))
    vocabulary = Vocabulary(names, np.bincount(labels, minlength=CLASSES))
    corpus = ImageCorpus(
        "drawn", vocabulary, names, *[images] * 3, (), {}, "images", (size.side, size.side)
    )
    tables: dict[str, Any] = {
        "task": {"name": "images"},
        "model": {"name": "cnn", "filters": size.filters, "d": size.d},
        "optimizer": {"kind": "adam", "lr": RATE, "weight_decay": 0.0},
        "training": {"batch": size.batch, "clip": 0.0, "device": device, "epochs": 1_000_000},
    }
    loop = Loop(from_tables(tables), corpus, torch.device(device), World())
    ready = torch.from_numpy(pixels).to(device)[:, None] / 255.0
    return loop, ready, torch.from_numpy(images.classes).to(device)


def copy(peer: Peer, ours: Any) -> None:
    """Give the peer our weights, layer by layer."""
    own = [*ours.convolutions.parameters(), *ours.combine.parameters(), ours.decoder.weight]
    with torch.no_grad():
        for theirs, weight in zip(peer.parameters(), own, strict=True):
            theirs.copy_(weight)


def check(size: Size, device: str) -> None:
    """Stop unless loss and gradient agree."""
    ours, images, classes = make_loop(size, device)
    theirs = Peer(size).to(device)
    copy(theirs, ours.model)
    batches: Any = ours.batches
    chosen = torch.from_numpy(batches.order[: size.batch])
    own, objective = ours.loss(batches.take())
    objective.backward()  # type: ignore[no-untyped-call]
    loss = F.cross_entropy(theirs(images[chosen]), classes[chosen])
    loss.backward()  # type: ignore[no-untyped-call]
    require("loss", own, loss)
    expected = theirs[-1].weight.grad
    assert isinstance(expected, Tensor)
    require("gradient of the softmax", ours.model.embedding.weight.grad, expected)


def prepare(size: Size, device: str) -> tuple[Steps, float]:
    """The peer's step and ours, and the images of one."""
    ours, images, classes = make_loop(size, device)
    feed: Any = make_loop(size, device)[0].batches
    peer = Peer(size).to(device)
    copy(peer, ours.model)
    fused = torch.device(device).type in ("cpu", "cuda")
    optimizer = torch.optim.Adam(peer.parameters(), lr=RATE, fused=fused)

    def step() -> None:
        begin = feed.offset * size.batch
        chosen = torch.from_numpy(feed.order[begin : begin + size.batch])
        feed.advance()
        optimizer.zero_grad()
        F.cross_entropy(peer(images[chosen]), classes[chosen]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return {PEER: step, "cnn": ours.step}, size.batch


if __name__ == "__main__":
    compare_speed(__doc__, SIZES, check, prepare)
