"""Word vectors by skip-gram with negative sampling, evaluated by word similarity."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.core.errors import BadOption
from embgeo.core.values import Quantity
from embgeo.training import components
from embgeo.training.data import neighbor_batches
from embgeo.training.data.documents import (
    DocumentCorpus,
    TokenStream,
    find_sets,
    load_documents,
    read_word_pairs,
)
from embgeo.training.data.text import hash_files
from embgeo.training.evaluation import word_similarity
from embgeo.training.evaluation.evaluator import SplitEvaluator, SplitScores
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.methods import Regularizer, Step
from embgeo.training.methods.method import list_embeddings
from embgeo.training.models.language_model import EmbeddingModel
from embgeo.training.registry import take
from embgeo.training.settings import StudySettings
from embgeo.training.study.numbers import ALL, DECIDING, OF_SIMILARITY, SETS
from embgeo.training.study.outcomes import Outcomes
from embgeo.training.tasks.task import Losses, Task, refuse_methods


class SkipGram(EmbeddingModel):
    """Scores u·v of a word u, a row of the embedding, and a neighbor v, a row of the output matrix.

    All rows are initially uniform in ±1/(2d).

    Parameters
    ----------
    n_tokens : int
        Tokens of the vocabulary, N.
    settings
        Those of `embgeo.training.components.SkipGram`.

    References
    ----------
    Mikolov et al., "Distributed representations of words and phrases and their compositionality",
    NeurIPS 2013, §2.2.
    """

    NAME: ClassVar[str] = "skip-gram"
    SETTINGS = components.SkipGram
    SOURCE: ClassVar[str] = "Mikolov et al. 2013, Eq. 4"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "all pairs of a batch share their negatives, weighted so that a pair has the published "
        "number of them in expectation; the paper draws negatives for each pair",
        "frequent words are subsampled as in the code of word2vec, (√(f/t) + 1)·t/f, not by Eq. 5",
        "a step uses the mean loss of a batch of pairs; word2vec takes a step for each pair",
        "rows of contexts are initialized like those of words; those of word2vec start at zero",
        "about 2% of the pairs of an epoch, drawn at random, are left out",
    )

    def __init__(self, n_tokens: int, *, d: int = 100) -> None:
        super().__init__(n_tokens, d)
        self.make_embedding((torch.rand(self.n_tokens, self.d) - 0.5) / self.d)
        assert isinstance(self.embedding, nn.Embedding)
        self.embedding.sparse = True
        self.make_decoder((torch.rand(self.n_tokens, self.d) - 0.5) / self.d, bias=False)

    def contexts(self, ids: Tensor) -> Tensor:
        """Look up rows of the output matrix, with a sparse gradient."""
        weight: Any = self.decoder.weight
        return F.embedding(ids, weight, sparse=weight.is_leaf)


def sampling_loss(words: Tensor, contexts: Tensor, negatives: Tensor, number: int) -> Tensor:
    """Return the mean over pairs of −ln σ(u·v) − k·mean_s ln σ(−u·v_s).

    The S negatives of all pairs count k/S times each, so that a pair has k in expectation.

    `words`, `contexts`: rows u and v of the pairs, shape (B, d). `negatives`: rows v_s, shape
    (S, d). `number`: k.
    """
    near = F.softplus(-(words * contexts).sum(dim=1)).mean()
    # The gradient of a sum is one number, the gradient of a mean a whole matrix.
    far = F.softplus(words @ negatives.T).sum()
    return near + far * (number / (len(words) * len(negatives)))


#: Tokens of the validation documents, and negatives, for the validation loss.
VALIDATED, VALIDATED_NEGATIVES = 20_000, 512


class SimilarityScores(SplitEvaluator):
    """The loss on pairs of validation documents, and word similarity."""

    def __init__(
        self, task: Any, config: StudySettings, dataset: DocumentCorpus, device: torch.device
    ) -> None:
        super().__init__(task, config, dataset, device)
        counts, generator = dataset.vocabulary.counts, np.random.default_rng(0)
        kept = neighbor_batches.keep_chances(counts, task.subsample)
        valid = dataset.valid
        stream = TokenStream(valid.rows[:VALIDATED], valid.documents[:VALIDATED])
        drawn = torch.from_numpy(neighbor_batches.draw_pairs(stream, kept, task.window, generator))
        negatives = neighbor_batches.NegativeSampler(counts, task.power).draw(
            (VALIDATED_NEGATIVES,), generator
        )
        words, contexts = drawn.to(device, torch.int64).unbind(dim=1)
        self.batch = neighbor_batches.NeighborBatch(
            words, contexts, torch.from_numpy(negatives).to(device)
        )
        self.lines: list[str] = []

    @torch.no_grad()
    def valid(self, model: SkipGram) -> SplitScores:
        """Return the loss of pairs and negatives that are always the same."""
        found = self.task.loss(model, self.batch, None, Regularizer())
        return {"loss": float(found.mean), "pairs": self.batch.units}

    def final(self, model: SkipGram) -> tuple[SplitScores, SplitScores, Outcomes]:
        """Return the validation loss, correlations of all sets, and their cosines."""
        W = list_embeddings(model)[0].detach().float().cpu().numpy()
        found = word_similarity.measure_similarity(
            W, self.dataset.vocabulary, self.dataset.similarity
        )
        self.lines = [word_similarity.describe_intervals(found)]
        return self.valid(model), word_similarity.correlate(found), found

    def describe_parts(self) -> list[str]:
        return self.lines


class SkipGramTask(Task):
    """Predict the neighbors of a word, so that words of similar use get similar vectors.

    Settings are those of `embgeo.training.components.SkipGramTask`.
    """

    NAME: ClassVar[str] = "skipgram"
    SETTINGS = components.SkipGramTask
    EVALUATOR: ClassVar[type[SplitEvaluator]] = SimilarityScores
    QUALITY: ClassVar[str] = DECIDING
    SCORES: ClassVar[tuple[str, ...]] = ("loss", *SETS, *(name + ALL for name in SETS))
    QUANTITIES: ClassVar[tuple[Quantity, ...]] = OF_SIMILARITY
    SPARSE: ClassVar[bool] = True
    USES: ClassVar = {"data": ("min_count", "size"), "training": ("accumulate",)}

    def __init__(self, **settings: Any) -> None:
        own: components.SkipGramTask = take(self, settings)
        self.wordsim, self.window, self.negatives = own.wordsim, own.window, own.negatives
        self.shared, self.power, self.subsample = own.shared, own.power, own.subsample

    def adapt(self, config: StudySettings) -> StudySettings:
        chosen = config.optimizer
        decays = chosen.decay == "all" and chosen.algorithm.weight_decay != 0.0
        if chosen.kind != "sgd" or decays or config.training.clip:
            raise BadOption(
                "skip-gram is trained by plain SGD, which leaves rows alone that a step does not "
                "see",
                where="[optimizer]",
                way_out='take kind = "sgd", and leave out clip and decay = "all"',
            )
        refuse_methods(
            config,
            lambda part: "logits" in part.NEEDS,
            "a softmax over all words, which skip-gram does not have",
            "mle, frage, cosreg or sc-exp",
        )
        return config

    def load(self, config: StudySettings) -> DocumentCorpus:
        if not self.wordsim:
            raise BadOption(
                "no folder with sets of word similarity is given",
                way_out="name it by --set task.wordsim=FOLDER",
            )
        folder = Path(self.wordsim)
        corpus = load_documents(config.data, read_word_pairs(folder))
        corpus.files.update(hash_files(folder, find_sets(folder).values()))
        return corpus

    def feed(
        self,
        config: StudySettings,
        dataset: DocumentCorpus,
        group: ProcessGroup,
        device: torch.device,
    ) -> neighbor_batches.NeighborBatches:
        return neighbor_batches.NeighborBatches(
            dataset.train,
            dataset.vocabulary.counts,
            window=self.window,
            subsample=self.subsample,
            shared=self.shared,
            power=self.power,
            batch=config.training.batch,
            seed=config.seeds[0],
            group=group,
            device=device,
        )

    def loss(
        self,
        model: SkipGram,
        batch: neighbor_batches.NeighborBatch,
        carry: Any,
        regularizer: Regularizer,
    ) -> Losses:
        words = model.embedding(batch.words)
        contexts, negatives = model.contexts(batch.contexts), model.contexts(batch.negatives)
        mean = sampling_loss(words, contexts, negatives, self.negatives)
        return Losses(mean, mean, Step(hidden=words, targets=batch.contexts, inputs=batch.words))
