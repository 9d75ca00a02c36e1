"""Pairs of neighboring words for skip-gram, drawn block by block."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.errors import BadOption
from embgeo.training.data.batches import SMALLER_BATCH, BatchIterator
from embgeo.training.data.documents import TokenStream
from embgeo.training.loop.distributed import ProcessGroup

#: Tokens whose pairs are drawn and shuffled together.
BLOCK = 200_000
#: Share of the expected pairs of a block that an epoch takes, so that there are enough of them.
TAKEN = 0.98
Pairs = npt.NDArray[np.int32]


class NeighborBatch(NamedTuple):
    """Pairs of a step."""

    #: A word and a neighbor; shape (B,).
    words: Tensor
    contexts: Tensor
    #: Random words, which all pairs of the batch share; shape (S,).
    negatives: Tensor
    length_ratio: float = 1.0
    first: bool = False

    @property
    def units(self) -> int:
        return len(self.words)


def keep_chances(counts: IntArray, threshold: float) -> FloatArray:
    """Return the probability that subsampling keeps an occurrence of each word.

    min(1, (√(f/t) + 1)·t/f) for a share f of the tokens, as in the code of word2vec; the paper
    (Mikolov et al. 2013, Eq. 5) has √(t/f). A threshold t of 0 keeps all.
    """
    if not threshold:
        return np.ones(len(counts))
    share = np.maximum(counts, 1) / max(counts.sum(), 1)
    found = (np.sqrt(share / threshold) + 1.0) * threshold / share
    return np.asarray(np.minimum(1.0, found))


def draw_pairs(
    stream: TokenStream,
    kept: FloatArray,
    window: int,
    generator: np.random.Generator,
) -> Pairs:
    """Draw all pairs (word, context) of a stream, shuffled; shape (n, 2).

    Tokens are subsampled first. Each that is kept draws a reach from 1 to `window` and is paired
    with every token of its document within this reach.
    """
    chosen = generator.random(len(stream.rows)) < kept[stream.rows]
    rows, documents = stream.rows[chosen], stream.documents[chosen]
    reach = generator.integers(1, window + 1, len(rows))
    found = [np.zeros((0, 2), dtype=np.int32)]
    for k in range(1, window + 1):
        together = documents[:-k] == documents[k:]
        after, before = together & (reach[:-k] >= k), together & (reach[k:] >= k)
        found.append(np.stack([rows[:-k][after], rows[k:][after]], axis=1))
        found.append(np.stack([rows[k:][before], rows[:-k][before]], axis=1))
    pairs = np.concatenate(found)
    return pairs[generator.permutation(len(pairs))]


def expect_pairs(stream: TokenStream, kept: FloatArray, window: int) -> float:
    """Return the expected number of pairs from :func:`draw_pairs`.

    A document with m kept tokens gives 2·Σ_k P(reach ≥ k)·max(m − k, 0) pairs. The expectation of m
    stands in for m, which is slightly too few where documents are short.
    """
    left = np.bincount(stream.documents, weights=kept[stream.rows])
    return float(
        sum(
            2.0 * (window - k + 1) / window * np.maximum(left - k, 0.0).sum()
            for k in range(1, window + 1)
        )
    )


class NegativeSampler:
    """Draws words in proportion to a power of their counts (3/4 in word2vec)."""

    def __init__(self, counts: IntArray, power: float) -> None:
        weights = np.maximum(counts, 0).astype(np.float64) ** power
        self.edges = np.cumsum(weights) / weights.sum()

    def draw(self, shape: tuple[int, ...], generator: np.random.Generator) -> IntArray:
        found = np.searchsorted(self.edges, generator.random(shape), side="right")
        return np.minimum(found, len(self.edges) - 1).astype(np.int64)


class NeighborBatches(BatchIterator):
    """Batches of pairs that are drawn anew in every epoch, block by block of the text.

    Every block gives an epoch the same number of batches, which leaves out about 2% of the pairs,
    at random.

    `batch`: pairs of a step, over all processes. `shared`: negatives of a batch.
    """

    def __init__(
        self,
        stream: TokenStream,
        counts: IntArray,
        *,
        window: int,
        subsample: float,
        shared: int,
        power: float,
        batch: int,
        seed: int,
        group: ProcessGroup,
        device: torch.device,
    ) -> None:
        self.stream, self.window, self.shared = stream, window, shared
        self.batch, self.seed, self.device = batch, seed, device
        self.own = group.share(batch, "pairs")
        self.kept = keep_chances(counts, subsample)
        self.sampler = NegativeSampler(counts, power)
        self.blocks = max(1, round(len(stream.rows) / BLOCK))
        expected = expect_pairs(stream, self.kept, window) * TAKEN
        self.per_block = int(expected / self.blocks) // batch
        if not self.per_block:
            raise BadOption(
                f"a batch of {batch:,} pairs, and the text has about {expected:,.0f}",
                where="batch",
                way_out=SMALLER_BATCH,
            )
        super().__init__(self.blocks * self.per_block)

    def draw_order(self) -> None:
        """Forget the block of another epoch; `draw_block` draws the blocks of this one."""
        self.drawn: tuple[int, Tensor, Tensor] | None = None

    def take(self) -> NeighborBatch:
        block, number = divmod(self.offset, self.per_block)
        pairs, negatives = self.draw_block(block)
        self.advance()
        own = pairs[number * self.batch :][self.own]
        words, contexts = own.to(self.device, torch.int64).unbind(dim=1)
        return NeighborBatch(words, contexts, negatives[number].to(self.device))

    def draw_block(self, block: int) -> tuple[Tensor, Tensor]:
        """Draw the pairs of a block and the negatives of its batches; the last block is kept."""
        if self.drawn is None or self.drawn[0] != block:
            edges = np.linspace(0, len(self.stream.rows), self.blocks + 1).astype(int)
            part = slice(edges[block], edges[block + 1])
            stream = TokenStream(self.stream.rows[part], self.stream.documents[part])
            generator = np.random.default_rng([self.seed, self.epoch, block])
            pairs = draw_pairs(stream, self.kept, self.window, generator)
            # Where a block has fewer pairs than expected, its first ones come again.
            pairs = np.resize(pairs, (self.per_block * self.batch, 2))
            negatives = self.sampler.draw((self.per_block, self.shared), generator)
            self.drawn = block, torch.from_numpy(pairs), torch.from_numpy(negatives)
        return self.drawn[1:]
