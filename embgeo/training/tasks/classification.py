"""Classification of documents, evaluated by accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch.nn import functional as F

from embgeo.core.values import Quantity
from embgeo.training.checks import flag, natural, require, texts, whole
from embgeo.training.data.document_batches import DocumentBatch, DocumentBatches, gather
from embgeo.training.data.labeled_corpus import (
    FOLDS,
    LabeledCorpus,
    LabeledDocuments,
    load_labeled,
)
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.methods import Regularizer, Step
from embgeo.training.models import EmbeddingModel
from embgeo.training.settings import StudySettings
from embgeo.training.study.document_outcomes import (
    ACCURACY,
    MACRO_F1,
    QUANTITIES,
    DocumentOutcomes,
    score_classes,
)
from embgeo.training.tasks.rcnn import Rcnn
from embgeo.training.tasks.task import (
    OF_TEXTS,
    Losses,
    SplitEvaluator,
    SplitScores,
    Task,
    refuse_methods,
    refuse_settings,
)

#: Defaults of `min_count` and `size` of `[data]`.
MIN_COUNT, SIZE = 2, 30_000


class ClassificationTask(Task):
    """Predict the class of a document.

    Parameters
    ----------
    length : int
        Tokens of a document to read, from its start.
    strip : bool
        Whether to leave out headers and quoted lines of posts, which give newsgroups away.
    merge : sequence of str
        Patterns of classes to merge, such as ``"comp.*|sci.crypt"``; documents of other classes are
        left out. Empty: no class is merged.
    fold : int
        Which tenth of a corpus without a test split is for testing: 0 to 9.
    """

    NAME: ClassVar[str] = "classification"
    MODELS: ClassVar[tuple[type[EmbeddingModel], ...]] = (Rcnn,)
    QUALITY: ClassVar[str] = ACCURACY
    SCORES: ClassVar[tuple[str, ...]] = ("loss", ACCURACY, MACRO_F1)
    QUANTITIES: ClassVar[tuple[Quantity, ...]] = QUANTITIES

    def __init__(
        self, *, length: int = 100, strip: bool = False, merge: Sequence[str] = (), fold: int = 0
    ) -> None:
        self.length, self.strip = whole("length", length), flag("strip", strip)
        self.merge = texts("merge", merge, 'give a list of patterns: ["comp.*", "rec.*"]')
        self.fold = natural("fold", fold)
        require("fold", fold, fold < FOLDS, f"give a whole number below {FOLDS}")

    def load(self, config: StudySettings) -> LabeledCorpus:
        chosen = config.data
        refuse_settings(config, OF_TEXTS)
        return load_labeled(
            Path(chosen.path),
            length=self.length,
            strip=self.strip,
            merge=self.merge,
            fold=self.fold,
            min_count=MIN_COUNT if chosen.min_count is None else chosen.min_count,
            size=SIZE if chosen.size is None else chosen.size,
        )

    def size_model(self, dataset: LabeledCorpus) -> tuple[Any, ...]:
        return len(dataset.vocabulary), len(dataset.classes)

    def feed(
        self,
        config: StudySettings,
        dataset: LabeledCorpus,
        group: ProcessGroup,
        device: torch.device,
    ) -> DocumentBatches:
        return DocumentBatches(
            dataset.train,
            batch=config.training.batch,
            seed=config.seeds[0],
            group=group,
            device=device,
        )

    def loss(
        self,
        model: Any,
        batch: DocumentBatch,
        carry: Any,  # noqa: ARG002
        regularizer: Regularizer,
        *,
        in_loss: bool,
    ) -> Losses:
        mean = F.cross_entropy(model(batch.rows, batch.lengths), batch.classes)
        if not in_loss:
            return Losses(mean, mean)
        return Losses(mean, mean + regularizer(Step(inputs=batch.rows)))

    def evaluator(
        self, config: StudySettings, dataset: LabeledCorpus, device: torch.device
    ) -> ClassificationScores:
        return ClassificationScores(config, dataset, device)

    def check_data(self, config: StudySettings, dataset: LabeledCorpus) -> None:  # noqa: ARG002
        refuse_methods(
            config,
            lambda part: bool(part.NEEDS),
            "predicting tokens, which a classifier does not do",
            "mle, frage, cosreg or sc-exp",
        )


class ClassificationScores(SplitEvaluator):
    """Loss, accuracy and macro-F1 of the other splits."""

    dataset: LabeledCorpus

    @torch.no_grad()
    def score_split(self, model: Any, split: str) -> tuple[SplitScores, DocumentOutcomes]:
        """Evaluate documents of similar length together."""
        documents: LabeledDocuments = getattr(self.dataset, split)
        order = np.argsort(documents.lengths, kind="stable")
        given, total = np.zeros(len(documents), dtype=np.int64), 0.0
        for begin in range(0, len(order), self.config.evaluation.batch):
            chosen = order[begin : begin + self.config.evaluation.batch]
            batch = gather(documents, chosen, self.device)
            logits = model(batch.rows, batch.lengths).double()
            total += float(F.cross_entropy(logits, batch.classes, reduction="sum"))
            given[chosen] = logits.argmax(dim=1).cpu().numpy()
        truth = documents.classes
        scores: SplitScores = {"loss": total / len(documents), self.dataset.unit: len(documents)}
        outcomes = DocumentOutcomes(split, tuple(truth.tolist()), tuple(given.tolist()))
        return {**scores, **score_classes(truth, given)}, outcomes
