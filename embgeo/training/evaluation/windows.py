"""How much of a text is evaluated, and in which windows, where settings do not say it."""

from __future__ import annotations

from dataclasses import replace

from embgeo.core.errors import BadOption
from embgeo.training.models import LanguageModel
from embgeo.training.sections import EvaluationSettings
from embgeo.training.settings import StudySettings

#: Tokens of a split that are evaluated at least: the error of ln perplexity is then about 0.02.
FEWEST_EVALUATED = 20_000
#: Tokens of a window of an evaluation where a state is carried over: they bound its memory alone.
STATEFUL_BPTT = 70


def limit_evaluation(config: StudySettings) -> EvaluationSettings:
    """The settings of evaluation, whose cost is in proportion where few steps are trained."""
    training, found = config.training, config.evaluation
    if found.tokens is not None or training.steps is None:
        return found
    trained = training.steps * training.accumulate * training.batch * training.bptt
    return replace(found, tokens=max(FEWEST_EVALUATED, trained // 4))


def resolve_windows(
    found: EvaluationSettings, trained: int, kind: type[LanguageModel]
) -> EvaluationSettings:
    """The windows of an evaluation: those of the training where they limit what a token sees.

    `trained`: tokens of a window of the training.
    """
    usual = trained if kind.WINDOWED or not kind.CARRIES_STATE else STATEFUL_BPTT
    bptt = usual if found.bptt is None else found.bptt
    if found.stride is not None and kind.CARRIES_STATE:
        raise BadOption(
            f"stride of [evaluation] is {found.stride}, and {kind.NAME} carries its state over",
            way_out="leave it out: every token is seen with all before it",
        )
    if found.stride is not None and found.stride > bptt:
        raise BadOption(
            f"stride of [evaluation] is {found.stride:,}, in windows of {bptt:,} tokens",
            way_out=f"give {bptt:,} at most",
        )
    own = {"memory": found.memory, "clamp": found.clamp, "same_length": found.same_length}
    for name, value in own.items():
        if value and not hasattr(kind, "reading"):
            raise BadOption(
                f"{name} of [evaluation] is {value}, and {kind.NAME} has no memory of tokens",
                way_out="leave it out",
            )
    return replace(found, bptt=bptt)
