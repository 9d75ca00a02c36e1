"""Target tokens a second of `embgeo train` on translations, next to torch's own Transformer.

    python benchmarks/translation_step.py [--size tiny|cpu|base] [--device cpu|cuda] [--rounds K]

The peer is `torch.nn.Transformer` of the same size with one matrix for both languages and the
output, the same positions, masks and label smoothing, and Adam. Ours is the loop of `embgeo train`
itself. Before any time is taken, both compute loss and gradient of the matrix for one batch from
the same weights without dropout: they have to agree. Then they take turns as in `training_step.py`,
on the same batches.
"""

from __future__ import annotations

import math
import statistics
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.harness.steps import Steps, compare_speed, require
from embgeo.training.data import Vocabulary
from embgeo.training.data.encoding import join_sequences
from embgeo.training.data.parallel_corpus import ParallelCorpus, ParallelSplit
from embgeo.training.data.tokenizer import END_ROW
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.loop.trainer import Trainer
from embgeo.training.models.encoder_decoder import Attention, EncoderDecoder, encode_places
from embgeo.training.settings import from_tables
from embgeo.training.tasks.translation import PairBatch, PairBatches

PEER = "torch.nn.Transformer"
SMOOTHING, RATE = 0.1, 1e-4


@dataclass(frozen=True)
class Size:
    """Of the models and of a batch."""

    n: int
    d: int
    layers: int
    heads: int
    feedforward: int
    tokens: int


SIZES = {
    "tiny": Size(100, 8, 2, 2, 16, 200),
    # The preset multi30k-cpu.
    "cpu": Size(4_000, 128, 2, 4, 512, 2_048),
    # The preset wmt14-base.
    "base": Size(37_000, 512, 6, 8, 2_048, 25_000),
}


class Peer(nn.Module):
    """What a plain script trains."""

    def __init__(self, size: Size, dropout: float) -> None:
        super().__init__()
        self.size = size
        self.embedding = nn.Embedding(size.n, size.d)
        nn.init.normal_(self.embedding.weight, std=size.d**-0.5)
        self.drop = nn.Dropout(dropout)
        with warnings.catch_warnings():
            # It says that norm_first excludes nested tensors.
            warnings.simplefilter("ignore")
            self.layers = nn.Transformer(
                size.d,
                size.heads,
                size.layers,
                size.layers,
                size.feedforward,
                dropout,
                batch_first=True,
                norm_first=True,
            )

    def embed(self, rows: Tensor) -> Tensor:
        waves = encode_places(rows.shape[1], self.size.d, 0, rows.device)
        dropped: Tensor = self.drop(self.embedding(rows) * math.sqrt(self.size.d) + waves)
        return dropped

    def forward(self, batch: PairBatch) -> Tensor:
        places = torch.arange(batch.source.shape[1], device=batch.source.device)
        unseen = places >= batch.lengths[:, None]
        length = batch.inputs.shape[1]
        later = torch.ones(length, length, dtype=torch.bool, device=unseen.device).triu(1)
        states = self.layers(
            self.embed(batch.source),
            self.embed(batch.inputs),
            tgt_mask=later,
            src_key_padding_mask=unseen,
            memory_key_padding_mask=unseen,
            tgt_is_causal=True,
        )
        hidden = states.flatten(0, 1).index_select(0, batch.places)
        logits = hidden @ self.embedding.weight.T
        return F.cross_entropy(logits, batch.targets, label_smoothing=SMOOTHING)


