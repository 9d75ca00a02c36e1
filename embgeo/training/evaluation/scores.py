"""Scores of a model on the validation and test splits."""

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from embgeo.training.data import Corpus, unigram_perplexity
from embgeo.training.evaluation.continuous_cache import (
    PUBLISHED_CACHES,
    CacheSettings,
    continuous_cache,
)
from embgeo.training.evaluation.dynamic import (
    PUBLISHED_DYNAMIC,
    PUBLISHED_DYNAMIC_OF_MIXTURES,
    DynamicSettings,
    dynamic_evaluation,
)
from embgeo.training.evaluation.evaluator import SplitEvaluator, SplitScores
from embgeo.training.evaluation.perplexity import STATEFUL_BPTT, Perplexity, perplexity
from embgeo.training.methods import popular_rows
from embgeo.training.models import LanguageModel, TransformerXL
from embgeo.training.settings import StudySettings
from embgeo.training.study.numbers import BITS_PER_BYTE
from embgeo.training.study.outcomes import Outcomes, merge_blocks


class Scores(SplitEvaluator):
    """Perplexities of a model on the validation and test splits."""

    def __init__(
        self, task: Any, config: StudySettings, corpus: Corpus, device: torch.device
    ) -> None:
        super().__init__(task, config, corpus, device)
        settings = self.settings = config.evaluation
        self.corpus, self.bptt = corpus, settings.bptt or STATEFUL_BPTT
        counts = torch.from_numpy(corpus.vocabulary.counts)
        self.popular = popular_rows(counts)

    def rows(self, split: str) -> npt.NDArray[np.int64]:
        """Return the tokens of a split that are evaluated."""
        found: npt.NDArray[np.int64] = getattr(self.corpus, split)[: self.settings.tokens]
        return found

    def describe_parts(self) -> list[str]:
        """Write a note on each split of which only the beginning is evaluated."""
        titles = {"valid": "validation"} | ({"test": "test"} if self.has_test else {})
        unknown, found = self.corpus.vocabulary.unknown, []
        for split, title in titles.items():
            rows, whole = self.rows(split), getattr(self.corpus, split)
            if len(rows) < len(whole):
                share = ""
                if unknown is not None:
                    name = self.corpus.vocabulary.tokens[unknown]
                    share = f", of which {np.mean(rows == unknown):.1%} are {name}"
                found.append(
                    f"perplexity on the {title} split is of its first {len(rows):,} of "
                    f"{len(whole):,} tokens{share}"
                )
        return found

    def valid(self, model: LanguageModel) -> SplitScores:
        return self.describe("valid", self.evaluate(model, "valid"))

    def score_split(self, model: LanguageModel, split: str) -> tuple[SplitScores, Outcomes]:
        """Return all scores of a split; the outcomes are losses by blocks."""
        found = self.evaluate(model, split)
        windows = [(window.total, window.tokens) for window in found.windows]
        scores = self.describe(split, found) | self.adapted(model, split)
        return scores, merge_blocks(split, windows)

    def adapted(self, model: LanguageModel, split: str) -> SplitScores:
        """Return the scores of a split that only the end of a run has: cache, dynamic evaluation.

        Their settings are those published for the corpus, or else for WikiText-2.
        """
        rows, name = self.rows(split), self.corpus.name
        found: SplitScores = {}
        with self.reading(model):
            if self.settings.cache:
                cache = PUBLISHED_CACHES.get(name, CacheSettings())
                found["cache"] = continuous_cache(
                    model, rows, settings=cache, bptt=self.bptt, device=self.device
                ).all.perplexity
            if self.settings.dynamic:
                mixed = getattr(model, "mixture", None) is not None
                known = PUBLISHED_DYNAMIC_OF_MIXTURES if mixed else PUBLISHED_DYNAMIC
                dynamic = known.get(name, DynamicSettings())
                found["dynamic"] = dynamic_evaluation(
                    model, rows, self.corpus.train, settings=dynamic, device=self.device
                ).all.perplexity
        return found

    def evaluate(self, model: LanguageModel, split: str) -> Perplexity:
        """Return losses on a split: of all tokens, of rare and frequent ones, of each window."""
        with self.reading(model):
            return perplexity(
                model,
                self.rows(split),
                batch=self.settings.batch,
                bptt=self.bptt,
                stride=self.settings.stride,
                device=self.device,
                popular=self.popular,
            )

    def reading(self, model: LanguageModel) -> AbstractContextManager[None]:
        """Set the memory of models that have one."""
        if not isinstance(model, TransformerXL):
            return nullcontext()
        own = self.settings
        return model.reading(own.memory, own.clamp, same_length=bool(own.same_length))

    def describe(self, split: str, found: Perplexity) -> SplitScores:
        """Return the numbers of a split for the result, with the perplexity of a unigram model."""
        counts, rows = self.corpus.vocabulary.counts, self.rows(split)
        in_bytes: SplitScores = {}
        if self.corpus.row_bytes is not None:
            length = int(self.corpus.row_bytes[rows[1:]].sum())
            in_bytes[BITS_PER_BYTE] = found.all.total / math.log(2.0) / length if length else None
        return {
            "perplexity": found.all.perplexity,
            "loss": found.all.loss,
            "tokens": found.all.tokens,
            "rare": found.rare.perplexity,
            "popular": found.popular.perplexity,
            "unigram": unigram_perplexity(counts, rows),
            **in_bytes,
        }
