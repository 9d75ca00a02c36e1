"""Pairs of words that stand near each other, drawn block by block, for skip-gram."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from embgeo.core.errors import BadOption
from embgeo.training.data.documents import TokenStream
from embgeo.training.loop.process import World

#: Tokens whose pairs are drawn and shuffled at once.
BLOCK = 200_000
#: Of the expected pairs of a block, those that an epoch takes: so few that there are as many.
TAKEN = 0.98
Pairs = npt.NDArray[np.int32]


class NeighborBatch(NamedTuple):
    """What one step is given.

    Attributes
    ----------
    words, contexts : Tensor of int64
        Shape (B,); a word and one that stands near it.
    negatives : Tensor of int64
        Words drawn at random, which all pairs of the batch share; shape (S,).
    """

    words: Tensor
    contexts: Tensor
    negatives: Tensor
    length_ratio: float = 1.0
    first: bool = False

    @property
    def units(self) -> int:
        """How many pairs there are."""
        return len(self.words)


def keep_chances(counts: npt.NDArray[np.int64], threshold: float) -> npt.NDArray[np.float64]:
    """Chance of each word to be kept where frequent ones are thinned out: word2vec's code.

    min(1, (√(f/t) + 1)·t/f) for a share f of the tokens; the paper (Mikolov et al. 2013, Eq. 5)
    has √(t/f). All are kept for a threshold of 0.
    """
    if not threshold:
        return np.ones(len(counts))
    share = np.maximum(counts, 1) / max(counts.sum(), 1)
    found = (np.sqrt(share / threshold) + 1.0) * threshold / share
    return np.asarray(np.minimum(1.0, found))


def draw_pairs(
    stream: TokenStream,
    kept: npt.NDArray[np.float64],
    window: int,
    generator: np.random.Generator,
) -> Pairs:
    """All pairs of the tokens of a stream, shuffled; shape (n, 2): word, context.

    Tokens are thinned out first. Each one that is left draws a reach from 1 to `window`, and is
    paired with every token of its document within this reach.
    """
    chosen = generator.random(len(stream.rows)) < kept[stream.rows]
    rows, documents = stream.rows[chosen], stream.documents[chosen]
    reach = generator.integers(1, window + 1, len(rows))
    found = [np.zeros((0, 2), dtype=np.int32)]
    for k in range(1, min(window, len(rows) - 1) + 1):
        together = documents[:-k] == documents[k:]
        after, before = together & (reach[:-k] >= k), together & (reach[k:] >= k)
        found.append(np.stack([rows[:-k][after], rows[k:][after]], axis=1))
        found.append(np.stack([rows[k:][before], rows[:-k][before]], axis=1))
    pairs = np.concatenate(found)
    return pairs[generator.permutation(len(pairs))]


def expect_pairs(stream: TokenStream, kept: npt.NDArray[np.float64], window: int) -> float:
    """How many pairs to expect of :func:`draw_pairs`.

    Of m tokens in a document that are left, 2·Σ_k P(reach ≥ k)·max(m − k, 0) are pairs; m is taken
    as its expectation, which is at most a little too few where documents are short.
    """
    left = np.bincount(stream.documents, weights=kept[stream.rows])
    return float(
        sum(
            2.0 * (window - k + 1) / window * np.maximum(left - k, 0.0).sum()
            for k in range(1, window + 1)
        )
    )


class NegativeSampler:
    """Draws words with chances in proportion to a power of their counts (3/4 in word2vec)."""

    def __init__(self, counts: npt.NDArray[np.int64], power: float) -> None:
        weights = np.maximum(counts, 0).astype(np.float64) ** power
        self.edges = np.cumsum(weights) / weights.sum()

    def draw(self, shape: tuple[int, ...], generator: np.random.Generator) -> npt.NDArray[np.int64]:
        """Rows of words."""
        found = np.searchsorted(self.edges, generator.random(shape), side="right")
        return np.minimum(found, len(self.edges) - 1).astype(np.int64)


class NeighborBatches:
    """A walk over batches of pairs: what a batch holds depends on seed, epoch and place alone.

    Pairs of a block of the text are drawn anew in each epoch. An epoch has the same number of
    batches from each block, about 2 % of whose pairs are left out for that, at random.

    `batch`: pairs of a step, over all processes. `shared`: words that are drawn as negatives for
    all pairs of a batch.
    """

    def __init__(
        self,
        stream: TokenStream,
        counts: npt.NDArray[np.int64],
        *,
        window: int,
        subsample: float,
        shared: int,
        power: float,
        batch: int,
        seed: int,
        world: World,
        device: torch.device,
    ) -> None:
        self.stream, self.window, self.shared = stream, window, shared
        self.batch, self.seed, self.world, self.device = batch, seed, world, device
        self.kept = keep_chances(counts, subsample)
        self.sampler = NegativeSampler(counts, power)
        self.blocks = max(1, round(len(stream.rows) / BLOCK))
        expected = expect_pairs(stream, self.kept, window) * TAKEN
        self.per_block = int(expected / self.blocks) // batch
        if batch % world.size:
            raise BadOption(
                f"a batch of {batch:,} pairs cannot be split over {world.size} processes",
                where="batch",
                way_out=f"give a multiple of {world.size}",
            )
        if not self.per_block:
            raise BadOption(
                f"a batch of {batch:,} pairs, and the text has about {expected:,.0f}",
                where="batch",
                way_out="give a smaller batch or more text",
            )
        self.epoch = 0
        self.offset = 0
        self._drawn: tuple[tuple[int, int], Tensor, Tensor] | None = None

    @property
    def steps_per_epoch(self) -> int:
        """Batches of an epoch."""
        return self.blocks * self.per_block

    windows_per_epoch = steps_per_epoch

    def take(self) -> NeighborBatch:
        """The next batch; behind the last one of an epoch comes the first of the next."""
        place, epoch = self.offset, self.epoch
        self.offset += 1
        if self.offset == self.steps_per_epoch:
            self.epoch, self.offset = epoch + 1, 0
        block, number = divmod(place, self.per_block)
        pairs, negatives = self.draw_block(epoch, block)
        own = self.batch // self.world.size
        start = number * self.batch + self.world.rank * own
        words, contexts = pairs[start : start + own].to(self.device, torch.int64).unbind(dim=1)
        return NeighborBatch(words, contexts, negatives[number].to(self.device))

    def draw_block(self, epoch: int, block: int) -> tuple[Tensor, Tensor]:
        """The pairs of a block and the negatives of its batches; the last block is kept."""
        if self._drawn is None or self._drawn[0] != (epoch, block):
            edges = np.linspace(0, len(self.stream.rows), self.blocks + 1).astype(int)
            part = slice(edges[block], edges[block + 1])
            stream = TokenStream(self.stream.rows[part], self.stream.documents[part])
            generator = np.random.default_rng([self.seed, epoch, block])
            pairs = draw_pairs(stream, self.kept, self.window, generator)
            # Where chance gave fewer than are taken, the first ones come again.
            pairs = np.resize(pairs, (self.per_block * self.batch, 2))
            negatives = self.sampler.draw((self.per_block, self.shared), generator)
            self._drawn = (epoch, block), torch.from_numpy(pairs), torch.from_numpy(negatives)
        return self._drawn[1:]

    def state_dict(self) -> dict[str, Any]:
        """Where the walk is."""
        return {"epoch": self.epoch, "offset": self.offset, "steps": self.steps_per_epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken; `BadOption` if it is of other data."""
        if state["steps"] != self.steps_per_epoch:
            raise BadOption(
                f"the state is of {state['steps']:,} batches an epoch, the data have "
                f"{self.steps_per_epoch:,}",
                way_out="resume with the settings and the text that the run began with",
            )
        self.epoch, self.offset = int(state["epoch"]), int(state["offset"])
