"""What a run and a comparison write."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

import embgeo  # noqa: E402
from embgeo.core.progress import Progress  # noqa: E402
from embgeo.training.data import Vocabulary  # noqa: E402
from embgeo.training.evaluation.scores import Scores  # noqa: E402
from embgeo.training.loop.checkpoint import run_folder  # noqa: E402
from embgeo.training.loop.loop import train_run  # noqa: E402
from embgeo.training.methods import METHODS  # noqa: E402
from embgeo.training.registry import add_controls, choose_reference  # noqa: E402
from embgeo.training.study.run_result import load_result  # noqa: E402
from tests.support.training_runs import N, corpus, numbers, run, run_all, settings, silent, spread  # noqa: E402


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "made"
    run(settings("real", geometry={"every": 6}), folder, measure=spread)
    return folder


def test_a_finished_run_holds_its_files_and_no_others(finished: Path) -> None:
    assert {path.name for path in finished.iterdir()} == {
        "run.toml",
        "outcomes.json",
        "metrics.jsonl",
        "model.safetensors",
        "vocabulary.tsv",
        "result.json",
    }


def test_the_tied_matrix_is_saved_once_and_its_other_name_told(finished: Path) -> None:
    tensors = load_file(finished / "model.safetensors")
    assert tensors["embedding.weight"].shape == (N, 8)
    assert "decoder.weight" not in tensors
    assert all(tensor.dtype == torch.float32 for tensor in tensors.values())
    with safe_open(finished / "model.safetensors", "pt") as file:
        assert file.metadata() == {"tied": "decoder.weight=embedding.weight"}


@pytest.mark.slow
def test_a_run_ends_when_its_validation_loss_falls_no_more(tmp_path: Path) -> None:
    """As one of as many epochs with the same weights, but for what it says of its end."""
    training = {"epochs": 40, "keep": "best", "patience": 2, "log_every": 1}
    config = settings(training=training, optimizer={"lr": 0.05})
    found = run(config, tmp_path / "stopped")
    assert found.stopped_early
    assert found.steps < 40 * 9
    losses = [line["valid.loss"] for line in numbers(tmp_path / "stopped") if "valid.loss" in line]
    *checks, final = losses
    # Twice the patience: as many again have shown that more of it changes nothing.
    assert min(checks) == final == checks[-5]
    assert f"stopped at step {found.steps} of 360" in " ".join(found.notes)
    full = run(
        config.updated({"training": {"patience": None, "epochs": len(checks)}}), tmp_path / "full"
    )
    assert not full.stopped_early
    assert full.valid == found.valid


def test_a_plateau_is_left_before_a_run_counts_as_converged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As seed 1 of the campaign `cone`: from 59 to 66, and then to 54."""
    curve = [60.0, 59.0, 62.0, 64.0, 66.0, 61.0, 54.0, 55.0, 56.0, 57.0, 58.0, 59.0, 60.0, 61.0]
    left = iter(curve)
    monkeypatch.setattr(Scores, "valid", lambda *_: {"loss": next(left)})
    chosen = {"epochs": 40, "keep": "best", "patience": 3, "batch": 20}
    found = run(settings(training=chosen, evaluation={"every": 1}), tmp_path)
    assert found.stopped_early
    assert found.steps == curve.index(54.0) + 1 + 6
    assert any("those of step 7," in note for note in found.notes)


@pytest.mark.parametrize(("name", "outputs"), [("sc-exp", False), ("untied", True)])
def test_the_analysis_reads_what_a_run_wrote(name: str, outputs: bool, tmp_path: Path) -> None:
    run(settings(name), tmp_path)
    found = embgeo.load(
        tmp_path / "model.safetensors", counts=tmp_path / "vocabulary.tsv", output=None
    )
    assert (found.n, found.d) == (N, 8)
    assert found.tokens is not None
    assert tuple(found.tokens) == corpus().vocabulary.tokens
    assert (found.output is not None) == outputs


def test_result_says_what_was_done(finished: Path) -> None:
    found = load_result(finished)
    assert (found.method, found.seed, found.steps, found.epochs) == ("real", 0, 18, 2.0)
    assert found.tokens == 2 * 84 * 4
    assert found.parameters == sum(
        tensor.numel() for tensor in load_file(finished / "model.safetensors").values()
    )
    assert found.valid["tokens"] == 99
    assert found.test is not None
    assert found.valid["perplexity"] == pytest.approx(math.exp(found.valid["loss"]))
    assert found.settings == tomllib.loads((finished / "run.toml").read_text("utf-8"))
    assert found.source == "Inan et al. 2017, §4 (RE); Inan et al. 2017, §3"
    assert any("detached" in line for line in found.deviations)
    assert found.corpus["tokens"] == {"train": 340, "valid": 100, "test": 60}
    assert found.versions["torch"] == torch.__version__
    assert found.command == "embgeo train"


