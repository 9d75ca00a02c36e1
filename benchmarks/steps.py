"""Tokens a second of the models of `embgeo train`, next to plain torch of the same size.

    python benchmarks/steps.py MODEL [--size SIZE] [--device cpu|cuda] [--rounds K]

Peers are written with layers of torch alone: for `lstm`, what `examples/word_language_model` of
pytorch trains, from its description; for `translation`, `torch.nn.Transformer`. Ours is the loop of
`embgeo train` itself. Before any time is taken, both start from the same weights without dropout,
and the losses and the gradients of the embedding have to agree in two steps, the second from the
state of the first. Then all take turns, one step each, in an order that
moves on with every round; a ratio is the median over rounds of our tokens a second over the peer's
of the same round, with its quartiles. On a CPU, the seconds are those of the processor, which other
programs disturb less.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.harness.steps import show_ratios, time_steps
from benchmarks.harness.zipf import zipf_corpus
from embgeo.training.data import Vocabulary
from embgeo.training.data.encoding import join_sequences
from embgeo.training.data.parallel_corpus import ParallelCorpus, ParallelSplit
from embgeo.training.data.tokenizer import END_ROW
from embgeo.training.limits import choose
from embgeo.training.loop.distributed import ProcessGroup, numerics
from embgeo.training.loop.loop import Trainer
from embgeo.training.models.blocks import encode_places
from embgeo.training.registry import find_model
from embgeo.training.sections import TrainingSettings
from embgeo.training.settings import from_tables, merge_tables

SMOOTHING = 0.1
#: A tensor of the peer, and the one of ours that it starts as.
Pairs = list[tuple[Tensor, Tensor]]


class Lstm(nn.Module):
    """The example's model, tied."""

    def __init__(self, s: Any, p: float) -> None:
        super().__init__()
        self.drop, self.embedding = nn.Dropout(p), nn.Embedding(s.n, s.d)
        self.rnn = nn.LSTM(s.d, s.d, s.layers, dropout=p)
        self.decoder = nn.Linear(s.d, s.n)
        self.decoder.weight = self.embedding.weight

    def loss(self, batch: Any, state: Any) -> tuple[Tensor, Any]:
        states, state = self.rnn(self.drop(self.embedding(batch.inputs)), state)
        states = self.drop(states).flatten(0, 1)
        loss = F.cross_entropy(self.decoder(states), batch.targets.flatten())
        return loss, tuple(part.detach() for part in state)

    def list_pairs(self, ours: Any) -> Pairs:
        return [
            (self.embedding.weight, ours.embedding.weight),
            (self.decoder.bias, ours.decoder.bias),
            *zip(self.rnn.parameters(), ours.lstms.parameters(), strict=True),
        ]


