"""The benchmarks of training at tiny sizes: they run, and they notice a wrong answer."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from benchmarks import (  # noqa: E402
    campaign,
    llama_step,
    mixture_step,
    rcnn_step,
    regularizer_cost,
    skip_gram_step,
    training_step,
    translation_step,
    xl_step,
)
from benchmarks.harness.steps import compare_speed  # noqa: E402
from embgeo.training.complete import complete_settings  # noqa: E402
from embgeo.training.methods import METHODS  # noqa: E402
from embgeo.training.settings import read_settings  # noqa: E402
from embgeo.workflows.train_settings import gather_settings  # noqa: E402
from tests.support.sample_runs import sample_training  # noqa: E402

STEP = training_step.Size(n=40, d=6, layers=2, batch=3, bptt=4, dropout=0.2)
COST = regularizer_cost.Size(n=40, d=6, hidden=8, layers=2, batch=3, bptt=4)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a benchmark prints."""

    def run(module: Any, size: Any, *arguments: str) -> str:
        monkeypatch.setitem(module.SIZES, "tiny", size)
        monkeypatch.setattr(sys, "argv", ["benchmark", "--rounds", "2", *arguments])
        if hasattr(module, "prepare"):
            compare_speed(module.__doc__, module.SIZES, module.check, module.prepare)
        else:
            module.main()
        return capsys.readouterr().out

    return run


@pytest.mark.slow
def test_tokens_a_second(shown: Any) -> None:
    lines = shown(training_step, STEP).splitlines()
    names = [line.split("|")[1].strip() for line in lines if line.startswith("|")]
    assert names[2:] == [training_step.PEER, *training_step.OURS]
    assert lines[-len(training_step.OURS) - 1].split("|")[3].strip() == "1.000"


@pytest.mark.slow
def test_translation_is_that_of_torch_and_another_one_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = translation_step.SIZES["tiny"]
    translation_step.check(size, "cpu")
    monkeypatch.setattr(translation_step.Peer, "embed", lambda self, rows: self.embedding(rows))
    with pytest.raises(SystemExit, match="of ours and of the peer are"):
        translation_step.check(size, "cpu")


def test_llama_is_that_of_plain_torch_and_another_one_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    llama_step.check(llama_step.SIZES["tiny"], "cpu")
    monkeypatch.setattr(llama_step, "turn", lambda x, _: x)
    with pytest.raises(SystemExit, match="of ours and of the peer are"):
        llama_step.check(llama_step.SIZES["tiny"], "cpu")


def test_the_mixture_is_the_published_one_and_another_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mixture_step.check(mixture_step.SIZES["tiny"], "cpu")
    latent = torch.nn.functional.relu
    monkeypatch.setattr(mixture_step.torch, "tanh", latent)
    with pytest.raises(SystemExit, match="of ours and of the peer are"):
        mixture_step.check(mixture_step.SIZES["tiny"], "cpu")


def test_transformer_xl_is_that_of_plain_torch_and_another_one_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    xl_step.check(xl_step.SIZES["tiny"], "cpu")
    monkeypatch.setattr(xl_step.Peer, "drop", lambda _, x: 1.1 * x)
    with pytest.raises(SystemExit, match="of ours and of the peer are"):
        xl_step.check(xl_step.SIZES["tiny"], "cpu")


def test_skip_gram_is_that_of_plain_torch_and_another_one_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    skip_gram_step.check(skip_gram_step.SIZES["tiny"], "cpu")
    monkeypatch.setattr(skip_gram_step.F, "logsigmoid", torch.sigmoid)
    with pytest.raises(SystemExit, match="of ours and of the peer are"):
        skip_gram_step.check(skip_gram_step.SIZES["tiny"], "cpu")


def test_the_rcnn_is_that_of_plain_torch_and_another_one_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rcnn_step.check(rcnn_step.SIZES["tiny"], "cpu")
    monkeypatch.setattr(rcnn_step.Peer, "walk", lambda _, cell, start, x, *rest: x)  # noqa: ARG005
    with pytest.raises(SystemExit, match="of ours and of the peer are"):
        rcnn_step.check(rcnn_step.SIZES["tiny"], "cpu")


def test_another_model_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    training_step.check(STEP, "cpu")
    monkeypatch.setattr(training_step, "CLIP", 0.01)
    training_step.check(STEP, "cpu")  # for both
    forward = training_step.Peer.forward

    def wrong(self: Any, inputs: Any, state: Any) -> Any:
        log_p, state = forward(self, inputs, state)
        return 1.01 * log_p, state

    monkeypatch.setattr(training_step.Peer, "forward", wrong)
    with pytest.raises(SystemExit, match="the loss of ours and of the peer are"):
        training_step.check(STEP, "cpu")


def test_a_step_of_another_length_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = training_step.Example.step

    def wrong(self: Any) -> Any:
        found = before(self)
        with torch.no_grad():
            self.model.encoder.weight.mul_(1.01)
        return found

    monkeypatch.setattr(training_step.Example, "step", wrong)
    with pytest.raises(SystemExit, match="of ours and of the peer are"):
        training_step.check(STEP, "cpu")


def test_the_peer_has_the_dropout_of_the_example() -> None:
    peer = training_step.Peer(STEP, 0.3)
    assert (peer.drop.p, peer.rnn.dropout, peer.rnn.num_layers) == (0.3, 0.3, 2)
    assert peer.decoder.weight is peer.encoder.weight


