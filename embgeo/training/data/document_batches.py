"""Batches of documents with classes, redrawn in every epoch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from embgeo.core.errors import BadOption
from embgeo.training.data.batches import DrawnBatches
from embgeo.training.data.labeled_corpus import Ints, LabeledDocuments
from embgeo.training.loop.process import World


class DocumentBatch(NamedTuple):
    """Documents of a step.

    Attributes
    ----------
    rows : Tensor of int64
        Shape (B, T), T tokens of the longest one; behind the end of a document stands any row.
    lengths : Tensor of int64
        Tokens of each document, on the CPU; shape (B,).
    classes : Tensor of int64
        Shape (B,).
    """

    rows: Tensor
    lengths: Tensor
    classes: Tensor
    length_ratio: float = 1.0
    first: bool = True

    @property
    def units(self) -> int:
        return len(self.classes)


class DocumentBatches(DrawnBatches):
    """Documents in an order that is drawn.

    What is left of an epoch behind its last whole batch is not seen in it.

    `batch`: documents of a step, over all processes. `unit`: what documents are called in errors.
    """

    def __init__(
        self,
        documents: LabeledDocuments,
        *,
        batch: int,
        seed: int,
        world: World,
        device: torch.device,
        unit: str = "documents",
    ) -> None:
        if batch > len(documents):
            raise BadOption(
                f"a batch of {batch:,} {unit} is larger than the training split, which has "
                f"{len(documents):,}",
                way_out="make batch of [training] smaller",
            )
        if batch % world.size:
            raise BadOption(
                f"a batch of {batch:,} {unit} cannot be split over {world.size} processes",
                way_out=f"give a multiple of {world.size}",
            )
        self.documents, self.batch, self.seed = documents, batch, seed
        self.world, self.device = world, device
        super().__init__(len(documents) // batch)

    def draw_order(self) -> None:
        """The documents of the epoch in their order."""
        generator = np.random.default_rng([self.seed, self.epoch])
        self.order = generator.permutation(len(self.documents))

    def take(self) -> DocumentBatch:
        """The next batch of this process."""
        own = self.batch // self.world.size
        begin = self.offset * self.batch + self.world.rank * own
        found = gather(self.documents, self.order[begin : begin + own], self.device)
        self.advance()
        return found


def gather(documents: LabeledDocuments, chosen: Ints, device: torch.device) -> DocumentBatch:
    """Some documents as a batch."""
    begins = documents.ends[chosen]
    lengths = documents.ends[chosen + 1] - begins
    places = begins[:, None] + np.minimum(np.arange(lengths.max()), lengths[:, None] - 1)
    return DocumentBatch(
        torch.from_numpy(documents.rows[places]).to(device),
        torch.from_numpy(lengths),
        torch.from_numpy(documents.classes[chosen]).to(device),
    )
