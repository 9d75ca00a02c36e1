"""Checks before a training, and its plan."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from embgeo.training.complete import complete_settings  # noqa: E402
from embgeo.training.loop.check import plan_runs  # noqa: E402
from tests.support.training_runs import N, corpus, settings  # noqa: E402


def test_a_plan_knows_sizes_and_steps() -> None:
    config = complete_settings(settings(compare=["mle", "untied", "sc-exp"]))
    mle, untied, factored = plan_runs(config, corpus())
    assert [plan["method"] for plan in (mle, untied, factored)] == ["mle", "untied", "sc-exp"]
    assert untied["parameters"] - mle["parameters"] == N * 8
    # As it is saved, whatever it is trained as.
    assert factored["parameters"] == mle["parameters"]
    assert mle["steps"] == 18
