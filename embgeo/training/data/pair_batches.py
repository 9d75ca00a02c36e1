"""Batches of sentence pairs of similar length, shuffled in every epoch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption
from embgeo.training.data.batches import DrawnBatches
from embgeo.training.data.parallel_corpus import ParallelSplit
from embgeo.training.data.tokenizer import END_ROW
from embgeo.training.loop.distributed import ProcessGroup


class PairBatch(NamedTuple):
    """Pairs of a step.

    Attributes
    ----------
    source : Tensor of int64
        Source sentences, padded with `END`; shape (B, S).
    lengths : Tensor of int64
        Tokens of each source sentence; shape (B,).
    inputs : Tensor of int64
        Decoder inputs, `END` and the targets shifted by one place; shape (B, T).
    places : Tensor of int64
        Which of the B·T places have a target; shape (U,).
    targets : Tensor of int64
        Shape (U,).
    units : float
        Targets of all processes, divided by the number of processes.
    counts : bool
        False if the process has no pairs of its own in this step, and these are a stand-in.
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
    """Shuffled batches of pairs, which share a length and are drawn anew in every epoch.

    A batch is the same whatever the number of processes, which share its pairs.

    `batch`: tokens of a step at most, over all processes: pairs times the longest side.
    """

    def __init__(
        self,
        pairs: ParallelSplit,
        *,
        batch: int,
        seed: int,
        group: ProcessGroup,
        device: torch.device,
    ) -> None:
        self.pairs, self.seed, self.group, self.device = pairs, seed, group, device
        source, target = pairs.source.lengths, pairs.target.lengths
        longer = np.maximum(source, target)
        if longer.max() > batch:
            raise BadOption(
                f"a batch of {batch:,} tokens is shorter than the longest pair, which has "
                f"{longer.max():,}",
                way_out="make batch of [training] larger, or length of [task] smaller",
            )
        # Sorted lengths, and so the cuts, are the same in every epoch.
        self.cuts = cut_batches(longer[np.lexsort((source, target))], batch)
        super().__init__(len(self.cuts) - 1)

    def draw_order(self) -> None:
        generator = np.random.default_rng([self.seed, self.epoch])
        drawn = generator.permutation(len(self.pairs))
        source, target = self.pairs.source.lengths[drawn], self.pairs.target.lengths[drawn]
        self.order = drawn[np.lexsort((source, target))]
        self.batches = generator.permutation(self.steps_per_epoch)

    def take(self) -> PairBatch:
        number = self.batches[self.offset]
        chosen = self.order[self.cuts[number] : self.cuts[number + 1]]
        own = chosen[self.group.rank :: self.group.size]
        units = int(self.pairs.target.lengths[chosen].sum())
        found = gather_pairs(self.pairs, own if len(own) else chosen[:1], self.device)
        self.advance()
        return found._replace(units=units / self.group.size, counts=len(own) > 0)


def cut_batches(lengths: IntArray, batch: int) -> IntArray:
    """Cut sorted pairs into batches with pairs × longest ≤ batch.

    `lengths`: tokens of the longer side of each pair. The result, shape (n + 1,), holds where each
    batch begins and where the last one ends.
    """
    cuts, longest = [0], 0
    for place, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        if (place - cuts[-1] + 1) * longest > batch:
            cuts.append(place)
            longest = length
    return np.array([*cuts, len(lengths)])


def gather_pairs(pairs: ParallelSplit, chosen: IntArray, device: torch.device) -> PairBatch:
    """Make a batch of some pairs."""
    # The last token of a sentence is END, with which `pad` fills the rest.
    source, lengths = pairs.source.pad(chosen)
    target, target_lengths = pairs.target.pad(chosen)
    inputs = np.concatenate([np.full((len(chosen), 1), END_ROW), target[:, :-1]], axis=1)
    places = np.flatnonzero(np.arange(target.shape[1]) < target_lengths[:, None])
    arrays = (source, lengths, inputs, places, target.reshape(-1)[places])
    given, known, read, kept, targets = (
        torch.from_numpy(one.astype(np.int64)).to(device) for one in arrays
    )
    return PairBatch(given, known, read, kept, targets, units=len(places))
