"""What all tasks evaluate with."""

from typing import Any

import torch

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

    def valid(self, model: Any) -> SplitScores:
        """Return the scores of the validation split; the lowest ``"loss"`` marks the best model."""
        return self.score_split(model, "valid")[0]

    def final(self, model: Any) -> tuple[SplitScores, SplitScores | None, Outcomes | None]:
        """Return scores of validation and, if any, test split, and outcomes for bootstraps."""
        valid, outcomes = self.score_split(model, "valid")
        if not self.config.evaluation.test:
            return valid, None, outcomes
        return valid, *self.score_split(model, "test")

    def describe_parts(self) -> list[str]:
        """Write notes on the numbers, called after `final`."""
        return []