def test_the_log_holds_losses_geometry_and_scores(finished: Path) -> None:
    lines = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    at: dict[str, list[int]] = {}
    for line in lines:
        for name in line:
            at.setdefault(name, []).append(line["step"])
    assert at["train.loss"] == at["train.tokens_per_second"] == [4, 8, 12, 16, 18]
    assert at["test.sum"] == [0, 6, 12, 18, 18]
    assert at["valid.perplexity"] == [9, 18]
    assert at["test.perplexity"] == [18]
    assert "test.output" not in at  # a tied model has one matrix
    last = {name: value for line in lines for name, value in line.items()}
    found = load_result(finished)
    assert last["valid.loss"] == found.valid["loss"]
    W = load_file(finished / "model.safetensors")["embedding.weight"]
    assert last["test.sum"] == float(W.numpy().sum())


def test_hostile_tokens_come_back_from_the_vocabulary(tmp_path: Path) -> None:
    hostile = ("a\tb", "c\nd", "\\n", "<b>", '"', "\u202e", " ", "#")
    text = corpus()
    tokens = (*hostile, *text.vocabulary.tokens[len(hostile) :])
    text = replace(text, vocabulary=Vocabulary(tokens, text.vocabulary.counts))
    train_run(
        settings(training={"steps": 1}),
        text,
        tmp_path,
        measure=None,
        progress=silent(),
        command="",
    )
    found = embgeo.load(tmp_path / "model.safetensors", counts=tmp_path / "vocabulary.tsv")
    assert tuple(found.tokens or ()) == tokens


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_another_one_others(tmp_path: Path) -> None:
    config = settings("frage")
    for name in ("a", "b"):
        run(config, tmp_path / name)
    run(config.one("frage", 1), tmp_path / "c")
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b != c
    assert numbers(tmp_path / "a") == numbers(tmp_path / "b")


def test_progress_hears_of_every_step(tmp_path: Path) -> None:
    heard: list[Any] = []
    progress = Progress(lambda what, total: heard.append((what, total)), heard.append)
    run(settings("cosreg"), tmp_path, progress=progress)
    assert heard[0] == ("cosreg, seed 0", 18)
    assert sum(heard[1:]) == 18


@pytest.mark.slow
def test_a_comparison_has_a_folder_for_each_run(tmp_path: Path) -> None:
    config = settings(
        compare=["mle", "cosreg"], seeds=[0, 5], training={"epochs": 1}, method={"cosreg": {}}
    )
    run_all(config, tmp_path)
    runs = [("mle", 0), ("cosreg", 0), ("mle", 5), ("cosreg", 5)]
    results = [load_result(run_folder(tmp_path, method, seed)) for method, seed in runs]
    assert [(found.method, found.seed) for found in results] == runs
    by_seed = {found.seed: found.initial_sha256 for found in results}
    assert by_seed[0] != by_seed[5]
    assert len({(found.seed, found.initial_sha256) for found in results}) == 2


def test_what_a_method_is_compared_with() -> None:
    everything = tuple(METHODS)
    assert choose_reference("mle", everything) == ""
    assert choose_reference("cosreg", everything) == "mle"
    assert choose_reference("sc-exp", everything) == "factored"
    assert choose_reference("real", everything) == "untied"
    assert choose_reference("real", ("mle", "real")) == ""
    assert choose_reference("untied", ("untied", "al")) == ""


def test_a_part_of_the_splits_is_evaluated_and_named(tmp_path: Path) -> None:
    result = run(settings(evaluation={"tokens": 40}), tmp_path)
    assert result.valid["tokens"] == 39
    assert result.test is not None
    assert result.test["tokens"] == 39
    unknown = corpus().vocabulary.unknown
    for note, split, rows in zip(
        result.notes,
        ("validation", "test"),
        (corpus().valid, corpus().test),
        strict=True,
    ):
        assert rows is not None
        start = f"perplexity on the {split} split is of its first 40 of {len(rows)} tokens"
        share = f", of which {(rows[:40] == unknown).mean():.1%} are <unk>"
        assert note == start + (share if unknown is not None else "")


def test_controls_are_added_before_the_methods_that_need_them() -> None:
    assert add_controls(("mle", "cosreg")) == ("mle", "cosreg")
    assert add_controls(("frage",)) == ("frage",)
    assert add_controls(("mle", "sc-exp", "al", "re")) == (
        "mle", "factored", "sc-exp", "untied", "al", "re",
    )  # fmt: skip
    assert add_controls(("al", "untied")) == ("al", "untied")
