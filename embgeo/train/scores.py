"""What is measured on the validation and the test split."""

from __future__ import annotations

import torch

from embgeo.train.config import Evaluation
from embgeo.train.data import Corpus
from embgeo.train.evaluation import perplexity
from embgeo.train.models import LanguageModel
from embgeo.train.regularizers import popular_rows

Found = dict[str, float | None]


class Scores:
    """Perplexities of a model on the splits that it is not trained on.

    Parameters
    ----------
    settings : Evaluation
    corpus : Corpus
    device : torch.device
        Where the model is.
    """

    def __init__(self, settings: Evaluation, corpus: Corpus, device: torch.device) -> None:
        self.settings, self.corpus, self.device = settings, corpus, device
        counts = torch.from_numpy(corpus.vocabulary.counts)
        self.popular = popular_rows(counts, settings.popular)

    def valid(self, model: LanguageModel) -> Found:
        """On the validation split."""
        return self.of(model, "valid")

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
