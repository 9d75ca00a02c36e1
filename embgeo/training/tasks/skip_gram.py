"""Word vectors by skip-gram with negative sampling, judged by word similarity."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from embgeo.core.errors import BadOption
from embgeo.core.values import Quantity
from embgeo.training.checks import nonnegative, whole
from embgeo.training.data.analogies import FILE, read_analogies
from embgeo.training.data.documents import DocumentCorpus, load_documents
from embgeo.training.data.neighbor_batches import (
    NegativeSampler,
    NeighborBatch,
    NeighborBatches,
    draw_pairs,
    keep_chances,
)
from embgeo.training.data.text import sha256
from embgeo.training.data.word_pairs import KNOWN, read_word_pairs
from embgeo.training.evaluation import analogies
from embgeo.training.evaluation.word_similarity import (
    correlate,
    describe_intervals,
    measure_similarity,
)
from embgeo.training.loop.process import World
from embgeo.training.methods import Regularizer, Step
from embgeo.training.methods.catalog import list_embeddings
from embgeo.training.methods.definitions import find_method
from embgeo.training.models import EmbeddingModel
from embgeo.training.settings import StudySettings
from embgeo.training.study.word_similarity import (
    ALL,
    DECIDING,
    QUANTITIES,
    SETS,
    WordSimilarity,
)
from embgeo.training.tasks.skip_gram_model import SkipGram, sampling_loss
from embgeo.training.tasks.task import OF_TEXTS, Losses, SplitScores, Task, refuse_settings

#: Of words that occur less often, where `data.min_count` is not given.
MIN_COUNT = 5
#: Tokens of the validation documents whose pairs the loss is a mean over, and their negatives.
VALIDATED, VALIDATED_NEGATIVES = 20_000, 512


class SkipGramTask(Task):
    """Predict the words near a word; words that are used alike get vectors that are alike.

    Parameters
    ----------
    wordsim : str
        A folder with sets of word similarity as they are published (``EN-WS-353-ALL.txt`` …).
    window : int
        The largest distance of two words that are paired.
    negatives : int
        Negatives of a pair.
    shared : int
        Words that are drawn as negatives for all pairs of a batch.
    power : float
        Of the counts that negatives are drawn by.
    subsample : float
        The share of the text above which a word is thinned out; 0: none is.
    """

    NAME: ClassVar[str] = "skipgram"
    MODELS: ClassVar[tuple[type[EmbeddingModel], ...]] = (SkipGram,)
    QUALITY: ClassVar[str] = DECIDING
    SCORES: ClassVar[tuple[str, ...]] = (
        "loss",
        *SETS,
        *(name + ALL for name in SETS),
        *analogies.SCORES,
    )
    QUANTITIES: ClassVar[tuple[Quantity, ...]] = (*QUANTITIES, *analogies.QUANTITIES)
    SPARSE: ClassVar[bool] = True

    def __init__(
        self,
        *,
        wordsim: str = "",
        window: int = 5,
        negatives: int = 5,
        shared: int = 64,
        power: float = 0.75,
        subsample: float = 1e-3,
    ) -> None:
        self.wordsim = wordsim
        self.window, self.negatives = whole("window", window), whole("negatives", negatives)
        self.shared = whole("shared", shared)
        self.power = nonnegative("power", power)
        self.subsample = nonnegative("subsample", subsample)

    def load(self, config: StudySettings) -> DocumentCorpus:
        if not self.wordsim:
            raise BadOption(
                "no folder with sets of word similarity is given",
                way_out="name it by --set task.wordsim=FOLDER",
            )
        folder, chosen = Path(self.wordsim), config.data
        refuse_settings(config, {**OF_TEXTS, "data": ("unit", "tokenizer")})
        corpus = load_documents(
            Path(chosen.path),
            min_count=MIN_COUNT if chosen.min_count is None else chosen.min_count,
            size=chosen.size,
            tokens=chosen.tokens,
            similarity=read_word_pairs(folder),
        )
        names = {one.name for one in corpus.similarity}
        stems = [stem for stem, name in KNOWN.items() if name in names]
        corpus.files.update({f"{stem}.txt": sha256(folder / f"{stem}.txt") for stem in stems})
        if not (folder / FILE).is_file():
            return corpus
        corpus.files[FILE] = sha256(folder / FILE)
        return replace(corpus, analogies=read_analogies(folder / FILE))

    def feed(
        self, config: StudySettings, dataset: DocumentCorpus, world: World, device: torch.device
    ) -> NeighborBatches:
        return NeighborBatches(
            dataset.train,
            dataset.vocabulary.counts,
            window=self.window,
            subsample=self.subsample,
            shared=self.shared,
            power=self.power,
            batch=config.training.batch,
            seed=config.seeds[0],
            world=world,
            device=device,
        )

    def loss(
        self,
        model: SkipGram,
        batch: NeighborBatch,
        carry: Any,  # noqa: ARG002
        regularizer: Regularizer,
        *,
        in_loss: bool,
    ) -> Losses:
        words = model.embedding(batch.words)
        contexts, negatives = model.contexts(batch.contexts), model.contexts(batch.negatives)
        mean = sampling_loss(words, contexts, negatives, self.negatives)
        if not in_loss:
            return Losses(mean, mean)
        step = Step(hidden=words, targets=batch.contexts, inputs=batch.words)
        return Losses(mean, mean + regularizer(step))

    def evaluator(
        self,
        config: StudySettings,  # noqa: ARG002
        dataset: DocumentCorpus,
        device: torch.device,
    ) -> SimilarityScores:
        return SimilarityScores(self, dataset, device)

    def rehearse(self, config: StudySettings, dataset: DocumentCorpus) -> None:
        self.feed(config, dataset, World(), torch.device("cpu"))
        chosen = config.optimizer
        decays = chosen.decay == "all" and chosen.weight_decay != 0.0
        if chosen.kind != "sgd" or chosen.momentum or decays or config.training.clip:
            raise BadOption(
                "skip-gram is trained by plain SGD, which leaves rows alone that a step does not "
                "see",
                where="[optimizer]",
                way_out='take kind = "sgd", and leave out momentum, clip and decay = "all"',
            )
        for name in config.compare:
            method = find_method(name, config.method)
            if method.tied is not None or any("logits" in part.NEEDS for part in method.parts):
                raise BadOption(
                    f"{name} is about a softmax over all words, which skip-gram does not have",
                    way_out="compare mle, frage, cosreg, moment-match or sc-exp",
                )

    def estimate_batch(self, config: StudySettings, n_tokens: int) -> int:  # noqa: ARG002
        """Scores of all pairs and negatives with their gradient."""
        return 2 * config.training.batch * self.shared * 4


class SimilarityScores:
    """The loss on pairs of validation documents, word similarity and analogies."""

    def __init__(self, task: SkipGramTask, dataset: DocumentCorpus, device: torch.device) -> None:
        self.task, self.dataset = task, dataset
        counts, generator = dataset.vocabulary.counts, np.random.default_rng(0)
        stream, kept = dataset.valid.take(VALIDATED), keep_chances(counts, task.subsample)
        drawn = torch.from_numpy(draw_pairs(stream, kept, task.window, generator))
        negatives = NegativeSampler(counts, task.power).draw((VALIDATED_NEGATIVES,), generator)
        words, contexts = drawn.to(device, torch.int64).unbind(dim=1)
        self.batch = NeighborBatch(words, contexts, torch.from_numpy(negatives).to(device))
        self.lines: list[str] = []

    @torch.no_grad()
    def valid(self, model: SkipGram) -> SplitScores:
        """The loss of the same pairs and negatives every time."""
        found = self.task.loss(model, self.batch, None, Regularizer(), in_loss=False)
        return {"loss": float(found.mean), "pairs": self.batch.units}

    def final(self, model: SkipGram) -> tuple[SplitScores, SplitScores, WordSimilarity]:
        """The loss; correlations of all sets and accuracies of analogies; cosines of the sets."""
        W = list_embeddings(model)[0].detach().float().cpu().numpy()
        found = measure_similarity(W, self.dataset.vocabulary, self.dataset.similarity)
        self.lines, scores = [describe_intervals(found)], correlate(found)
        if asked := self.dataset.analogies:
            right = analogies.answer_analogies(W, self.dataset.vocabulary, asked)
            self.lines.append(analogies.describe_analogies(right, len(asked)))
            scores |= analogies.score_analogies(right)
        return self.valid(model), scores, found

    def describe_parts(self) -> list[str]:
        """Intervals of what was measured last."""
        return self.lines
