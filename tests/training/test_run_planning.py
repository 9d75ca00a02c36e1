"""Plans of runs, and epochs that are fitted to a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.loop import planning  # noqa: E402
from embgeo.training.loop.planning import (  # noqa: E402
    RunBudget,
    find_most_steps,
    fit_epochs,
    plan_runs,
    settle,
)
from embgeo.training.loop.rehearsal import rehearse  # noqa: E402
from embgeo.training.loop.run import write_study_settings  # noqa: E402
from embgeo.training.resolve import resolve  # noqa: E402
from embgeo.training.settings import StudySettings  # noqa: E402
from embgeo.workflows.train import describe_estimate  # noqa: E402
from tests.support.training_runs import CPU, N, corpus, loop_of, settings, spread  # noqa: E402


def planned(method: str = "mle", **more: Any) -> RunBudget:
    """Ten steps an epoch, of a second each; an evaluation and a measurement of two."""
    known = {
        "parameters": 1,
        "memory": 1,
        "steps": 20,
        "steps_per_epoch": 10,
        "seconds_per_step": 1.0,
        "evaluation": 2.0,
        "geometry": 2.0,
        "start": 3.0,
        "end": 5.0,
    }
    return RunBudget(method, **{**known, **more})


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two methods whose times are known: what clocks say is not tested."""
    found = [planned("mle"), planned("cosreg", seconds_per_step=1.5)]
    monkeypatch.setattr(planning, "plan_runs", lambda *_: found)


def test_the_time_of_a_run_counts_everything() -> None:
    each_epoch = settings()
    assert planned().seconds(each_epoch) == 3 + 5 + 20 + 2 * 2
    assert planned().seconds(each_epoch, 25) == 3 + 5 + 25 + 2 * 2
    often = settings(evaluation={"every": 4}, geometry={"every": 5})
    # Geometry is measured before the first step and at the end, too.
    assert planned().seconds(often) == 3 + 5 + 20 + 5 * 2 + (4 + 2) * 2


def test_most_steps_are_the_most() -> None:
    for epoch in (1, 7, 10):
        for limit in (1.0, 5.5, 9.9, 10.0, 70.0, 1234.5):
            found = find_most_steps(lambda steps: 0.5 * steps + 1.0, limit, epoch)
            fits = [s for s in range(1, 3000) if 0.5 * s + 1.0 <= limit]
            whole = [s for s in fits if s % epoch == 0]
            assert found == (max(whole) if whole else max(fits, default=0))


@pytest.mark.usefixtures("known")
def test_epochs_are_the_same_for_all_methods_and_fit() -> None:
    config = settings(compare=["mle", "cosreg"], seeds=[0, 1])
    # Two seeds: 2·(16 + 25e + 4e) seconds for e epochs of ten steps.
    found = fit_epochs(config, corpus(), 400.0, None)
    assert (found.training.epochs, found.training.steps) == (5, None)
    assert found.training.budget == 400.0
    assert 0.9 * 400.0 >= 2 * (16 + 29 * 5)
    assert 0.9 * 400.0 < 2 * (16 + 29 * 6)


@pytest.mark.usefixtures("known")
def test_less_than_an_epoch_is_given_in_steps() -> None:
    found = fit_epochs(settings(compare=["mle", "cosreg"]), corpus(), 40.0, None)
    assert (found.training.epochs, found.training.steps) == (1, 8)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("seconds", "message"),
    [(17.0, "2 runs do not fit into 17 seconds: without a step they take 16"), (0.0, "is none")],
)
def test_a_budget_that_is_too_short_is_refused(seconds: float, message: str) -> None:
    with pytest.raises(BadOption, match=message):
        fit_epochs(settings(compare=["mle", "cosreg"]), corpus(), seconds, None)


