"""Perplexity of all tokens, and of rare and frequent ones."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from embgeo.core.arrays import IntArray
from embgeo.training.data.batches import IGNORED, streams
from embgeo.training.models.language_model import LanguageModel, Output, detach

#: Tokens of a window in the evaluation of models with a state, for which it only bounds memory.
STATEFUL_BPTT = 70
#: Logits of a block. On a CPU, blocks of the size of its caches save 40% of the time; on other
#: devices, blocks limit float64 copies to some 200 MB.
_CPU_BLOCK, _BLOCK = 2**20, 2**23


@dataclass(frozen=True, slots=True)
class TokenSubset:
    """The sum of −ln p over some predicted tokens, and their number."""

    total: float
    tokens: int

    @property
    def loss(self) -> float:
        """Mean of −ln p(token); NaN without tokens."""
        return self.total / self.tokens if self.tokens else math.nan

    @property
    def perplexity(self) -> float | None:
        """exp(loss); None without tokens, infinite beyond the range of float64."""
        if not self.tokens:
            return None
        return math.exp(self.loss) if not self.loss >= 709.0 else math.inf


class Perplexity(NamedTuple):
    """Losses of all tokens of a split but the first, and of rare and frequent targets.

    `windows` has the losses of all tokens by window, in the order of the text.
    """

    all: TokenSubset
    rare: TokenSubset
    popular: TokenSubset
    windows: tuple[TokenSubset, ...] = ()


def perplexity(
    model: LanguageModel,
    rows: IntArray,
    *,
    batch: int = 1,
    bptt: int = 70,
    stride: int | None = None,
    device: torch.device | str = "cpu",
    popular: Tensor | None = None,
) -> Perplexity:
    """Return exp of the mean of −ln p over all tokens of a split but the first.

    The softmax and the sum are in float64. Every token but the first is predicted exactly once at
    any batch: each of the `batch` streams reads the last token of the stream before it, and no
    remainder is dropped; with more than one, the first tokens of the others are predicted from an
    initial state. Common scripts drop the remainder and the first token of each stream.

    A model without a state (a Transformer) sees only its own window of `bptt` tokens. With a
    `stride`, it reads overlapping windows and is scored on the last `stride` tokens of each.
    `popular`: frequent tokens, shape (N,); without it, no token is frequent or rare.
    """
    tally = LossTally(device, popular)
    with torch.no_grad(), evaluating(model):
        for output, targets in read_windows(
            model, streams(rows, batch, bptt, device, stride=stride)
        ):
            tally.add(log_losses(model, output.hidden, targets), targets)
    return tally.result()


def read_windows(
    model: LanguageModel, windows: Iterable[tuple[Tensor, Tensor]]
) -> Iterator[tuple[Output, Tensor]]:
    """Yield the output for the inputs of each window, and the targets; the state is carried on."""
    state = None
    for inputs, targets in windows:
        output = model(inputs, state)
        state = detach(output.state)
        yield output, targets


class LossTally:
    """Sums of log losses, kept on the device until `result`."""

    def __init__(self, device: torch.device | str, popular: Tensor | None) -> None:
        self._popular = None if popular is None else popular.to(device)
        self._sums = torch.zeros(2, dtype=wide(device), device=device)
        self._tokens = torch.zeros(2, dtype=torch.int64, device=device)
        self._windows: list[tuple[Tensor, Tensor]] = []

    def add(self, losses: Tensor, targets: Tensor) -> None:
        """Add −ln p of the targets, of the same shape; negative targets do not count."""
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
        # In the order of the text: stream by stream.
        totals, numbers = (
            torch.stack(each).T.flatten().tolist() for each in zip(*self._windows, strict=True)
        )
        windows = tuple(map(TokenSubset, totals, numbers))
        return Perplexity(both, rare, popular, windows)


def log_losses(model: LanguageModel, hidden: Tensor, targets: Tensor) -> Tensor:
    """Return −ln p of the targets in float64, by blocks of positions; 0 where a target is negative.

    `hidden` has shape (T, B, d), `targets` and the result (T, B).
    """
    block = _CPU_BLOCK if hidden.device.type == "cpu" else _BLOCK
    positions = max(1, block // model.logits_per_state)
    found = [
        F.cross_entropy(
            model.head(states).to(wide(hidden.device)),
            expected,
            ignore_index=IGNORED,
            reduction="none",
        )
        for states, expected in zip(
            torch.split(hidden.flatten(0, 1), positions),
            torch.split(targets.flatten(), positions),
            strict=True,
        )
    ]
    return torch.cat(found).view_as(targets)


def wide(device: torch.device | str) -> torch.dtype:
    """Return the dtype of sums: float64, except on GPUs of Apple, which lack it."""
    return torch.float32 if torch.device(device).type == "mps" else torch.float64


@contextmanager
def evaluating(model: LanguageModel) -> Iterator[None]:
    """Set evaluation mode inside the block."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
