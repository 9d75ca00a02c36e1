"""Translation of sentences, evaluated by BLEU."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption
from embgeo.core.values import Quantity
from embgeo.training import components
from embgeo.training.data.batches import BatchIterator
from embgeo.training.data.parallel_corpus import ParallelCorpus, ParallelSplit, load_parallel
from embgeo.training.data.tokenizer import END_ROW
from embgeo.training.evaluation import translation
from embgeo.training.evaluation.evaluator import SplitEvaluator, SplitScores
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.methods import AugmentedLoss, Regularizer, Step
from embgeo.training.models.encoder_decoder import TranslationModel, mask_ends
from embgeo.training.registry import find_method, take
from embgeo.training.settings import StudySettings
from embgeo.training.study.numbers import BLEU, CHRF, OF_TRANSLATION, TOKENIZED_BLEU
from embgeo.training.study.outcomes import Outcomes
from embgeo.training.tasks import task


class PairBatch(NamedTuple):
    """Pairs of a step."""

    #: Source sentences, padded with `END`; shape (B, S).
    source: Tensor
    #: Tokens of each source sentence; shape (B,).
    lengths: Tensor
    #: Decoder inputs, `END` and the targets shifted by one place; shape (B, T).
    inputs: Tensor
    #: Which of the B·T places have a target; shape (U,).
    places: Tensor
    #: Shape (U,).
    targets: Tensor
    #: Targets of all processes, divided by the number of processes.
    units: float
    #: False if the process has no pairs of its own in this step, and these are a stand-in.
    counts: bool = True
    length_ratio: float = 1.0
    first: bool = True


class PairBatches(BatchIterator):
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


class TranslationScores(SplitEvaluator):
    """Loss of the other splits, and finally BLEU and chrF of their translations."""

    def valid(self, model: TranslationModel) -> SplitScores:
        return self.score(model, self.dataset.valid)

    @torch.no_grad()
    def score(self, model: TranslationModel, pairs: ParallelSplit) -> SplitScores:
        """Return the loss and perplexity without smoothing."""
        total = 0.0
        for chosen in self.walk(pairs.target.lengths, pairs.source.lengths):
            batch = gather_pairs(pairs, chosen, self.device)
            states = model(batch.source, batch.lengths, batch.inputs).flatten(0, 1)
            logits = model.head(states.index_select(0, batch.places)).double()
            total += float(F.cross_entropy(logits, batch.targets, reduction="sum"))
        n = len(pairs.target.rows)
        return {"loss": total / n, "perplexity": math.exp(min(total / n, 700.0)), "tokens": n}

    def score_split(self, model: TranslationModel, split: str) -> tuple[SplitScores, Outcomes]:
        """Return the loss and perplexity, and scores of the translations."""
        pairs: ParallelSplit = getattr(self.dataset, split)
        texts = self.write(model, pairs)
        scores, outcomes = translation.score_translations(split, texts, pairs.texts)
        return {**self.score(model, pairs), **scores}, outcomes

    def write(self, model: TranslationModel, pairs: ParallelSplit) -> list[str]:
        """Translate each sentence."""
        rows: list[list[int]] = [[] for _ in range(len(pairs))]
        for chosen in self.walk(pairs.target.lengths, pairs.source.lengths):
            batch = gather_pairs(pairs, chosen, self.device)
            seen = mask_ends(batch.lengths, batch.source.shape[1])
            found = translation.search_beams(model, batch.source, seen, self.task.search)
            for place, one in zip(chosen.tolist(), found, strict=True):
                rows[place] = one
        texts: list[str] = self.dataset.pieces.decode(rows)
        return texts


class TranslationTask(task.Task):
    """Translate a sentence.

    Settings are those of `embgeo.training.components.Translation`.
    """

    NAME: ClassVar[str] = "translation"
    SETTINGS = components.Translation
    EVALUATOR: ClassVar[type[SplitEvaluator]] = TranslationScores
    BATCHES = PairBatches
    QUALITY: ClassVar[str] = BLEU
    SCORES: ClassVar[tuple[str, ...]] = ("loss", "perplexity", BLEU, TOKENIZED_BLEU, CHRF)
    QUANTITIES: ClassVar[tuple[Quantity, ...]] = OF_TRANSLATION
    #: Not `accumulate`, which would count tokens of short batches more than others.
    USES: ClassVar = {"data": ("size",), "evaluation": ("batch", "test")}

    def __init__(self, **settings: Any) -> None:
        own: components.Translation = take(self, settings)
        self.source, self.target, self.test = own.source, own.target, own.test
        self.length, self.smoothing, self.joint = own.length, own.smoothing, own.joint
        power = own.penalty_form == "power"
        self.search = translation.BeamSettings(own.beam, own.penalty, own.more, power=power)

    def adapt(self, config: StudySettings) -> StudySettings:
        if not self.joint and config.model.settings.get("tied") == "three-way":
            raise BadOption(
                "joint of [task] gives each language a vocabulary, and three-way of [model] both "
                "languages one matrix",
                way_out='set tied = "decoder" or "none" in [model]',
            )
        task.refuse_methods(
            config,
            lambda part: issubclass(part, AugmentedLoss),
            "the matrices of a language model",
            "mle, cosreg, sc-exp, frage or adversarial; tied of [model] says which matrices are "
            "one",
        )
        for name in config.compare:
            if "tied" in find_method(name, config.method).model:
                raise BadOption(
                    f"[method.{name}] sets tied of the model, and tokens are counted for [model]",
                    way_out="train each tied of [model] as a study of its own",
                )
        return config

    def load(self, config: StudySettings) -> ParallelCorpus:
        note = translation.describe_metrics()
        corpus = load_parallel(
            config.data,
            source=self.source,
            target=self.target,
            test=self.test,
            length=self.length,
            joint=self.joint,
            one_matrix=config.model.settings.get("tied", "three-way") == "three-way",
        )
        return replace(corpus, notes=(*corpus.notes, note))

    def size_model(self, dataset: ParallelCorpus) -> tuple[int, ...]:
        own = dataset.source_vocabulary
        return (len(dataset.vocabulary), *([] if own is None else [len(own)]))

    def loss(
        self, model: TranslationModel, batch: PairBatch, carry: Any, regularizer: Regularizer
    ) -> task.Losses:
        """Leave out places without a target before the output layer."""
        states = model(batch.source, batch.lengths, batch.inputs).flatten(0, 1)
        hidden = states.index_select(0, batch.places)
        step = Step(hidden, model.head(hidden), batch.targets, batch.inputs)
        step.logits = regularizer.logits(step)
        plain, smoothed = sum_losses(step.logits, batch.targets, self.smoothing)
        # Sums over all processes are divided by all targets: a mean of means would give more weight
        # to targets of a process with few of them.
        share_of_units = float(batch.counts) / batch.units
        return task.Losses(share_of_units * plain, share_of_units * smoothed, step)


def sum_losses(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Return the sums of −ln p of the targets, without and with label smoothing.

    Smoothing spreads a share of each target over all tokens, the target included.

    `logits`: shape (U, N). `targets`: shape (U,).

    References
    ----------
    Szegedy et al., "Rethinking the Inception architecture for computer vision", CVPR 2016, §7.
    """
    log_p = F.log_softmax(logits.float() if logits.element_size() < 4 else logits, dim=-1)
    plain = -log_p.gather(1, targets[:, None]).sum()
    if not smoothing:
        return plain, plain
    return plain, (1.0 - smoothing) * plain - smoothing * log_p.mean(dim=-1).sum()
