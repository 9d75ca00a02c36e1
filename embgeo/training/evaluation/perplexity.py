"""Perplexity as the field counts it, of all tokens and of rare and popular ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from embgeo.training.data.batches import IGNORED, streams
from embgeo.training.models.language_model import LanguageModel, detach

#: Tokens of a window of an evaluation where a state is carried over: they bound its memory alone.
STATEFUL_BPTT = 70
#: Logits that are looked at together. On a CPU, blocks near the size of its caches take 60 % of
#: the time; elsewhere, this bounds the memory of float64 copies to some 200 MB.
_CPU_BLOCK, _BLOCK = 2**20, 2**23


@dataclass(frozen=True, slots=True)
class TokenSubset:
    """Some of the predicted tokens.

    Attributes
    ----------
    total : float
        Sum of −log p(token), natural logarithm.
    tokens : int
        How many were predicted.
    """

    total: float
    tokens: int

    @property
    def loss(self) -> float:
        """Mean of −log p(token), natural logarithm; not a number without tokens."""
        return self.total / self.tokens if self.tokens else math.nan

    @property
    def perplexity(self) -> float | None:
        """exp(loss); None without tokens, infinite beyond the range of float64."""
        if not self.tokens:
            return None
        return math.exp(self.loss) if not self.loss >= 709.0 else math.inf


class Perplexity(NamedTuple):
    """What a model makes of a split: of all tokens but the first, and of two classes of targets.

    `windows` are all tokens again, by the windows that the model read, in the order of the text.
    """

    all: TokenSubset
    rare: TokenSubset
    popular: TokenSubset
    windows: tuple[TokenSubset, ...] = ()


def perplexity(
    model: LanguageModel,
    rows: npt.NDArray[np.int64],
    *,
    batch: int = 1,
    bptt: int = 70,
    stride: int | None = None,
    device: torch.device | str = "cpu",
    popular: Tensor | None = None,
) -> Perplexity:
    """exp of the mean of −log p over all tokens of a split but the first.

    The softmax and the sum are in float64; dropout is off; the state is carried from window to
    window. Every token but the first is predicted exactly once, whatever the batch: the split is
    laid out as `batch` streams, each of which reads the last token of the stream before it, and
    nothing is dropped at the end. Where the field's scripts use a batch they drop what is left
    over, and the first token of each stream. With a batch of one the count is theirs in any case;
    with more, the first tokens of the other streams are predicted from an empty state.

    A model without a state (a Transformer) sees its own window alone, so that for it `bptt` is
    part of what is measured; for an LSTM it changes nothing. With a `stride`, such a model reads
    overlapping windows, and is scored on the last `stride` tokens of each, which have at least
    bptt − stride tokens before them in their window, but for the beginning of a stream.

    Parameters
    ----------
    model : LanguageModel
        On `device`; left in the mode in which it was.
    rows : array of int64
        The split; shape (n,).
    batch, bptt : int
        Streams, and tokens of a window.
    stride : int, optional
        Tokens from one window to the next, where no state is carried over; by default `bptt`.
    popular : Tensor of bool, optional
        Popular types, shape (N,); without it, nobody is popular or rare.

    Raises
    ------
    BadOption
        Less than two tokens, or no batch or window.
    """
    tally = LossTally(device, popular)
    with torch.no_grad(), evaluating(model):
        state = None
        for inputs, targets in streams(rows, batch, bptt, device, stride=stride):
            output = model(inputs, state)
            state = detach(output.state)
            tally.add(log_losses(model, output.hidden, targets), targets)
    return tally.result()


class LossTally:
    """Sums of log losses, kept on the device until they are asked for.

    `popular` has shape (N,).
    """

    def __init__(self, device: torch.device | str, popular: Tensor | None) -> None:
        self._popular = None if popular is None else popular.to(device)
        self._sums = torch.zeros(2, dtype=wide(device), device=device)
        self._tokens = torch.zeros(2, dtype=torch.int64, device=device)
        self._windows: list[tuple[Tensor, Tensor]] = []

    def add(self, losses: Tensor, targets: Tensor) -> None:
        """Take −log p of the targets, both of the same shape; negative targets do not count."""
        counted = targets >= 0
        popular = torch.zeros_like(counted)
        if self._popular is not None:
            popular = counted & self._popular[targets.clamp(min=0)]
        for place, chosen in enumerate((counted & ~popular, popular)):
            self._sums[place] += torch.where(chosen, losses, torch.zeros_like(losses)).sum()
            self._tokens[place] += chosen.sum()
        known = torch.where(counted, losses, torch.zeros_like(losses))
        self._windows.append((known.sum(0).reshape(-1), counted.sum(0).reshape(-1)))

    def result(self) -> Perplexity:
        rare, popular = (
            TokenSubset(float(total), int(tokens))
            for total, tokens in zip(self._sums.tolist(), self._tokens.tolist(), strict=True)
        )
        both = TokenSubset(rare.total + popular.total, rare.tokens + popular.tokens)
        if self._popular is None:
            rare = popular = TokenSubset(0.0, 0)
        return Perplexity(both, rare, popular, self._list_windows())

    def _list_windows(self) -> tuple[TokenSubset, ...]:
        """Stream by stream, within one in the order of time."""
        if not self._windows:
            return ()
        totals, tokens = (
            torch.stack(each).T.flatten().tolist() for each in zip(*self._windows, strict=True)
        )
        return tuple(TokenSubset(*window) for window in zip(totals, tokens, strict=True))


def log_losses(model: LanguageModel, hidden: Tensor, targets: Tensor) -> Tensor:
    """−log p of the targets in float64, over blocks of positions; 0 where a target is negative.

    `hidden` has shape (T, B, d), `targets` and the result (T, B).
    """
    block = _CPU_BLOCK if hidden.device.type == "cpu" else _BLOCK
    positions = max(1, block // model.logits_per_state)
    found = [
        F.cross_entropy(
            model.head(states).to(wide(hidden.device)),
            wanted,
            ignore_index=IGNORED,
            reduction="none",
        )
        for states, wanted in zip(
            torch.split(hidden.flatten(0, 1), positions),
            torch.split(targets.flatten(), positions),
            strict=True,
        )
    ]
    return torch.cat(found).view_as(targets)


def wide(device: torch.device | str) -> torch.dtype:
    """The type of sums: float64, but for Apple's GPUs, which have none."""
    return torch.float32 if torch.device(device).type == "mps" else torch.float64


@contextmanager
def evaluating(model: LanguageModel) -> Iterator[None]:
    """Without dropout, for as long as it lasts."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
