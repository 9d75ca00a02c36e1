"""Learning rates that are tried: which is taken, what is kept, and how it is resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from embgeo.core.errors import BadOption, Diverged
from embgeo.training.complete import complete_settings
from embgeo.training.loop import loop as runs
from embgeo.training.settings import parse_settings
from embgeo.training.study.assemble import describe_tried
from embgeo.training.study.record import StudyMethod, TriedRate
from embgeo.training.study.run_result import load_result
from embgeo.workflows.train import train_runs
from embgeo.workflows.train_monitor import RunMonitor
from embgeo.workflows.train_task import StudyTask, parse_rates
from embgeo.workflows.train_tuning import read_tried, read_tuned, tune_rates
from tests.support.training_runs import Stopped, corpus, numbers, run, settings, stopping

RATES = [1e-4, 3e-2]


def task_of(folder: Path, rates: list[float] = RATES, **tables: Any) -> StudyTask:
    config = settings(compare=["mle", "cosreg"], tune={"lr": rates}, **tables)
    return StudyTask(complete_settings(config), corpus(), folder, "embgeo train")


def tuned(task: StudyTask, monitor: RunMonitor | None = None) -> StudyTask:
    task = replace(task, tuned=read_tuned(task))
    return tune_rates(task, None, monitor or RunMonitor(), leads=True)  # type: ignore[arg-type]


@pytest.mark.slow
def test_each_method_takes_the_rate_of_the_lowest_perplexity(tmp_path: Path) -> None:
    said: list[str] = []
    task = tuned(task_of(tmp_path, seeds=[0, 1]), RunMonitor(say=said.append))
    assert task.tuned == {"mle": 3e-2, "cosreg": 3e-2}
    assert len(said) == 4
    assert said[0].startswith("tuning  mle, learning rate 0.0001: validation perplexity ")
    for method in task.settings.compare:
        slow, fast = read_tried(task, method)
        assert (slow.chosen, fast.chosen) == (False, True)
        assert slow.perplexity is not None
        assert fast.perplexity is not None
        assert slow.perplexity > fast.perplexity
        result = load_result(task.home(method, 0))
        assert result.valid["perplexity"] == fast.perplexity
        assert result.settings["optimizer"]["lr"] == 3e-2
    train_runs(task, None, RunMonitor(), leads=False)  # type: ignore[arg-type]
    assert load_result(task.home("mle", 1)).settings["optimizer"]["lr"] == 3e-2
    # The run of the first seed is that of the trial, to the bit.
    alone = tmp_path / "alone"
    run(task.run_settings("mle", 0), alone)
    weights = [(home / "model.safetensors").read_bytes() for home in (alone, task.home("mle", 0))]
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_what_was_tried_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tuned(task_of(tmp_path))
    monkeypatch.setattr(runs, "train_run", None)
    assert tuned(task_of(tmp_path)).tuned == first.tuned
    with pytest.raises(BadOption, match=r"was tuned over the rates 0.0001, 0.03; give the same"):
        tuned(task_of(tmp_path, [1e-4]))


@pytest.mark.slow
def test_tuning_is_resumed_to_the_same_bits(tmp_path: Path) -> None:
    whole = tuned(task_of(tmp_path / "whole"))
    broken = task_of(tmp_path / "broken", training={"save_steps": 5})
    with pytest.raises(Stopped):
        tuned(broken, RunMonitor(stopping(after=24)))
    again = tuned(broken)
    assert again.tuned == whole.tuned
    for method in ("mle", "cosreg"):
        assert read_tried(again, method) == read_tried(whole, method)
        assert numbers(again.home(method, 0)) == numbers(whole.home(method, 0))


def test_a_rate_that_diverges_is_not_chosen(tmp_path: Path, monkeypatch: Any) -> None:
    trained = runs.train_run

    def diverge(config: Any, *others: Any, **more: Any) -> Any:
        if config.optimizer.lr > 1e-3:
            raise Diverged("the loss is not a number")
        return trained(config, *others, **more)

    monkeypatch.setattr(runs, "train_run", diverge)
    task = tuned(task_of(tmp_path))
    assert task.tuned == {"mle": 1e-4, "cosreg": 1e-4}
    assert [one.perplexity is None for one in read_tried(task, "mle")] == [False, True]
    with pytest.raises(Diverged):
        tuned(task_of(tmp_path / "all", [1.0, 2.0]))


def test_rates_are_in_the_settings_of_the_study_alone() -> None:
    config = complete_settings(settings(tune={"lr": RATES}))
    assert parse_settings(config.text(), "test") == config
    assert "tune" not in config.one("mle", 0).tables()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr", "'lr' is not a list of learning rates; write it as in lr=1e-3"),
        ("lr=fast", "not a list"),
        ("rate=1", "not a list"),
        ("lr=1,1", "lr of [tune] is [1.0, 1.0]; give each once"),
        ("lr=0.1,-1", "lr of [tune] is -1.0; give a number above 0"),
    ],
)
def test_rates_that_make_no_sense(text: str, message: str) -> None:
    with pytest.raises(BadOption) as error:
        complete_settings(settings(tune={"lr": parse_rates(text)}))
    assert message in str(error.value)


def test_a_note_says_what_was_tried() -> None:
    values = ((0.001, 130.5, False), (0.003, 125.0, True), (1.0, None, False))
    tried = tuple(TriedRate(*value) for value in values)
    method = StudyMethod("mle", "MLE", "", tried=tried)
    shown = "(0.001: 130.5, 0.003: 125, 1: diverged)"
    said = f"mle: learning rate 0.003, by the validation perplexity {shown}"
    assert describe_tried(method) == said
    at_end = StudyMethod("mle", "MLE", "", tried=tried[:2])
    assert describe_tried(at_end).endswith("a better one may lie beyond")