class LlamaBlock(nn.Module):
    """A block with one weight for each use."""

    def __init__(self, s: Any) -> None:
        super().__init__()
        self.s, width = s, s.d // s.heads
        self.first, self.second = nn.RMSNorm(s.d, eps=1e-5), nn.RMSNorm(s.d, eps=1e-5)
        self.query, self.out = (nn.Linear(s.d, s.d, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(s.d, s.kv_heads * width, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(s.d, s.inner, bias=False) for _ in range(2))
        self.down = nn.Linear(s.inner, s.d, bias=False)

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        def split(states: Tensor, heads: int) -> Tensor:
            return states.unflatten(-1, (heads, -1)).transpose(1, 2)

        normed = self.first(x)
        query = turn(split(self.query(normed), self.s.heads), turns)
        key = turn(split(self.key(normed), self.s.kv_heads), turns)
        value = split(self.value(normed), self.s.kv_heads)
        served = self.s.heads // self.s.kv_heads
        key, value = (each.repeat_interleave(served, dim=1) for each in (key, value))
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        normed = self.second(x)
        found: Tensor = x + self.down(F.silu(self.gate(normed)) * self.up(normed))
        return found


def turn(x: Tensor, turns: Tensor) -> Tensor:
    """Features k and k + width/2 as one complex number, turned."""
    turned = torch.complex(*x.chunk(2, dim=-1)) * turns
    return torch.cat((turned.real, turned.imag), dim=-1)


class Llama(nn.Module):
    def __init__(self, s: Any, _p: float) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(s.n, s.d), nn.RMSNorm(s.d, eps=1e-5)
        self.blocks = nn.ModuleList(LlamaBlock(s) for _ in range(s.layers))
        width = s.d // s.heads
        angles = torch.outer(torch.arange(s.bptt), 10_000.0 ** (-torch.arange(0, width, 2) / width))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def loss(self, batch: Any, _state: Any) -> tuple[Tensor, Any]:
        states = self.embedding(batch.inputs.T)
        for block in self.blocks:
            states = block(states, self.turns)
        logits = self.norm(states) @ self.embedding.weight.T
        return F.cross_entropy(logits.flatten(0, 1), batch.targets.T.flatten()), None

    def list_pairs(self, ours: Any) -> Pairs:
        pairs = [
            (self.embedding.weight, ours.embedding.weight),
            (self.norm.weight, ours.norm.weight),
        ]
        for theirs, block in zip(self.blocks, ours.blocks, strict=True):
            own: Any = theirs
            attention, feed = block.attention.layer, block.inner.layer
            pairs += [(own.out.weight, attention.out.weight)]
            pairs += [(own.down.weight, feed.outward.weight)]
            for layers, joint in (
                ((own.query, own.key, own.value), attention.inward),
                ((own.gate, own.up), feed.inward),
            ):
                parts = joint.weight.split([layer.out_features for layer in layers])
                pairs += zip((layer.weight for layer in layers), parts, strict=True)
        return pairs


class XlBlock(nn.Module):
    """One layer as in the paper."""

    def __init__(self, s: Any) -> None:
        super().__init__()
        self.heads = s.heads
        self.query, self.distance = (nn.Linear(s.d, s.d, bias=False) for _ in range(2))
        self.key_value = nn.Linear(s.d, 2 * s.d, bias=False)
        self.attention_out = nn.Linear(s.d, s.d, bias=False)
        self.norm_attention, self.norm_inner = nn.LayerNorm(s.d), nn.LayerNorm(s.d)
        self.inner_in, self.inner_out = nn.Linear(s.d, s.inner), nn.Linear(s.inner, s.d)

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
        found: Tensor = self.norm_inner(x + drop(self.inner_out(drop(F.relu(self.inner_in(x))))))
        return found


class Xl(nn.Module):
    """Transformer-XL, tied, with a memory of one window."""

    def __init__(self, s: Any, p: float) -> None:
        super().__init__()
        self.s, self.p, self.embedding = s, p, nn.Embedding(s.n, s.d)
        self.content_bias = nn.Parameter(torch.zeros(s.d))
        self.distance_bias = nn.Parameter(torch.zeros(s.d))
        self.blocks = nn.ModuleList(XlBlock(s) for _ in range(s.layers))
        self.decoder = nn.Linear(s.d, s.n)
        self.decoder.weight = self.embedding.weight

    def loss(self, batch: Any, memory: Any) -> tuple[Tensor, Any]:
        x = F.dropout(self.embedding(batch.inputs.T) * self.s.d**0.5, self.p, self.training)
        memory = memory or [x[:, :0]] * self.s.layers
        distances = torch.arange(memory[0].shape[1] + x.shape[1] - 1, -1, -1.0, device=x.device)
        k = torch.arange(0, self.s.d, 2, device=x.device)
        angles = torch.outer(distances, 10_000.0 ** (-k / self.s.d))
        places = F.dropout(torch.cat((angles.sin(), angles.cos()), dim=-1), self.p, self.training)
        kept = []
        for block, before in zip(self.blocks, memory, strict=True):
            kept.append(x.detach())
            x = block(x, before, places, (self.content_bias, self.distance_bias), self.p)
        logits = self.decoder(F.dropout(x, self.p, self.training))
        return F.cross_entropy(logits.flatten(0, 1), batch.targets.T.flatten()), kept

    def list_pairs(self, ours: Any) -> Pairs:
        names = ("content_bias", "distance_bias", "embedding.weight", "decoder.bias")
        pairs: Pairs = [(self.get_parameter(name), ours.get_parameter(name)) for name in names]
        for one, block in zip(self.blocks, ours.blocks, strict=True):
            theirs: Any = one
            attention, feed = block.attention.layer, block.inner.layer
            for their, own in (
                (theirs.query, attention.query),
                (theirs.key_value, attention.key_value),
                (theirs.distance, attention.distance),
                (theirs.attention_out, attention.out),
                (theirs.norm_attention, block.attention.norm),
                (theirs.inner_in, feed.inward),
                (theirs.inner_out, feed.outward),
                (theirs.norm_inner, block.inner.norm),
            ):
                pairs += zip(their.parameters(), own.parameters(), strict=True)
        return pairs


class Translator(nn.Module):
    """`torch.nn.Transformer` with one matrix for both languages and the output."""

    def __init__(self, s: Any, p: float) -> None:
        super().__init__()
        self.embedding, self.drop = nn.Embedding(s.n, s.d), nn.Dropout(p)
        sizes = (s.d, s.heads, s.layers, s.layers, s.inner, p)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # norm_first excludes nested tensors
            self.layers = nn.Transformer(*sizes, batch_first=True, norm_first=True)

        for name, parameter in self.layers.named_parameters():
            # Ours has no biases of attention.
            parameter.requires_grad_(not name.endswith(("in_proj_bias", "out_proj.bias")))

    def embed(self, rows: Tensor) -> Tensor:
        d = self.embedding.embedding_dim
        waves = encode_places(rows.shape[1], d, 0, rows.device)
        dropped: Tensor = self.drop(self.embedding(rows) * math.sqrt(d) + waves)
        return dropped

    def loss(self, batch: Any, _state: Any) -> tuple[Tensor, Any]:
        places = torch.arange(batch.source.shape[1], device=batch.source.device)
        unseen = places >= batch.lengths[:, None]
        length = batch.inputs.shape[1]
        states = self.layers(
            self.embed(batch.source),
            self.embed(batch.inputs),
            tgt_mask=torch.ones(length, length, dtype=torch.bool, device=unseen.device).triu(1),
            src_key_padding_mask=unseen,
            memory_key_padding_mask=unseen,
            tgt_is_causal=True,
        )
        hidden = states.flatten(0, 1).index_select(0, batch.places)
        logits = hidden @ self.embedding.weight.T
        return F.cross_entropy(logits, batch.targets, label_smoothing=SMOOTHING), None

    def list_pairs(self, ours: Any) -> Pairs:
        """Pair the weights; biases of the peer's attention, which ours lacks, become zero."""
        layers: Any = self.layers
        twins = [(self.embedding, ours.embedding)]
        twins += [(layers.encoder.norm, ours.norm_source), (layers.decoder.norm, ours.norm_target)]
        pairs: Pairs = []
        for stack, blocks in (
            (layers.encoder.layers, ours.encoder),
            (layers.decoder.layers, ours.writer),
        ):
            for their, block in zip(stack, blocks, strict=True):
                added = [block.attention, *([block.reading] if block.reading else [])]
                attentions = (their.self_attn, getattr(their, "multihead_attn", None))
                for theirs, own in zip(attentions, [one.layer for one in added], strict=False):
                    joint = torch.cat([p.weight for p in (own.query, own.key, own.value)])
                    pairs += [
                        (theirs.in_proj_weight, joint),
                        (theirs.out_proj.weight, own.out.weight),
                    ]
                    for bias in (theirs.in_proj_bias, theirs.out_proj.bias):
                        pairs.append((bias, torch.zeros_like(bias)))
                feed = block.inner.layer
                twins += [(their.linear1, feed.inward), (their.linear2, feed.outward)]
                added.append(block.inner)
                norms = [getattr(their, f"norm{i + 1}") for i in range(len(added))]
                twins += zip(norms, [one.norm for one in added], strict=True)
        for their, own in twins:
            pairs += zip(their.parameters(), own.parameters(), strict=True)
        return pairs


# --- Data that nobody wrote -----------------------------------------------------------------------


def draw_text(s: Any) -> Any:
    return zipf_corpus(s.n, s.batch * (s.bptt * 8 + 1))


def draw_translations(s: Any) -> Any:
    """Sentences of 5 to 25 random tokens."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(5, 25, (2, 8 * s.batch // 12))
    sides = [
        join_sequences([generator.integers(1, s.n, n).tolist() for n in side], end=END_ROW)
        for side in lengths
    ]
    split = ParallelSplit(sides[0], sides[1], ("",) * lengths.shape[1])
    counts = np.bincount(np.concatenate([side.rows for side in sides]), minlength=s.n)
    vocabulary = Vocabulary(tuple(map(str, range(s.n))), counts)
    return ParallelCorpus("drawn", vocabulary, split, split, split, "target tokens", (), {})


# --- What is compared -----------------------------------------------------------------------------

PLAIN = {"alpha": 0.0, "beta": 0.0, "embedding_dropout": 0.0, "weight_dropout": 0.0}


@dataclass(frozen=True)
class Case:
    """A peer, our models beside it, of which the first is checked, and their sizes."""

    peer: Callable[[Any, float], Any]
    draw: Callable[[Any], Any]
    ours: Mapping[str, tuple[str, Mapping[str, Any]]]
    #: Settings by their names, n rows and `inner` units of feed-forward layers; those that a size
    #: leaves out have the value of `usual`.
    sizes: Mapping[str, Mapping[str, float]]
    usual: Mapping[str, float] = field(default_factory=dict)
    #: "sgd" or "adamw" without weight decay, its rate, and the largest norm of a gradient.
    optimizer: str = "adamw"
    lr: float = 1e-3
    clip: float = 0.0
    dropout: float = 0.1
    tables: Mapping[str, Any] = field(default_factory=dict)

    def size(self, name: str) -> Any:
        return SimpleNamespace(**{**self.usual, **self.sizes[name]})


CASES = {
    "lstm": Case(
        Lstm,
        draw_text,
        {
            "plain LSTM": ("awd-lstm", PLAIN),
            "AWD-LSTM": ("awd-lstm", {}),
            "VD-LSTM": ("vd-lstm", {}),
        },
        {
            "tiny": {"n": 2_000, "d": 64, "batch": 8, "bptt": 20},
            # What the example trains by default, with a vocabulary as for Penn Treebank.
            "small": {"n": 10_000, "d": 200, "batch": 20, "bptt": 35},
            # The larger one of its examples, on WikiText-2.
            "wt2": {"n": 33_278, "d": 650, "batch": 20, "bptt": 35, "dropout": 0.5},
        },
        {"layers": 2, "dropout": 0.2},
        "sgd",
        20.0,
        0.25,
    ),
    "llama": Case(
        Llama,
        draw_text,
        {"llama": ("llama", {})},
        {
            "tiny": {"n": 50, "d": 16, "layers": 2, "inner": 24, "batch": 4, "bptt": 8},
            "preset": {"n": 4_096, "d": 128, "layers": 4, "inner": 352, "batch": 16, "bptt": 128},
        },
        {"heads": 4, "kv_heads": 2},
        clip=1.0,
        dropout=0.0,
        tables={"training": {"windows": "random"}},
    ),
    "xl": Case(
        Xl,
        draw_text,
        {"Transformer-XL": ("transformer-xl", {})},
        {
            "tiny": {"n": 50, "d": 8, "heads": 2, "inner": 12, "batch": 3, "bptt": 4},
            "preset": {"n": 5_000, "d": 128, "heads": 4, "inner": 512, "batch": 20, "bptt": 32},
        },
        {"layers": 2},
        clip=0.25,
    ),
    "translation": Case(
        Translator,
        draw_translations,
        {"encoder-decoder": ("encoder-decoder", {"norm": "before"})},
        {
            "tiny": {"n": 100, "d": 8, "layers": 2, "heads": 2, "inner": 16, "batch": 200},
            "preset": {"n": 4_000, "d": 128, "layers": 2, "heads": 4, "inner": 512, "batch": 2_048},
            # The preset wmt14-base.
            "base": {
                "n": 37_000,
                "d": 512,
                "layers": 6,
                "heads": 8,
                "inner": 2_048,
                "batch": 25_000,
            },
        },
        lr=1e-4,
        tables={"task": {"name": "translation", "smoothing": SMOOTHING}},
    ),
}


def make_loop(case: Case, label: str, s: Any, p: float, device: str) -> Trainer:
    """Make our loop of a model."""
    name, own = case.ours[label]
    dropouts = ("dropout", "input_dropout", "hidden_dropout", "output_dropout")
    given = {"hidden": s.d, **vars(s), **dict.fromkeys(dropouts, p), **own}
    others = {"bptt": "memory", "inner": "feedforward"}
    given |= {other: getattr(s, key) for key, other in others.items() if hasattr(s, key)}
    task = case.tables.get("task", {}).get("name", "lm")
    training = {"clip": case.clip, "device": device, "epochs": 1_000_000}
    tables = {
        "model": {"name": name, **choose(given, find_model(task, name))},
        "optimizer": {"kind": case.optimizer, "lr": case.lr, "weight_decay": 0.0},
        "training": {**training, **choose(vars(s), TrainingSettings)},
    }
    config = from_tables(merge_tables(tables, case.tables))
    return Trainer(config, case.draw(s), torch.device(device), ProcessGroup())


class Script:
    """The training of a plain script, from the weights and on the batches of a loop of ours."""

    def __init__(self, case: Case, s: Any, p: float, ours: Trainer) -> None:
        self.case, self.batches, self.state = case, ours.batches, None
        self.model = case.peer(s, p).to(ours.device)
        with torch.no_grad():
            for their, own in self.model.list_pairs(ours.model):
                their.copy_(own)
        make = torch.optim.SGD if case.optimizer == "sgd" else torch.optim.Adam
        self.optimizer = make(self.model.parameters(), lr=case.lr, fused=True)

    def step(self) -> Tensor:
        batch: Any = self.batches.take()
        self.optimizer.zero_grad()
        loss, self.state = self.model.loss(batch, None if batch.first else self.state)
        loss.backward()
        if self.case.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.case.clip)
        self.optimizer.step()
        found: Tensor = loss.detach()
        return found


def check(case: Case, s: Any, device: str) -> None:
    """Stop unless ours and the peer have the same loss, gradient and next losses."""
    name = next(iter(case.ours))
    ours, feed = (make_loop(case, name, s, 0.0, device) for _ in range(2))
    for p in (
        ours.model.parameters() if case.peer is Xl else ()
    ):  # at the start, layers hardly count
        nn.init.normal_(p, std=0.3)
    feed.model.load_state_dict(ours.model.state_dict())
    theirs = Script(case, s, 0.0, feed)
    batches = make_loop(case, name, s, 0.0, device).batches
    for _ in range(2):  # the second starts from the state of the first
        batch = batches.take()
        losses = ours.loss(batch)[1], theirs.model.loss(batch, theirs.state)[0]
        matrices = ours.model.embedding.weight, theirs.model.embedding.weight
        gradients = [
            torch.autograd.grad(loss, matrix)[0]
            for loss, matrix in zip(losses, matrices, strict=True)
        ]
        require("loss", *losses)
        require("gradient of the embedding", *gradients)
        ours.step()
        theirs.step()


def require(what: str, found: Tensor, expected: Tensor) -> None:
    difference = float((found - expected).detach().abs().max())
    if not difference <= 1e-3 * float(expected.detach().abs().max()):
        raise SystemExit(f"the {what} of ours and of the peer are {difference:.2g} apart")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", choices=CASES)
    sizes = dict.fromkeys(size for case in CASES.values() for size in case.sizes)
    parser.add_argument("--size", choices=sizes, default="tiny")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    case, device = CASES[options.model], options.device
    if options.size not in case.sizes:
        parser.error(f"{options.model} has the sizes {', '.join(case.sizes)}")
    s = case.size(options.size)
    p = getattr(s, "dropout", case.dropout)
    with numerics("float32", torch.device(device)):
        check(case, s, device)
        loops = {name: make_loop(case, name, s, p, device) for name in case.ours}
        feed = make_loop(case, next(iter(case.ours)), s, p, device)
        steps: dict[str, Callable[[], Any]] = {"plain torch": Script(case, s, p, feed).step}
        steps |= {name: loop.step for name, loop in loops.items()}
        taken = make_loop(case, next(iter(case.ours)), s, p, device).batches
        units = statistics.mean(taken.take().units for _ in range(8))
        times = time_steps(steps, device, max(2, options.rounds))
    print(
        f"{options.model} {vars(s)}, {device}, torch {torch.__version__}, {options.rounds} rounds\n"
    )
    print("| model | tokens a second | over the peer's | quartiles |\n|---|---|---|---|")
    for name, spent in times.items():
        rate = units / statistics.median(spent)
        print(f"| {name} | {rate:,.0f} | {show_ratios(times['plain torch'], spent)} |")


if __name__ == "__main__":
    main()
