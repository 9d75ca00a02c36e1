"""Checks before a training, and its plan."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.complete import complete_settings  # noqa: E402
from embgeo.training.loop.check import check_study, plan_runs  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.training_runs import N, corpus, settings  # noqa: E402


def test_positions_that_training_never_sees_are_not_evaluated() -> None:
    model = {"name": "transformer", "d": 8, "layers": 1, "heads": 2}
    evaluation = {"bptt": 11}
    with refusal(BadOption):
        check_study(complete_settings(settings(model=model, evaluation=evaluation)), corpus())
    waves = settings(model={**model, "positions": "sinusoidal"}, evaluation=evaluation)
    check_study(complete_settings(waves), corpus())


def test_a_plan_knows_sizes_and_steps() -> None:
    config = complete_settings(settings(compare=["mle", "untied", "sc-exp"]))
    mle, untied, factored = plan_runs(config, corpus())
    assert [plan["method"] for plan in (mle, untied, factored)] == ["mle", "untied", "sc-exp"]
    assert untied["parameters"] - mle["parameters"] == N * 8
    # As it is saved, whatever it is trained as.
    assert factored["parameters"] == mle["parameters"]
    assert mle["steps"] == 18
