"""Learning rates that are tried: which is taken, what is kept, and how it is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")


from embgeo.core.errors import BadOption, Diverged
from embgeo.core.progress import RunMonitor
from embgeo.training.complete import complete_settings
from embgeo.training.loop.checkpoint import run_folder
from embgeo.training.settings import parse_settings
from embgeo.training.study.assemble import describe_tried
from embgeo.training.study.record import StudyMethod, TriedRate
from embgeo.training.study.run_result import load_result
from embgeo.workflows import train_runs as train_runs_module
from embgeo.workflows.train_runs import TUNING_SEED, read_tuning, train_runs, tune_rates
from embgeo.workflows.train_settings import parse_rates
from tests.support.training_runs import Stopped, corpus, numbers, run, settings, stopping

RATES = [1e-4, 3e-2]


METHODS = ["mle", "cosreg"]


def tuned(
    folder: Path, rates: list[float] = RATES, monitor: RunMonitor | None = None, **tables: Any
) -> dict[str, float]:
    config = complete_settings(settings(compare=METHODS, tune={"lr": rates}, **tables))
    given = {"measure": None, "command": "", "monitor": monitor or RunMonitor(), "leads": True}
    return tune_rates(config, corpus(), folder, **given)


def tried(folder: Path, method: str) -> tuple[TriedRate, ...]:
    found = read_tuning(folder, method, RATES)
    assert found is not None
    return found.tried


@pytest.mark.slow
def test_each_method_takes_the_rate_of_the_lowest_perplexity(tmp_path: Path) -> None:
    said: list[str] = []
    rates = tuned(tmp_path, monitor=RunMonitor(say=said.append), seeds=[0, 1])
    assert rates == {"mle": 3e-2, "cosreg": 3e-2}
    assert len(said) == 4
    assert said[0].startswith("tuning  mle, learning rate 0.0001: validation perplexity ")
    for method in METHODS:
        slow, fast = tried(tmp_path, method)
        assert (slow.chosen, fast.chosen) == (False, True)
        assert slow.perplexity is not None
        assert fast.perplexity is not None
        assert slow.perplexity > fast.perplexity


@pytest.mark.slow
def test_no_run_has_the_seed_of_a_trial(tmp_path: Path) -> None:
    """The best of several trials owes a part of its score to its seed."""
    rates = tuned(tmp_path)
    trial = load_result(tmp_path / "mle" / "tuning" / "lr-0.03")
    assert trial.seed == TUNING_SEED
    assert not (tmp_path / "mle" / "seed-0").exists()
    config = complete_settings(settings(compare=METHODS, tune={"lr": RATES}))
    given = {"measure": None, "command": "", "monitor": RunMonitor(), "leads": False}
    train_runs(config, corpus(), tmp_path, rates, **given)
    found = load_result(run_folder(tmp_path, "mle", 0))
    assert found.settings["optimizer"]["lr"] == 3e-2
    assert found.valid["perplexity"] != trial.valid["perplexity"]
    run(config.one("mle", 0, 3e-2), tmp_path / "alone")
    homes = tmp_path / "alone", run_folder(tmp_path, "mle", 0)
    assert len({(home / "model.safetensors").read_bytes() for home in homes}) == 1


@pytest.mark.slow
def test_what_was_tried_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tuned(tmp_path)
    monkeypatch.setattr(train_runs_module, "attempt_run", None)
    assert tuned(tmp_path) == first
    with pytest.raises(BadOption, match=r"was tuned over the rates 0.0001, 0.03; give the same"):
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
        place = Path(method) / "tuning" / "lr-0.03"
        assert numbers(broken / place) == numbers(whole / place)


def test_a_rate_that_diverges_is_not_chosen(tmp_path: Path, monkeypatch: Any) -> None:
    trained = train_runs_module.attempt_run

    def diverge(config: Any, *others: Any) -> Any:
        if config.optimizer.lr > 1e-3:
            raise Diverged("the loss is not a number")
        return trained(config, *others)

    monkeypatch.setattr(train_runs_module, "attempt_run", diverge)
    assert tuned(tmp_path) == {"mle": 1e-4, "cosreg": 1e-4}
    assert [one.perplexity is None for one in tried(tmp_path, "mle")] == [False, True]
    with pytest.raises(Diverged):
        tuned(tmp_path / "all", [1.0, 2.0])


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
        ("lr=0.1,-1", "lr of [tune] is -1.0; it has to be a number above 0"),
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
    shown = "(0.001: 130.5, 0.003: 125, 1: failed)"
    said = f"mle: learning rate 0.003, by the validation perplexity of a seed apart {shown}"
    assert describe_tried(method) == said
    at_end = StudyMethod("mle", "MLE", "", tried=tried[:2])
    assert describe_tried(at_end).endswith("a better one may lie beyond")