class Script:
    """The training of a plain script, a step at a time."""

    def __init__(self, size: Size, corpus: ParallelCorpus, device: str, dropout: float) -> None:
        self.model = Peer(size, dropout).to(device)
        self.batches = make_batches(size, corpus, device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=RATE)

    def step(self) -> Tensor:
        self.optimizer.zero_grad()
        loss: Tensor = self.model(self.batches.take())
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def make_corpus(size: Size, batches: int = 8) -> ParallelCorpus:
    """Sentences of 5 to 25 random tokens."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(5, 25, (2, batches * size.tokens // 12))
    sides = [
        join_sequences(
            [generator.integers(1, size.n, length).tolist() for length in side], end=END_ROW
        )
        for side in lengths
    ]
    split = ParallelSplit(sides[0], sides[1], ("",) * lengths.shape[1])
    counts = np.bincount(np.concatenate([side.rows for side in sides]), minlength=size.n)
    tokens = tuple(map(str, range(size.n)))
    unused: Any = None
    return ParallelCorpus("random", Vocabulary(tokens, counts), unused, split, split, split, (), {})


def make_batches(size: Size, corpus: ParallelCorpus, device: str) -> PairBatches:
    return PairBatches(
        corpus.train, batch=size.tokens, seed=0, group=ProcessGroup(), device=torch.device(device)
    )


def make_loop(size: Size, corpus: ParallelCorpus, device: str, dropout: float) -> Trainer:
    model = {"name": "encoder-decoder", "d": size.d, "layers": size.layers, "heads": size.heads}
    model |= {"feedforward": size.feedforward, "dropout": dropout, "norm": "before"}
    tables = {
        "task": {"name": "translation", "smoothing": SMOOTHING},
        "model": model,
        "optimizer": {"kind": "adam", "lr": RATE},
        "training": {"batch": size.tokens, "epochs": 1_000_000, "device": device},
    }
    return Trainer(from_tables(tables), corpus, torch.device(device), ProcessGroup())


def copy_weights(ours: EncoderDecoder, theirs: Peer) -> None:
    """Give the peer our weights; its attention has biases, which become zero."""
    layers: Any = theirs.layers
    pairs = [(theirs.embedding, ours.embedding)]
    pairs += [(layers.encoder.norm, ours.norm_source), (layers.decoder.norm, ours.norm_target)]
    for stack, blocks in (
        (layers.encoder.layers, ours.encoder),
        (layers.decoder.layers, ours.writer),
    ):
        for their, own in zip(stack, blocks, strict=True):
            block: Any = own
            copy_attention(block.itself, their.self_attn)
            if block.reads:
                copy_attention(block.reading, their.multihead_attn)
            pairs += [(their.linear1, block.inner[0]), (their.linear2, block.inner[3])]
            norms = [getattr(their, f"norm{i + 1}") for i in range(len(block.norms))]
            pairs += list(zip(norms, block.norms, strict=True))
    for their, own in pairs:
        their.load_state_dict(own.state_dict())


def copy_attention(own: Attention, their: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        assert their.in_proj_weight is not None
        their.in_proj_weight.copy_(torch.cat([p.weight for p in (own.query, own.key, own.value)]))
        their.out_proj.weight.copy_(own.out.weight)
        their.in_proj_bias.zero_()
        their.out_proj.bias.zero_()


def check(size: Size, device: str) -> None:
    """Stop unless both have the same loss and gradient of the matrix for one batch."""
    corpus = make_corpus(size, 2)
    trainer = make_loop(size, corpus, device, 0.0)
    theirs = Peer(size, 0.0).to(device)
    copy_weights(trainer.model, theirs)
    batch = make_batches(size, corpus, device).take()
    losses = (trainer.loss(batch)[1], theirs(batch))
    require("loss", losses[0], losses[1])
    matrices = (trainer.model.embedding.weight, theirs.embedding.weight)
    found, expected = (
        torch.autograd.grad(loss, matrix)[0] for loss, matrix in zip(losses, matrices, strict=True)
    )
    require("gradient of the matrix", found, expected)


def prepare(size: Size, device: str) -> tuple[Steps, float]:
    """The peer's step and ours, and the mean of the tokens of one."""
    corpus = make_corpus(size)
    trainer, script = make_loop(size, corpus, device, 0.1), Script(size, corpus, device, 0.1)
    feed = make_batches(size, corpus, device)
    tokens = statistics.mean(feed.take().units for _ in range(feed.steps_per_epoch))
    return {PEER: script.step, "embgeo": trainer.step}, tokens


if __name__ == "__main__":
    compare_speed(__doc__, SIZES, check, prepare)
