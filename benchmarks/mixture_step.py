"""Tokens a second of a mixture of softmaxes in `embgeo train`, next to one of plain layers.

    python benchmarks/mixture_step.py [--size tiny|cpu] [--device cpu|cuda] [--rounds K]

The peer is that of `training_step.py` with the mixture as it is published: probabilities of each
softmax, weighed, added, and their logarithm. Both take two steps from the same weights first, and
have to arrive at the same losses and weights.
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

from benchmarks import training_step
from benchmarks.harness.steps import Steps, compare_speed
from benchmarks.training_step import Example, Peer, compare_steps, make_loop, text_of

PEER = "plain torch"


@dataclass(frozen=True)
class Size(training_step.Size):
    """With the number of softmaxes."""

    experts: int = 3


SIZES = {
    "tiny": Size(50, 8, 2, 3, 4, 0.1, lr=1.0),
    # As the preset mos-cpu, with two layers.
    "cpu": Size(3_000, 96, 2, 20, 20, 0.1, lr=1.0),
}


class MixedPeer(Peer):
    """The example's model with several softmaxes."""

    def __init__(self, size: Size, dropout: float) -> None:
        super().__init__(size, dropout)
        self.size = size
        self.latent = nn.Linear(size.d, size.experts * size.d)
        self.prior = nn.Linear(size.d, size.experts, bias=False)

    def forward(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        states, state = self.rnn(self.drop(self.encoder(inputs)), state)
        states = self.drop(states).flatten(0, 1)
        latent = torch.tanh(self.latent(states)).view(-1, self.size.d)
        p = torch.softmax(self.decoder(latent), dim=-1)
        p = p.view(-1, self.size.experts, self.size.n)
        weights = torch.softmax(self.prior(states), dim=-1)
        return torch.log((p * weights.unsqueeze(-1)).sum(dim=1)), state


class MixedExample(Example):
    kind = MixedPeer


def start(size: Size, device: str, dropout: float) -> tuple[Any, MixedExample]:
    """Our loop, and the peer's."""
    ours = make_loop(size, device, "plain LSTM", dropout, experts=size.experts)
    return ours, MixedExample(size, text_of(size, device), dropout)


def list_pairs(ours: Any, theirs: MixedExample) -> list[tuple[Tensor, Tensor]]:
    """Weights of the peer, each with ours."""
    model, peer = ours.model, theirs.model
    pairs = [(peer.encoder.weight, model.embedding.weight), (peer.decoder.bias, model.decoder.bias)]
    pairs += zip(peer.latent.parameters(), model.mixture.latent.parameters(), strict=True)
    pairs += zip(peer.prior.parameters(), model.mixture.prior.parameters(), strict=True)
    return pairs + list(zip(peer.rnn.parameters(), model.lstms.parameters(), strict=True))


def check(size: Size, device: str) -> None:
    """Stop unless both agree without dropout."""
    ours, theirs = start(size, device, 0.0)
    compare_steps(ours, theirs, list_pairs(ours, theirs))


def prepare(size: Size, device: str) -> tuple[Steps, float]:
    """The peer's step and ours, and the tokens of one."""
    torch.manual_seed(0)
    ours, theirs = start(size, device, size.dropout)
    return {PEER: theirs.step, "mixture of softmaxes": ours.step}, size.batch * size.bptt


if __name__ == "__main__":
    compare_speed(__doc__, SIZES, check, prepare)