@pytest.mark.usefixtures("known")
def test_a_comparison_that_was_begun_keeps_its_epochs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(compare=["mle", "cosreg"], training={"budget": 400.0})
    first = settle(config, corpus(), tmp_path, None)
    assert first.training.epochs > 2
    write_study_settings(first, tmp_path)
    monkeypatch.setattr(planning, "plan_runs", lambda *_: [planned(seconds_per_step=0.1)])
    assert settle(config, corpus(), tmp_path, None) == first
    again = settle(first.updated({"training": {"save_steps": 9}}), corpus(), tmp_path, None)
    assert again.training.epochs == first.training.epochs
    other = config.updated({"training": {"budget": 500.0}})
    assert settle(other, corpus(), tmp_path, None).training.epochs > first.training.epochs


def test_without_a_budget_nothing_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def timed(*_: Any) -> list[RunBudget]:
        raise AssertionError

    monkeypatch.setattr(planning, "plan_runs", timed)
    found = settle(settings(), corpus(), tmp_path, None)
    assert isinstance(found, StudySettings)
    assert found.training.epochs == 2


def test_positions_that_training_never_sees_are_not_evaluated() -> None:
    model = {"name": "transformer", "d": 8, "layers": 1, "heads": 2}
    evaluation = {"bptt": 11}
    with pytest.raises(BadOption, match="have 11 tokens, and the model learns 10 positions"):
        rehearse(resolve(settings(model=model, evaluation=evaluation)), corpus())
    rotary = settings(model={**model, "positions": "rotary"}, evaluation=evaluation)
    rehearse(resolve(rotary), corpus())


def test_a_plan_knows_sizes_and_steps() -> None:
    config = settings(compare=["mle", "untied", "sc-exp"], geometry={"every": 5})
    mle, untied, factored = plan_runs(config, corpus(), spread)
    assert [plan.method for plan in (mle, untied, factored)] == ["mle", "untied", "sc-exp"]
    assert untied.parameters - mle.parameters == N * 8
    # As it is saved, whatever it is trained as.
    assert factored.parameters == mle.parameters
    assert (mle.steps, mle.steps_per_epoch) == (18, 9)
    weights = 4 * mle.parameters
    loop = loop_of(config)
    loop.step()
    adam = sum(
        value.numel() * value.element_size()
        for state in loop.optimizer.state.values()
        for value in state.values()
    )
    assert 2 * weights < adam < 2.1 * weights
    assert mle.memory == 2 * weights + adam + 2 * 4 * (4 * 10 * N)
    for plan in (mle, untied, factored):
        assert plan.seconds_per_step > 0.0
        assert plan.evaluation > 0.0
        assert plan.geometry > 0.0


def test_long_steps_are_timed_by_parts_of_their_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock by which a step takes 1 s and 0.1 s for each token of a stream."""
    loop = loop_of(settings(training={"bptt": 40}))
    now, lengths = [0.0], list[int]()

    def step(_flags: Any = ()) -> None:
        lengths.append(loop.batches.bptt)
        now[0] += 1.0 + 0.1 * loop.batches.bptt

    monkeypatch.setattr(loop, "step", step)
    monkeypatch.setattr(planning, "read_clock", lambda _device: now[0])
    assert planning.time_step(loop, CPU) == pytest.approx(5.0)
    assert lengths == [2, 2, 8]
    assert loop.batches.bptt == 40


def test_plans_are_heard_one_by_one_and_time_evaluation_once() -> None:
    heard: list[list[str]] = []
    config = settings(compare=["mle", "cosreg"])
    found = plan_runs(
        config, corpus(), None, lambda known: heard.append([one.method for one in known])
    )
    assert heard == [["mle"], ["mle", "cosreg"]]
    assert found[0].evaluation == found[1].evaluation > 0.0


def test_an_estimate_takes_the_methods_to_come_for_alike() -> None:
    config = settings(compare=["mle", "cosreg", "re"], seeds=[0, 1])
    # 16 + 25·2 seconds each, of three methods and two seeds.
    line = describe_estimate(config, [planned("mle")])
    assert line == "1/3  mle: 32 s a run; about 3 min 12 s in all"
