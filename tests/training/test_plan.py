"""Checks before a training, and its plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.report.text.study import render_plan  # noqa: E402
from embgeo.training.complete import complete_settings  # noqa: E402
from embgeo.training.loop.check import check_study, plan_runs, sum_memory  # noqa: E402
from embgeo.training.tasks import language_model  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.training_runs import LLAMA, PLAIN, N, corpus, settings, trainer_of  # noqa: E402


def test_positions_that_training_never_sees_are_not_evaluated() -> None:
    model = {"name": "transformer", "d": 8, "layers": 1, "heads": 2}
    evaluation = {"bptt": 11}
    with refusal(BadOption):
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


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("untied", {}),
        ("sc-exp", LLAMA),
        ("mle", {"optimizer": {"kind": "sgd", "momentum": 0.9, "average": 0.5}}),
        ("mle", {"optimizer": {"kind": "sgd"}}),
    ],
)
@pytest.mark.slow
def test_the_least_memory_is_that_of_the_tensors(
    method: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few logits are held: the gradients count."""
    monkeypatch.setattr(language_model, "AT_ONCE", N)
    trainer = trainer_of(settings(method, **more))
    while not trainer.finished:
        trainer.step()
    held = [t for p in trainer.parameters for t in (p, p.grad)] + trainer.average.mean
    states = (t for state in trainer.optimizer.state.values() for t in state.values())
    held += [t for t in states if isinstance(t, torch.Tensor) and t.numel() > 1]
    assert sum_memory(trainer) == sum(t.numel() * t.element_size() for t in held)


def test_logits_count_as_many_as_are_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for at_once in (N, 10**9, 30 * N):
        monkeypatch.setattr(language_model, "AT_ONCE", at_once)
        found.append(sum_memory(trainer_of(settings("al", model=PLAIN))))
    trainer = trainer_of(settings("al", model=PLAIN))
    weights = sum(4 * p.numel() for p in trainer.parameters)
    training = trainer.config.training
    whole = 8 * N * training.batch * training.bptt
    assert found == [
        4 * weights,
        3 * weights + max(weights, whole),
        3 * weights + max(weights, 240 * N),
    ]
    assert found[0] < found[2] < found[1]


def test_a_plan_says_what_does_not_fit() -> None:
    for free, said in ((None, None), (9e6, "activations"), (8e6, "mle")):
        method = {"method": "mle", "parameters": 2, "steps": 3, "memory": 9_000_000}
        plan = {
            "corpus": {"name": "text", "rows": 1, "unit": "tokens", "tokens": {}},
            "model": {"name": "llama"},
            "seeds": [0],
            "tuned": {},
            "methods": [method],
            "free_memory": free,
        }
        *_, last, _ = render_plan(plan, Path("runs"))
        assert ("free on the device" in last) == (said is not None)
        assert said is None or said in last