@pytest.mark.slow
def test_cost_of_every_method(shown: Any) -> None:
    lines = shown(regularizer_cost, COST).splitlines()
    rows = {line.split("|")[1].strip(): line for line in lines if line.startswith("| ")}
    assert set(METHODS) <= set(rows)
    assert rows["mle"].split("|")[3].strip() == "1.000"
    assert all(f"≤ {bound:g}" in rows[name] for name, bound in regularizer_cost.BOUNDS.items())


def test_baselines() -> None:
    found = {name: regularizer_cost.baseline(name) for name in METHODS}
    assert found["cosreg"] == found["mle"] == "mle"
    assert found["re"] == found["al"] == found["real"] == "untied"


@pytest.mark.parametrize("name", ["cosreg", "al"])
def test_a_method_that_starts_elsewhere_is_noticed(name: str) -> None:
    names = ("mle", "untied", name)
    loops = {each: regularizer_cost.make_loop(each, COST, "cpu", "float32") for each in names}
    regularizer_cost.check(loops, COST)
    with torch.no_grad():
        loops[name].model.get_output_embeddings().bias[3] += 5.0
    with pytest.raises(SystemExit, match=f"{name}: its cross-entropy is"):
        regularizer_cost.check(loops, COST)


def test_another_penalty_is_noticed() -> None:
    loops = {each: regularizer_cost.make_loop(each, COST, "cpu", "float32") for each in METHODS}
    regularizer_cost.check(loops, COST)
    reg: Any = loops["cosreg"].regularizer
    reg.gamma = 1.01
    with pytest.raises(SystemExit, match="cosreg: its penalty is"):
        regularizer_cost.check(loops, COST)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc/self/status")
@pytest.mark.nightly
def test_peak_memory_is_that_of_the_process_itself() -> None:
    """Not of the one that started it, which has held more."""
    held = bytearray(300 * 2**20)
    held[:: 2**12] = b"x" * len(held[:: 2**12])
    options = argparse.Namespace(size="tiny", device="cpu", precision="float32")
    small = regularizer_cost.peak("mle", options)
    assert len(held)
    assert 1.0 < small < 200.0


@pytest.mark.parametrize("name", campaign.CAMPAIGNS)
def test_the_settings_of_a_campaign_are_settings(name: str) -> None:
    own = campaign.CAMPAIGNS[name]
    found = complete_settings(
        gather_settings(
            "text",
            compare=own.compare,
            preset=own.preset,
            settings=dict(own.settings),
            tune=own.tune,
        )
    )
    if found.task.name != "lm" or found.data.bpe or found.optimizer.schedule == "one-cycle":
        assert found.training.steps or found.training.epochs > 1
        return
    assert found.training.keep == "best"
    assert found.training.patience
    assert found.training.steps is None


def test_a_summary_holds_every_claim_and_every_number(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "results"
    study = sample_training(methods=("mle", "cosreg", "untied", "al"))
    runs.mkdir()
    (runs / "train.toml").write_text('seeds = [0]\n[data]\npath = "far/away/ptb"\n')
    campaign.write_summary("overfit", campaign.CAMPAIGNS["overfit"], study, runs, out)
    text = (out / "campaign-overfit.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.count("|") == 10 and "claim |" not in line]
    rows = [line for line in rows if not line.startswith("|---")]
    assert len(rows) == len(study.outcomes)
    assert "| CosReg improves perplexity (cosreg against mle) | 66 → 65.2 (test perplexity" in text
    numbers = (out / "campaign-overfit.csv").read_text("utf-8").splitlines()
    assert {line.split(",")[0] for line in numbers[1:]} == {"mle", "cosreg", "untied", "al"}
    assert numbers[1].startswith("mle,0,,valid.perplexity,104")
    assert read_settings(out / "campaign-overfit.toml").data.path == "ptb"


def test_claims_are_decided_again_from_the_numbers(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    study = sample_training(methods=("mle", "cosreg", "untied", "al"))
    runs.mkdir()
    early = 'seeds = [0]\n[data]\npath = "ptb"\n[training]\npatience = 3\nkeep = "best"\n'
    (runs / "train.toml").write_text(early)
    campaign.write_summary("overfit", campaign.CAMPAIGNS["overfit"], study, runs, tmp_path)
    page = tmp_path / "campaign-overfit.md"
    first = page.read_text("utf-8")
    shown = [line.split(" | ") for line in first.splitlines() if line.count("|") == 10]
    page.write_text(first.replace("reproduced", "forgotten"), "utf-8")
    campaign.decide_again("overfit", tmp_path)
    found = page.read_text("utf-8")
    assert "forgotten" not in found
    assert found.split("## ", maxsplit=1)[0] == first.split("## ", maxsplit=1)[0]
    again = {row[0]: row for line in found.splitlines() if len(row := line.split(" | ")) > 8}
    assert {row[0] for row in shown} >= again.keys()
    for row in shown:
        if row[0] in again:  # what a run's numbers say: the claim, its difference and its p-value
            assert (row[3:5], row[6]) == (again[row[0]][3:5], again[row[0]][6])


@pytest.mark.slow
def test_a_summary_of_what_is_finished_so_far(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a b c d e f g h\n" * 60)
    small = {"data.size": 9, "model.d": 4, "model.hidden": 4, "training.steps": 4}
    begun = campaign.Campaign("begun", "tiny-cpu", 1, "mle", small)
    found = campaign.train(campaign.request(begun, text, tmp_path / "runs", 1), 1)
    whole = replace(begun, compare="mle,cosreg")
    study = campaign.read_finished(campaign.request(whole, text, tmp_path / "runs", 2))
    assert [(run.method, run.seed) for run in study.runs] == [("mle", 0)]
    assert study.runs[0].numbers == found.runs[0].numbers
    assert any(note.startswith("cosreg, seed 1: it is not finished") for note in study.notes)
