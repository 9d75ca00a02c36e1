"""Settings that are tried: which is taken, what is kept, and how it is resumed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")


from embgeo.core.errors import BadOption, Diverged
from embgeo.core.progress import RunMonitor
from embgeo.training.complete import complete_settings
from embgeo.training.loop.checkpoint import run_folder
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.settings import parse_settings
from embgeo.training.study.assemble import describe_tried
from embgeo.training.study.record import StudyMethod, TriedValue
from embgeo.training.study.run_result import load_result
from embgeo.workflows import train_runs
from embgeo.workflows.train import train_every_run
from embgeo.workflows.train_runs import RunsHere
from embgeo.workflows.train_settings import (
    TUNING_SEED,
    Score,
    choose,
    parse_tuned,
    read_tuning,
    tune_settings,
)
from tests.support.refusals import refusal
from tests.support.training_runs import Stopped, corpus, numbers, run, settings, stopping

LR = "optimizer.lr"
RATES = [1e-4, 3e-2]


METHODS = ["mle", "cosreg"]


def tuned(
    folder: Path, rates: list[float] = RATES, monitor: RunMonitor | None = None, **tables: Any
) -> dict[str, dict[str, Any]]:
    config = complete_settings(settings(compare=METHODS, tune={"lr": rates}, **tables))
    return tune_settings(config, folder, runs_here(monitor))


def runs_here(monitor: RunMonitor | None = None) -> RunsHere:
    return RunsHere(corpus(), None, "", monitor or RunMonitor(), ProcessGroup())


def tried(folder: Path, method: str) -> tuple[TriedValue, ...]:
    found = read_tuning(folder, method, {LR: tuple(RATES)})
    assert found is not None
    return found.tried


@pytest.mark.slow
def test_each_method_takes_the_rate_of_the_lowest_perplexity(tmp_path: Path) -> None:
    said: list[str] = []
    rates = tuned(tmp_path, monitor=RunMonitor(say=said.append), seeds=[0, 1])
    assert rates == {"mle": {LR: 3e-2}, "cosreg": {LR: 3e-2}}
    assert len(said) == 4
    assert said[0].startswith("tuning  mle, optimizer.lr 0.0001: validation perplexity ")
    for method in METHODS:
        slow, fast = tried(tmp_path, method)
        assert (slow.chosen, fast.chosen) == (False, True)
        assert slow.score is not None
        assert fast.score is not None
        assert slow.score > fast.score


@pytest.mark.slow
def test_no_run_has_the_seed_of_a_trial(tmp_path: Path) -> None:
    """The best of several trials owes a part of its score to its seed."""
    rates = tuned(tmp_path)
    trial = load_result(tmp_path / "mle" / "tuning" / "optimizer.lr-0.03")
    assert trial.seed == TUNING_SEED
    assert trial.test is None
    assert not (tmp_path / "mle" / "seed-0").exists()
    config = complete_settings(settings(compare=METHODS, tune={"lr": RATES}))
    train_every_run(config, tmp_path, rates, runs_here())
    found = load_result(run_folder(tmp_path, "mle", 0))
    assert found.settings["optimizer"]["lr"] == 3e-2
    assert found.test is not None
    assert found.valid["perplexity"] != trial.valid["perplexity"]
    run(config.one("mle", 0, {LR: 3e-2}), tmp_path / "alone")
    homes = tmp_path / "alone", run_folder(tmp_path, "mle", 0)
    assert len({(home / "model.safetensors").read_bytes() for home in homes}) == 1


@pytest.mark.slow
def test_what_was_tried_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tuned(tmp_path)
    monkeypatch.setattr(train_runs, "attempt_run", None)
    assert tuned(tmp_path) == first
    with refusal(BadOption):
        tuned(tmp_path, [1e-4])


@pytest.mark.slow
def test_tuning_is_resumed_to_the_same_bits(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    saving = {"training": {"save_steps": 5}}
    rates = tuned(whole)
    with pytest.raises(Stopped):
        tuned(broken, monitor=RunMonitor(stopping(after=24)), **saving)
    assert tuned(broken, **saving) == rates
    for method in METHODS:
        assert tried(broken, method) == tried(whole, method)
        place = Path(method) / "tuning" / "optimizer.lr-0.03"
        assert numbers(broken / place) == numbers(whole / place)


def test_a_rate_that_diverges_is_not_chosen(tmp_path: Path, monkeypatch: Any) -> None:
    trained = train_runs.attempt_run

    def diverge(config: Any, *others: Any) -> Any:
        if config.optimizer.algorithm.lr > 1e-3:
            raise Diverged("the loss is not a number")
        return trained(config, *others)

    monkeypatch.setattr(train_runs, "attempt_run", diverge)
    assert tuned(tmp_path) == {"mle": {LR: 1e-4}, "cosreg": {LR: 1e-4}}
    assert [one.score is None for one in tried(tmp_path, "mle")] == [False, True]
    with pytest.raises(Diverged):
        tuned(tmp_path / "all", [1.0, 2.0])


def test_rates_are_in_the_settings_of_the_study_alone() -> None:
    config = complete_settings(settings(tune={"lr": RATES}))
    assert parse_settings(config.text(), "test") == config
    assert "tune" not in config.one("mle", 0).tables()


def test_values_that_make_no_sense() -> None:
    for text in (
        "lr",
        "lr=fast",
        "rate=1",
        "optimizer.kind=sgd",
        "data.size=10",
        "optimizer.speed=1",
        "lr=1,1",
        "lr=0.1,-1",
        "method.cosreg.delta=1",
        "method.frage.lambda_=1",
    ):
        with refusal(BadOption):
            complete_settings(settings(compare=METHODS, tune=parse_tuned([text])))


def test_settings_are_tuned_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """γ at the rate as it is, then the rate at the best γ; no trial is made twice."""
    seen: list[tuple[float, float]] = []

    def judge(config: Any, *_others: Any) -> Any:
        gamma, lr = config.method.get("cosreg", {}).get("gamma", 0.0), config.optimizer.algorithm.lr
        seen.append((gamma, lr))
        loss = {"loss": abs(gamma - 10.0) + abs(lr - 0.3)}
        return SimpleNamespace(valid=loss, quality="loss", quantities=())

    monkeypatch.setattr(train_runs, "attempt_run", judge)
    lists = {"method": {"cosreg": {"gamma": [1.0, 10.0]}}, "lr": [0.1, 0.3]}
    config = complete_settings(settings(compare=METHODS, tune=lists, optimizer={"lr": 0.1}))
    found = tune_settings(config, tmp_path, runs_here())
    assert found == {"mle": {LR: 0.3}, "cosreg": {"method.cosreg.gamma": 10.0, LR: 0.3}}
    assert seen == [(0.0, 0.1), (0.0, 0.3), (1.0, 0.1), (10.0, 0.1), (10.0, 0.3)]
    one = config.one("cosreg", 0, found["cosreg"])
    assert (one.method["cosreg"]["gamma"], one.optimizer.algorithm.lr) == (10.0, 0.3)
    assert parse_settings(config.text(), "test") == config


def test_the_best_score_has_the_direction_of_its_quantity() -> None:
    losses = [Score(2.0, "loss"), Score(None, ""), Score(1.0, "loss")]
    assert choose(losses) == 2
    assert (
        choose([Score(0.5, "accuracy", True), Score(None, ""), Score(0.4, "accuracy", True)]) == 0
    )


def test_a_note_says_what_was_tried() -> None:
    values = ((0.001, 130.5, False), (0.003, 125.0, True), (1.0, None, False))
    tried = tuple(TriedValue(LR, v, score, "perplexity", held) for v, score, held in values)
    method = StudyMethod("mle", "MLE", "", tried=tried)
    shown = "(0.001: 130.5, 0.003: 125, 1: failed)"
    said = f"mle: optimizer.lr 0.003, by the validation perplexity of a seed apart {shown}"
    assert list(describe_tried(method)) == [said]
    at_end = StudyMethod("mle", "MLE", "", tried=tried[:2])
    assert next(describe_tried(at_end)).endswith("a better one may lie beyond")
