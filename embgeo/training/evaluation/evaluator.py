"""What all tasks evaluate with."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from embgeo.core.arrays import IntArray
from embgeo.training.settings import StudySettings
from embgeo.training.study.outcomes import Outcomes

#: Scores of one split by name; None for an unknown one.
SplitScores = dict[str, float | None]


class SplitEvaluator:
    """Evaluates the model of a run on held-out data."""

    def __init__(
        self, task: Any, config: StudySettings, dataset: Any, device: torch.device
    ) -> None:
        self.task, self.config, self.dataset, self.device = task, config, dataset, device

    def score_split(self, model: Any, split: str) -> tuple[SplitScores, Outcomes | None]:
        """Return the scores of ``"valid"`` or ``"test"``, and outcomes for bootstraps."""
        raise NotImplementedError

    @property
    def has_test(self) -> bool:
        """Whether there is a test split to be evaluated."""
        return self.config.evaluation.test and self.dataset.test is not None

    def valid(self, model: Any) -> SplitScores:
        """Return the scores of the validation split; the lowest ``"loss"`` marks the best model."""
        return self.score_split(model, "valid")[0]

    def final(self, model: Any) -> tuple[SplitScores, SplitScores | None, Outcomes | None]:
        """Return scores of validation and, if any, test split, and outcomes for bootstraps."""
        valid, outcomes = self.score_split(model, "valid")
        return valid, *(self.score_split(model, "test") if self.has_test else (None, outcomes))

    def walk(self, *lengths: IntArray) -> Iterator[IntArray]:
        """Yield the places of sequences of similar length, as many as are evaluated together."""
        order = np.lexsort(lengths)
        for begin in range(0, len(order), self.config.evaluation.batch):
            yield order[begin : begin + self.config.evaluation.batch]

    def describe_parts(self) -> list[str]:
        """Write notes on the numbers, called after `final`."""
        return []
