"""Tokens a second of the baselines of `embgeo train`, next to the LSTM of pytorch's examples.

    python benchmarks/training_step.py [--size tiny|small|wt2] [--device cpu|cuda] [--rounds K]

The peer is what `examples/word_language_model` of pytorch trains: an embedding, dropout, an LSTM of
several layers with dropout between them, dropout, a linear decoder; log-softmax and NLLLoss, the
gradient clipped at 0.25, SGD by hand. It is written here from that description. Ours is the loop of
`embgeo train` itself, with models of as many layers of the same width: a plain one with the
dropout that the example has, AWD-LSTM with everything (weight drop, embedding dropout, AR, TAR)
and VD-LSTM.

Before any time is taken, the plain model and the peer take one step from the same weights on the
same tokens without dropout: loss and weights after it have to agree. Then all take turns, one step
each, in an order that moves on with every round; a ratio is the median over rounds of our tokens a
second over the peer's of the same round, with its quartiles. On a CPU, the seconds are those of the
processor, which other programs disturb less.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.harness.steps import Steps, compare_speed, require
from benchmarks.harness.zipf import zipf_corpus
from embgeo.training.data import Corpus
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.loop.trainer import Trainer
from embgeo.training.settings import StudySettings, from_tables

CLIP = 0.25
PEER = "word_language_model"


@dataclass(frozen=True)
class Size:
    """Of the models and of a batch."""

    n: int
    d: int
    layers: int
    batch: int
    bptt: int
    dropout: float
    lr: float = 20.0


SIZES = {
    "tiny": Size(2_000, 64, 2, 8, 20, 0.2),
    # What the example trains by default, with a vocabulary as for Penn Treebank.
    "small": Size(10_000, 200, 2, 20, 35, 0.2),
    # The larger one of its examples, on WikiText-2.
    "wt2": Size(33_278, 650, 2, 20, 35, 0.5),
}

#: Settings of our models by contender.
OURS: dict[str, dict[str, Any]] = {
    "plain LSTM": {
        "name": "awd-lstm",
        "alpha": 0.0,
        "beta": 0.0,
        "embedding_dropout": 0.0,
        "weight_dropout": 0.0,
    },
    "AWD-LSTM": {"name": "awd-lstm"},
    "VD-LSTM": {"name": "vd-lstm"},
}
#: What has the dropout of the size.
DROPPED = ("input_dropout", "hidden_dropout", "output_dropout")


class Peer(nn.Module):
    """The example's model, tied."""

    def __init__(self, size: Size, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(size.n, size.d)
        self.rnn = nn.LSTM(size.d, size.d, size.layers, dropout=dropout)
        self.decoder = nn.Linear(size.d, size.n)
        self.decoder.weight = self.encoder.weight

    def forward(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        states, state = self.rnn(self.drop(self.encoder(inputs)), state)
        logits = self.decoder(self.drop(states))
        return nn.functional.log_softmax(logits.view(-1, logits.shape[-1]), dim=1), state


class Example:
    """The example's training, a step at a time."""

    kind = Peer

    def __init__(self, size: Size, text: Tensor, dropout: float) -> None:
        self.size = size
        self.text = text
        self.model = self.kind(size, dropout).to(text.device)
        self.criterion = nn.NLLLoss()
        zeros = text.new_zeros(size.layers, size.batch, size.d, dtype=torch.float32)
        self.state: Any = (zeros, zeros)
        self.place = 0

    def step(self) -> Tensor:
        if self.place + self.size.bptt >= len(self.text):
            self.place = 0
        inputs = self.text[self.place : self.place + self.size.bptt]
        targets = self.text[self.place + 1 : self.place + self.size.bptt + 1].reshape(-1)
        self.place += self.size.bptt
        self.model.zero_grad()
        self.state = tuple(part.detach() for part in self.state)
        log_p, self.state = self.model(inputs, self.state)
        loss: Tensor = self.criterion(log_p, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        with torch.no_grad():
            for p in self.model.parameters():
                assert p.grad is not None
                p.add_(p.grad, alpha=-self.size.lr)
        return loss.detach()


def corpus_of(size: Size) -> Corpus:
    """Enough for eight windows."""
    return zipf_corpus(size.n, size.batch * (size.bptt * 8 + 1))


def config_of(
    size: Size, device: str, contender: str, dropout: float | None = None, **more: Any
) -> StudySettings:
    """Settings as in a file of `embgeo train`; with a dropout, that of all features."""
    settings = {"d": size.d, "hidden": size.d, "layers": size.layers, **OURS[contender], **more}
    p = size.dropout if dropout is None else dropout
    names = DROPPED if settings["name"] == "awd-lstm" else ("dropout",)
    settings |= dict.fromkeys(names, p)
    return from_tables(
        {
            "model": settings,
            "optimizer": {"kind": "sgd", "lr": size.lr, "weight_decay": 0.0},
            "training": {
                "batch": size.batch,
                "bptt": size.bptt,
                "clip": CLIP,
                "device": device,
                "epochs": 1_000_000,
            },
        }
    )


def make_loop(
    size: Size, device: str, contender: str, dropout: float | None = None, **more: Any
) -> Trainer:
    config = config_of(size, device, contender, dropout, **more)
    return Trainer(config, corpus_of(size), torch.device(device), ProcessGroup())


def text_of(size: Size, device: str) -> Tensor:
    """The same tokens in the same streams."""
    rows = torch.from_numpy(corpus_of(size).train)
    length = len(rows) // size.batch
    return rows[: length * size.batch].view(size.batch, length).T.contiguous().to(device)


def check(size: Size, device: str) -> None:
    """Stop unless one step without dropout leads both to the same loss and weights."""
    ours = make_loop(size, device, "plain LSTM", dropout=0.0)
    theirs = Example(size, text_of(size, device), dropout=0.0)
    model: Any = ours.model
    pairs = [(theirs.model.encoder.weight, model.embedding.weight)]
    pairs.append((theirs.model.decoder.bias, model.decoder.bias))
    for number, layer in enumerate(model.lstms):
        for name, p in layer.named_parameters():
            pairs.append((getattr(theirs.model.rnn, name.replace("l0", f"l{number}")), p))
    compare_steps(ours, theirs, pairs)


def compare_steps(ours: Trainer, theirs: Example, pairs: list[tuple[Tensor, Tensor]]) -> None:
    """Stop unless both have the same losses and weights, the peer's and ours, in two steps."""
    with torch.no_grad():
        for their, our in pairs:
            their.copy_(our)
    for _ in range(2):  # the second starts from the states of the first
        require("loss", ours.step().loss, theirs.step())
    for their, our in pairs:
        require("weights after a step", our, their)


def prepare(size: Size, device: str) -> tuple[Steps, float]:
    """The peer's step and ours, and the tokens of one."""
    loops = {name: make_loop(size, device, name) for name in OURS}
    torch.manual_seed(0)
    example = Example(size, text_of(size, device), size.dropout)
    return {PEER: example.step, **{name: trainer.step for name, trainer in loops.items()}}, (
        size.batch * size.bptt
    )


if __name__ == "__main__":
    compare_speed(__doc__, SIZES, check, prepare)
