"""What is measured on the validation and the test split."""

from __future__ import annotations

import torch

from embgeo.training.data import Corpus
from embgeo.training.evaluation import (
    PUBLISHED_CACHES,
    PUBLISHED_DYNAMIC,
    CacheSettings,
    DynamicSettings,
    continuous_cache,
    dynamic_evaluation,
    perplexity,
)
from embgeo.training.methods import popular_rows
from embgeo.training.models import LanguageModel
from embgeo.training.settings.sections import EvaluationSettings

Found = dict[str, float | None]


class Scores:
    """Perplexities of a model on the splits that it is not trained on.

    Parameters
    ----------
    settings : EvaluationSettings
    corpus : Corpus
    device : torch.device
        Where the model is.
    """

    def __init__(self, settings: EvaluationSettings, corpus: Corpus, device: torch.device) -> None:
        self.settings, self.corpus, self.device = settings, corpus, device
        counts = torch.from_numpy(corpus.vocabulary.counts)
        self.popular = popular_rows(counts, settings.popular)

    def valid(self, model: LanguageModel) -> Found:
        """On the validation split."""
        return self.of(model, "valid")

    def final(self, model: LanguageModel) -> tuple[Found, Found | None]:
        """On both splits, with cache and dynamic evaluation where they are asked for.

        Their settings are those published for the corpus, or else for WikiText-2.
        """
        has_test = self.settings.test and self.corpus.test is not None
        valid = self.of(model, "valid") | self.adapted(model, "valid")
        return valid, self.of(model, "test") | self.adapted(model, "test") if has_test else None

    def adapted(self, model: LanguageModel, split: str) -> Found:
        """Perplexities of a model that goes on learning from the split as it reads it."""
        rows, name = getattr(self.corpus, split), self.corpus.name
        found: Found = {}
        if self.settings.cache:
            cache = PUBLISHED_CACHES.get(name, CacheSettings())
            cached = continuous_cache(
                model, rows, settings=cache, bptt=self.settings.bptt, device=self.device
            )
            found["cache"] = cached.perplexity
        if self.settings.dynamic:
            dynamic = PUBLISHED_DYNAMIC.get(name, DynamicSettings())
            found["dynamic"] = dynamic_evaluation(
                model, rows, self.corpus.train, settings=dynamic, device=self.device
            ).perplexity
        return found

    def of(self, model: LanguageModel, split: str) -> Found:
        """Perplexity on a split, of all tokens, of rare and of popular ones."""
        found = perplexity(
            model,
            getattr(self.corpus, split),
            batch=self.settings.batch,
            bptt=self.settings.bptt,
            device=self.device,
            vocabulary=self.corpus.vocabulary,
            popular=self.popular,
        )
        return {
            "perplexity": found.perplexity,
            "loss": found.loss,
            "tokens": found.tokens,
            "rare": found.rare,
            "popular": found.popular,
        }
