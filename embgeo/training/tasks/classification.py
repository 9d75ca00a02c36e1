"""Classification of documents, evaluated by accuracy."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption
from embgeo.core.values import Quantity
from embgeo.training import components
from embgeo.training.data import labeled_corpus
from embgeo.training.data.batches import BatchIterator
from embgeo.training.evaluation.evaluator import SplitEvaluator, SplitScores
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.methods import Regularizer, Step
from embgeo.training.models.language_model import EmbeddingModel
from embgeo.training.models.recurrent import find_mirrored, mirror
from embgeo.training.registry import take
from embgeo.training.settings import StudySettings
from embgeo.training.study.numbers import ACCURACY, MACRO_F1, OF_CLASSIFICATION
from embgeo.training.study.outcomes import Outcomes, score_classes
from embgeo.training.tasks import task


class DocumentBatch(NamedTuple):
    """Documents of a step."""

    #: Shape (B, T), with T tokens of the longest document; rows after the end of a document are
    #: arbitrary.
    rows: Tensor
    #: Tokens of each document, on the CPU; shape (B,).
    lengths: Tensor
    #: Shape (B,).
    classes: Tensor
    length_ratio: float = 1.0
    first: bool = True

    @property
    def units(self) -> int:
        return len(self.classes)


class DocumentBatches(BatchIterator):
    """Shuffled documents; an epoch ends with its last whole batch.

    `batch`: documents of a step, over all processes.
    """

    def __init__(
        self,
        documents: labeled_corpus.LabeledDocuments,
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


def gather(
    documents: labeled_corpus.LabeledDocuments, chosen: IntArray, device: torch.device
) -> DocumentBatch:
    rows, lengths = documents.pad(chosen)
    return DocumentBatch(
        torch.from_numpy(rows).to(device),
        torch.from_numpy(lengths),
        torch.from_numpy(documents.classes[chosen]).to(device),
    )


class Rcnn(EmbeddingModel):
    """Classes of documents from tanh(W [c_l; e; c_r]), the maximum over the tokens.

    Recurrent layers compute c_l of a token from all tokens before it, and c_r from all after it. As
    no token is predicted, the output matrix is the input embedding, so that methods on either act
    on the same matrix. The matrix of the classes is ``classes.weight``.

    Parameters
    ----------
    n_tokens : int
        Tokens of the vocabulary, N.
    n_classes : int
    settings
        Those of `embgeo.training.components.Rcnn`.

    References
    ----------
    Lai et al., "Recurrent convolutional neural networks for text classification", AAAI 2015,
    Eq. 1–7.
    """

    NAME: ClassVar[str] = "rcnn"
    SETTINGS = components.Rcnn
    SOURCE: ClassVar[str] = "Lai et al. 2015, Eq. 1–7"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "the embedding is drawn at random; Lai et al. start from that of a skip-gram model",
        "dropout on the embedding, and a variant of Adam in place of plain SGD",
        "contexts and the layer before the maximum have 100 units; documents are cut after 100 "
        "tokens by default, where the paper reads whole documents",
    )

    def __init__(self, n_tokens: int, n_classes: int = 2, **settings: Any) -> None:
        own: components.Rcnn = take(self, settings)
        d, units = own.d, own.context
        super().__init__(n_tokens, d)
        self.make_embedding(0.1 * torch.randn(n_tokens, d))
        self.make_decoder(None, bias=False)
        self.dropout = nn.Dropout(own.dropout)
        self.left, self.right = nn.RNN(d, units), nn.RNN(d, units)
        #: c_l of the first token and c_r of the last one.
        self.start = nn.Parameter(torch.zeros(2, units))
        self.combine = nn.Linear(d + 2 * units, own.hidden)
        self.classes = nn.Linear(own.hidden, n_classes)

    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """Return logits of the classes, shape (B, C), of documents (B, T) with these `lengths`."""
        x = self.dropout(self.embedding(rows)).transpose(0, 1)
        place = torch.arange(len(x), device=rows.device)[:, None]
        length = lengths.to(rows.device)
        first, last = self.start[:, None].expand(-1, len(rows), -1).contiguous()
        # Whole batches, the second time of mirrored documents, take half of the time of packed
        # sequences. States after the end of a document are not used.
        mirrored = find_mirrored(length, len(x))
        before = self.left(x, first[None])[0]
        after = mirror(self.right(mirror(x, mirrored), last[None])[0], mirrored)
        left = torch.cat([first[None], before[:-1]])
        right = torch.where((place + 1 < length)[:, :, None], after.roll(-1, dims=0), last)
        hidden = torch.tanh(self.combine(torch.cat([left, x, right], dim=-1)))
        behind = (place >= length)[:, :, None]
        logits: Tensor = self.classes(hidden.masked_fill(behind, -torch.inf).amax(dim=0))
        return logits


class ClassificationScores(SplitEvaluator):
    """Loss, accuracy and macro-F1 of the other splits."""

    dataset: labeled_corpus.LabeledCorpus

    @torch.no_grad()
    def score_split(self, model: Any, split: str) -> tuple[SplitScores, Outcomes]:
        """Evaluate documents of similar length together."""
        documents: labeled_corpus.LabeledDocuments = getattr(self.dataset, split)
        given, total = np.zeros(len(documents), dtype=np.int64), 0.0
        for chosen in self.walk(documents.lengths):
            batch = gather(documents, chosen, self.device)
            logits = model(batch.rows, batch.lengths).double()
            total += float(F.cross_entropy(logits, batch.classes, reduction="sum"))
            given[chosen] = logits.argmax(dim=1).cpu().numpy()
        truth = documents.classes
        scores: SplitScores = {
            "loss": total / len(documents),
            self.dataset.unit: len(documents),
        }
        pairs = tuple(zip(truth.tolist(), given.tolist(), strict=True))
        scores |= {name: float(one) for name, one in score_classes(truth, given).items()}
        return scores, Outcomes("documents", split, pairs)


class ClassificationTask(task.Task):
    """Predict the class of a document.

    Settings are those of `embgeo.training.components.Classification`.
    """

    NAME: ClassVar[str] = "classification"
    SETTINGS = components.Classification
    EVALUATOR: ClassVar[type[SplitEvaluator]] = ClassificationScores
    BATCHES = DocumentBatches
    QUALITY: ClassVar[str] = ACCURACY
    SCORES: ClassVar[tuple[str, ...]] = ("loss", ACCURACY, MACRO_F1)
    QUANTITIES: ClassVar[tuple[Quantity, ...]] = OF_CLASSIFICATION
    USES: ClassVar = {
        "data": ("min_count", "size"),
        "training": ("accumulate",),
        "evaluation": ("batch", "test"),
    }

    def __init__(self, **settings: Any) -> None:
        own: components.Classification = take(self, settings)
        self.length, self.strip, self.merge = own.length, own.strip, own.merge

    def adapt(self, config: StudySettings) -> StudySettings:
        task.refuse_methods(
            config,
            lambda part: bool(part.NEEDS),
            "predicting tokens, which a classifier does not do",
            "mle, frage, cosreg or sc-exp",
        )
        return config

    def load(self, config: StudySettings) -> labeled_corpus.LabeledCorpus:
        return labeled_corpus.load_labeled(
            config.data, length=self.length, strip=self.strip, merge=self.merge
        )

    def size_model(self, dataset: labeled_corpus.LabeledCorpus) -> tuple[Any, ...]:
        return len(dataset.vocabulary), len(dataset.classes)

    def loss(
        self, model: Any, batch: DocumentBatch, carry: Any, regularizer: Regularizer
    ) -> task.Losses:
        mean = F.cross_entropy(model(batch.rows, batch.lengths), batch.classes)
        return task.Losses(mean, mean, Step(inputs=batch.rows))
