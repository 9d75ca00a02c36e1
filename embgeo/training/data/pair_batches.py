"""Batches of pairs of sentences of similar length, redrawn in every epoch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from embgeo.core.errors import BadOption
from embgeo.training.data.batches import DrawnBatches
from embgeo.training.data.byte_pairs import END_ROW
from embgeo.training.data.parallel_corpus import Ints, ParallelSplit, Sentences
from embgeo.training.loop.process import World


class PairBatch(NamedTuple):
    """Pairs of a step.

    Attributes
    ----------
    source : Tensor of int64
        Shape (B, S); behind the end of a sentence stands `END`.
    lengths : Tensor of int64
        Tokens of each source sentence; shape (B,).
    inputs : Tensor of int64
        What is known of the targets at each place, `END` and all tokens before; shape (B, T).
    places : Tensor of int64
        Of B·T places, those with a target; shape (U,).
    targets : Tensor of int64
        Shape (U,).
    units : float
        Targets of all processes, divided by the number of processes.
    counts : bool
        Whether the pairs count, and do not only keep a process busy that would have none.
    """

    source: Tensor
    lengths: Tensor
    inputs: Tensor
    places: Tensor
    targets: Tensor
    units: float
    counts: bool = True
    length_ratio: float = 1.0
    first: bool = True


class PairBatches(DrawnBatches):
    """Pairs in an order that is drawn.

    Pairs of like length, which are drawn anew in every epoch, are a batch. A batch is the same
    whatever the number of processes, which have like parts of it.

    `batch`: tokens of a step at most, over all processes: pairs times the longest of their sides.
    """

    def __init__(
        self, pairs: ParallelSplit, *, batch: int, seed: int, world: World, device: torch.device
    ) -> None:
        self.pairs, self.seed, self.world, self.device = pairs, seed, world, device
        source, target = pairs.source.lengths, pairs.target.lengths
        longest = int(max(source.max(), target.max()))
        if longest > batch:
            raise BadOption(
                f"a batch of {batch:,} tokens is shorter than the longest pair, which has "
                f"{longest:,}",
                way_out="make batch of [training] larger, or length of [task] smaller",
            )
        #: Where each batch begins in the order of lengths, which is that of every epoch.
        order = np.lexsort((source, target))
        self.cuts = cut_batches(np.maximum(source, target)[order], batch)
        super().__init__(len(self.cuts) - 1)

    def draw_order(self) -> None:
        """The pairs of the epoch by their lengths, and its batches in their order."""
        generator = np.random.default_rng([self.seed, self.epoch])
        drawn = generator.permutation(len(self.pairs))
        source, target = self.pairs.source.lengths[drawn], self.pairs.target.lengths[drawn]
        self.order = drawn[np.lexsort((source, target))]
        self.batches = generator.permutation(self.steps_per_epoch)

    def take(self) -> PairBatch:
        """The next batch of this process."""
        number = self.batches[self.offset]
        chosen = self.order[self.cuts[number] : self.cuts[number + 1]]
        own = chosen[self.world.rank :: self.world.size]
        units = int(self.pairs.target.lengths[chosen].sum())
        found = gather_pairs(self.pairs, own if len(own) else chosen[:1], self.device)
        self.advance()
        return found._replace(units=units / self.world.size, counts=len(own) > 0)


def cut_batches(lengths: Ints, batch: int) -> Ints:
    """Where batches begin, and the last one ends, so that pairs × longest ≤ batch; shape (n + 1,).

    `lengths`: tokens of the longer side of each pair, in their order.
    """
    cuts, longest = [0], 0
    for place, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        if (place - cuts[-1] + 1) * longest > batch:
            cuts.append(place)
            longest = length
    return np.array([*cuts, len(lengths)])


def gather_pairs(pairs: ParallelSplit, chosen: Ints, device: torch.device) -> PairBatch:
    """Some pairs as a batch."""
    source, lengths = gather_rows(pairs.source, chosen)
    target, target_lengths = gather_rows(pairs.target, chosen)
    inputs = np.concatenate([np.full((len(chosen), 1), END_ROW), target[:, :-1]], axis=1)
    places = np.flatnonzero(np.arange(target.shape[1]) < target_lengths[:, None])
    targets = target.reshape(-1)[places]
    arrays = (source, lengths, inputs, places, targets)
    given, known, read, kept, expected = (torch.from_numpy(one).to(device) for one in arrays)
    return PairBatch(given, known, read, kept, expected, len(places))


def gather_rows(sentences: Sentences, chosen: Ints) -> tuple[Ints, Ints]:
    """Rows of some sentences, shape (B, T), with `END` behind them, and their lengths."""
    begins = sentences.ends[chosen]
    lengths = sentences.ends[chosen + 1] - begins
    # The last token of a sentence is END, which fills the rest.
    places = begins[:, None] + np.minimum(np.arange(lengths.max()), lengths[:, None] - 1)
    return sentences.rows[places].astype(np.int64), lengths
