"""Batches of documents with classes, shuffled in every epoch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption
from embgeo.training.data.batches import DrawnBatches
from embgeo.training.data.labeled_corpus import LabeledDocuments
from embgeo.training.loop.distributed import ProcessGroup


class DocumentBatch(NamedTuple):
    """Documents of a step.

    Attributes
    ----------
    rows : Tensor of int64
        Shape (B, T), with T tokens of the longest document; rows after the end of a document are
        arbitrary.
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
    """Shuffled documents; an epoch ends with its last whole batch.

    `batch`: documents of a step, over all processes.
    """

    def __init__(
        self,
        documents: LabeledDocuments,
        *,
        batch: int,
        seed: int,
        group: ProcessGroup,
        device: torch.device,
    ) -> None:
        if batch > len(documents):
            raise BadOption(
                f"a batch of {batch:,} documents is larger than the training split, which has "
                f"{len(documents):,}",
                way_out="make batch of [training] smaller",
            )
        self.documents, self.batch, self.seed = documents, batch, seed
        self.own, self.device = group.share(batch, "documents"), device
        super().__init__(len(documents) // batch)

    def draw_order(self) -> None:
        generator = np.random.default_rng([self.seed, self.epoch])
        self.order = generator.permutation(len(self.documents))

    def take(self) -> DocumentBatch:
        chosen = self.order[self.offset * self.batch :][self.own]
        self.advance()
        return gather(self.documents, chosen, self.device)


def gather(documents: LabeledDocuments, chosen: IntArray, device: torch.device) -> DocumentBatch:
    """Make a batch of some documents."""
    rows, lengths = documents.pad(chosen)
    return DocumentBatch(
        torch.from_numpy(rows).to(device),
        torch.from_numpy(lengths),
        torch.from_numpy(documents.classes[chosen]).to(device),
    )
