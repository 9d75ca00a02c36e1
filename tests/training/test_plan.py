"""Checks before a training, and its plan."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from embgeo.core.errors import BadOption
from embgeo.training.complete import complete_settings
from embgeo.training.loop.check import check_study, plan_runs
from tests.support.training_runs import N, corpus, settings


def test_positions_that_training_never_sees_are_not_evaluated() -> None:
    model = {"name": "transformer", "d": 8, "layers": 1, "heads": 2}
    evaluation = {"bptt": 11}
    with pytest.raises(BadOption, match="have 11 tokens, and the model learns 10 positions"):
        check_study(complete_settings(settings(model=model, evaluation=evaluation)), corpus())
    rotary = settings(model={**model, "positions": "rotary"}, evaluation=evaluation)
    check_study(complete_settings(rotary), corpus())


def test_a_plan_knows_sizes_and_steps() -> None:
    config = complete_settings(settings(compare=["mle", "untied", "sc-exp"]))
    mle, untied, factored = plan_runs(config, corpus())
    assert [plan.method for plan in (mle, untied, factored)] == ["mle", "untied", "sc-exp"]
    assert untied.parameters - mle.parameters == N * 8
    # As it is saved, whatever it is trained as.
    assert factored.parameters == mle.parameters
    assert mle.steps == 18
