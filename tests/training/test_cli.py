"""``embgeo train``: a tiny comparison from the command to its report, and what can go wrong."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("tomli_w")

import numpy as np

from embgeo.charts import training
from embgeo.cli.app import app, run
from embgeo.core.errors import BadOption
from embgeo.core.progress import RunMonitor
from embgeo.result.analysis import load_analysis
from embgeo.training.settings import list_presets
from embgeo.training.study.record import STUDY, load_study
from embgeo.workflows import train as train_workflow
from embgeo.workflows import train_runs
from embgeo.workflows.train import (
    explain_interrupt,
    train,
)
from embgeo.workflows.train_runs import MEASURED, geometry_measure
from embgeo.workflows.train_settings import as_tables, gather_settings, parse_assignment
from tests.support.refusals import check_message, refusal

ROOT = Path(__file__).parents[2]
#: Three words in four are of a few frequent ones.
TEXT_LINES = 700

TINY = (
    "--set", "data.size=150", "--set", "model.d=8", "--set", "model.hidden=8",
    "--set", "training.batch=4", "--set", "training.bptt=8", "--set", "training.steps=6",
    "--set", "training.log_every=2", "--set", "geometry.every=3", "--set", "evaluation.every=3",
)  # fmt: skip
SGD = ("--compare", "mle,coupled-adam", "--set", "optimizer.kind=sgd")


def text_file(folder: Path) -> Path:
    """Part of the fixtures' text, so that words have frequencies as words have them."""
    with gzip.open(ROOT / "fixtures" / "pydocs.txt.gz", "rt", encoding="utf-8") as stream:
        lines = [line for line, _ in zip(stream, range(TEXT_LINES), strict=False)]
    path = folder / "words.txt"
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module", autouse=True)
def few_figures() -> Iterator[None]:
    """Drawing takes most of the time, and is tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("embgeo.report.page.CHARTS", (training.CHART,))
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text and two methods trained on it, with two seeds."""
    folder = tmp_path_factory.mktemp("train")
    text_file(folder)
    arguments = ["--data", str(folder / "words.txt"), "--compare", "mle,cosreg", "--seeds", "2"]
    code = run(["train", *arguments, *TINY, "-o", str(folder / "words.runs"), "-q"])
    assert code == 0
    return folder


@pytest.fixture
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(home)
    return home


@pytest.mark.slow
def test_a_comparison_leaves_everything_in_one_folder(home: Path) -> None:
    out = home / "words.runs"
    assert {path.name for path in out.iterdir()} == {
        "comparison", "cosreg", "mle", "report.html", "train.toml", "training.json",
    }  # fmt: skip
    for place in ("mle/seed-0", "mle/seed-1", "cosreg/seed-0", "cosreg/seed-1"):
        assert {path.name for path in (out / place).iterdir()} == {
            "analysis.json", "arrays.npz", "outcomes.json", "metrics.jsonl", "model.safetensors",
            "result.json",
            "run.toml", "vocabulary.tsv",
        }  # fmt: skip


@pytest.mark.slow
def test_runs_of_a_seed_start_alike_and_end_apart(home: Path) -> None:
    training = load_study(home / "words.runs")
    starts = {(run.seed, run.initial) for run in training.runs}
    assert len(starts) == 2
    ends = [training.values(method, "valid.perplexity")[0] for method in ("mle", "cosreg")]
    assert ends[0] != ends[1]
    assert training.methods[1].reference == "mle"


def test_embeddings_are_analyzed_as_analyze_does_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = here / "words.runs" / "cosreg" / "seed-1"
    counts = ["--counts", str(place / "vocabulary.tsv")]
    assert run(["analyze", str(place / "model.safetensors"), *counts, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    first = load_analysis(place).to_dict()
    assert again["scalars"] == first["scalars"]
    assert again["provenance"]["frequency"] == first["provenance"]["frequency"]
    assert again["provenance"]["sha256"] == first["provenance"]["sha256"]


def test_geometry_is_measured_on_the_way_and_its_end_is_that_of_the_analysis(home: Path) -> None:
    training = load_study(home / "words.runs")
    one = training.runs[0]
    for name in MEASURED:
        assert one.curves[name].steps == (0.0, 3.0, 6.0)
        assert one.curves[name].values[-1] == pytest.approx(one.numbers[name], rel=1e-6), name


@pytest.mark.slow
def test_resume_finds_everything_finished(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (here / "words.runs" / "training.json").read_bytes()

    def nothing(*_: Any, **__: Any) -> None:
        raise AssertionError("analyzed again")

    monkeypatch.setattr("embgeo.workflows.analyze.analyze", nothing)
    assert run(["train", "--resume", "-o", "words.runs"]) == 0
    told = capsys.readouterr()
    assert "4/4  cosreg, seed 1: validation perplexity" in told.err
    lines = told.out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["test", "perplexity", "mle", "cosreg"]
    assert lines[-1].startswith("report: ")
    assert (here / "words.runs" / "training.json").read_bytes().count(b"\n") == before.count(b"\n")


@pytest.mark.slow
def test_what_cannot_be_written_in_the_end_can_be_resumed(home: Path, tmp_path: Path) -> None:
    """In the place of a full disk, a folder has the name of the file."""
    out = shutil.copytree(home / "words.runs", tmp_path / "words.runs")
    for name in ("report.html", "training.json", "mle/seed-0/analysis.json"):
        (out / name).unlink()
        (out / name).mkdir()
        with refusal():
            train(home / "words.txt", out=out, resume=True)


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_python_gets_the_study_that_is_saved() -> None:
    lines: list[str] = []
    monitor = RunMonitor(say=lines.append)
    trained = train(out="words.runs", resume=True, monitor=monitor)
    assert trained is not None
    assert STUDY.to_json(trained.study) == STUDY.to_json(load_study(trained.folder))
    assert trained.report.is_file()
    assert trained.folder == Path("words.runs")
    assert (dict(trained.failed), trained.error()) == ({}, None)
    assert len(lines) == 4
    with refusal(BadOption):
        train(resume=True)


@pytest.mark.slow
def test_json_is_what_is_saved(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--resume", "-o", "words.runs", "--json", "-q"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads((here / "words.runs" / "training.json").read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_more_seeds_are_added_to_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "alone")
    given = ["train", "--data", "words.txt", "--compare", "mle", *TINY, "-o", out, "-q"]
    assert run(given) == 0
    assert load_study(tmp_path / "alone").seeds == (0,)
    assert not (tmp_path / "alone" / "comparison").exists()
    assert run(["train", "--resume", "-o", out, "--seeds", "2", "-q"]) == 0
    assert load_study(tmp_path / "alone").seeds == (0, 1)
    # Other settings would not be the same comparison.
    assert run(["train", "--resume", "-o", out, "--set", "training.steps=7", "-q"]) == 2
    assert "steps was 6 and is 7" in capsys.readouterr().err
    assert run(["train", "--resume", "-o", out, "-q"]) == 0  # nothing was changed by that


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_an_interrupt_keeps_what_is_trained_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "cut off")
    given = ["--data", "words.txt", "--compare", "mle,cosreg", *TINY, "-o", out, "-q"]
    analyze = train_runs.analyze_embedding

    def interrupted(folder: Path, *others: Any) -> None:
        analyze(folder, *others)
        raise KeyboardInterrupt

    monkeypatch.setattr(train_runs, "analyze_embedding", interrupted)
    assert run(["train", *given]) == 130
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"resume it with: embgeo train --resume -o '{out}'" in error
    monkeypatch.setattr(train_runs, "analyze_embedding", analyze)
    assert run(["train", "--resume", "-o", out, "-q"]) == 0
    assert len(load_study(out).runs) == 2


def test_an_interrupted_training_promises_only_what_is_kept(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert explain_interrupt(home, "again").way_out == ""
    (home / "mle" / "seed-0").mkdir(parents=True)
    assert explain_interrupt(home, "again").way_out == ""
    (home / "train.toml").write_text("")
    assert explain_interrupt(home, "again").way_out == "resume it with: again"
    assert "no state was saved" in explain_interrupt(home, "again").cause
    (home / "mle" / "seed-0" / "state.pt").write_bytes(b"")
    assert "what was trained is kept" in explain_interrupt(home, "again").cause


@pytest.mark.slow
def test_a_dry_run_writes_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["train", "--data", "words.txt", "--compare", "mle,al", *TINY, "-o", "dry", "--dry-run"]
    assert run(given) == 0
    told = capsys.readouterr().out
    assert "words: 150 rows" in told
    assert "nothing was written" in told
    assert run([*given, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert [each["method"] for each in plan["methods"]] == ["mle", "untied", "al"]
    assert [each["steps"] for each in plan["methods"]] == [6, 6, 6]
    assert plan["methods"][1]["parameters"] > plan["methods"][0]["parameters"]
    assert not (here / "dry").exists()


@pytest.mark.slow
def test_methods_are_added_to_a_folder(here: Path, tmp_path: Path) -> None:
    out = tmp_path / "words.runs"
    shutil.copytree(here / "words.runs", out)
    before = (out / "cosreg" / "seed-0" / "result.json").read_bytes()
    assert run(["train", "--resume", "-o", str(out), "--compare", "re", "-q"]) == 0
    assert [method.name for method in load_study(out).methods] == [
        "mle", "cosreg", "untied", "re",
    ]  # fmt: skip
    assert load_study(out).seeds == (0, 1)
    assert (out / "cosreg" / "seed-0" / "result.json").read_bytes() == before
    # A line that says all of it says the same.
    whole = ["train", "--data", "words.txt", "--compare", "re", *TINY, "-o", str(out), "-q"]
    assert run([*whole, "--resume"]) == 0
    assert len(load_study(out).runs) == 8


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_a_run_that_diverges_leaves_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "part"
    given = ["--data", "words.txt", *TINY, "-o", str(out), "--set", "method.cosreg.gamma=1e39"]
    assert run(["train", "--compare", "cosreg,mle,frage", *given]) == 2
    told = capsys.readouterr()
    assert "cosreg, seed 0: the training diverged: " in told.err
    assert "1 of 3 runs diverged (cosreg with seed 0); the report is about" in told.err
    training = load_study(out)
    assert [method.name for method in training.methods] == ["mle", "frage"]
    assert training.notes[0].startswith("cosreg, seed 0: the training diverged: ")
    assert training.notes[0].endswith("no number here knows it")
    assert (out / "report.html").is_file()


@pytest.mark.usefixtures("here")
def test_nothing_is_said_of_runs_that_all_diverged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "none"
    given = ["--data", "words.txt", *TINY, "-o", str(out), "--set", "method.cosreg.gamma=1e39"]
    assert run(["train", "--compare", "cosreg", *given, "-q"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (out / "report.html").exists()


@pytest.mark.usefixtures("here")
def test_a_method_that_diverges_can_be_planned(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--data", "words.txt", *TINY, "-o", "plan", "--set", "method.cosreg.gamma=1e39"]
    assert run(["train", "--compare", "cosreg", *given, "--dry-run"]) == 0
    assert "cosreg" in capsys.readouterr().out


def test_settings_of_methods_that_come_later_are_kept() -> None:
    from embgeo.training.complete import complete_settings

    config = complete_settings(gather_settings(preset="wt2-cycle", compare="mle,cosreg"))
    assert config.method["real"] == {"gamma": 1.25}
    assert config.method["cosreg"]["gamma"] == 1.0
    later = complete_settings(config.updated({"compare": ["mle", "real"]}))
    assert later.one("real", 0) == complete_settings(
        gather_settings(preset="wt2-cycle", compare="mle,real")
    ).one("real", 0)


@pytest.mark.slow
def test_a_folder_is_resumed_from_anywhere_with_its_own_text_only(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(home)
    out = tmp_path / "moved"
    given = ["--data", "words.txt", "--compare", "mle", *TINY, "-o", str(out), "-q"]
    assert run(["train", *given]) == 0
    monkeypatch.chdir(tmp_path)
    assert run(["train", "--resume", "-o", str(out), "-q"]) == 2
    assert "from the current folder; name it with --data" in capsys.readouterr().err
    # Another text is refused before anything is written.
    other = tmp_path / "other.txt"
    other.write_text((home / "words.txt").read_text("utf-8") + "one more line\n", "utf-8")
    before = (out / "train.toml").read_bytes()
    assert run(["train", "--resume", "-o", str(out), "--data", str(other), "-q"]) == 2
    assert "the text is another one" in capsys.readouterr().err
    assert (out / "train.toml").read_bytes() == before
    again = ["train", "--resume", "-o", str(out), "--data", str(home / "words.txt"), "-q"]
    assert run(again) == 0


@pytest.mark.slow
def test_what_is_missing_of_a_run_is_made_again_or_named(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "words.runs"
    shutil.copytree(here / "words.runs", out)
    seed = out / "mle" / "seed-1"
    (seed / "arrays.npz").unlink()
    assert run(["train", "--resume", "-o", str(out), "-q"]) == 0
    assert (seed / "arrays.npz").is_file()
    (seed / "model.safetensors").unlink()
    assert run(["train", "--resume", "-o", str(out), "-q"]) == 2
    assert "is missing; remove this folder" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("ours", [True, False])
def test_no_stale_comparison_stands_beside_a_report(
    ours: bool, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no seed is common to all; what is not a comparison of ours stays."""
    out = tmp_path / "words.runs"
    shutil.copytree(here / "words.runs", out)
    if not ours:
        (out / "comparison" / "comparison.json").unlink()
    monkeypatch.setattr("embgeo.workflows.train.compare_embeddings", lambda *_: None)
    assert run(["train", "--resume", "-o", str(out), "-q"]) == 0
    assert (out / "comparison").exists() is not ours


def test_embeddings_of_one_seed_are_held_side_by_side(here: Path) -> None:
    training = load_study(here / "words.runs")
    assert training.shown_seed == 0
    first, second = training.methods
    lost = replace(
        training, runs=(*training.runs_of(first.name)[1:], *training.runs_of(second.name))
    )
    assert lost.shown_seed == 1
    assert [lost.choose_shown_run(method.name).seed for method in lost.methods] == [1, 1]
    none = replace(
        training, runs=(training.runs_of(first.name)[0], training.runs_of(second.name)[1])
    )
    assert none.shown_seed is None
    assert [none.choose_shown_run(method.name).seed for method in none.methods] == [0, 1]


# --- What goes wrong -----------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_mistakes_are_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in [
        [],
        ["--data", "missing.txt"],
        ["--data", "words.txt", "--compare", "mle,nothing"],
        ["--data", "words.txt", "--preset", "nothing"],
        ["--data", "words.txt", "--set", "model.name=nothing"],
        ["--data", "words.txt", "--device", "toaster"],
        ["--data", "words.txt", "--set", "training.steps"],
        ["--data", "words.txt", "--set", "training.epoch=1"],
        ["--data", "words.txt", "--config", "missing.toml"],
        ["--data", "words.txt", "-o", "new", "--set", "model.d=x"],
        ["--data", "words.txt", "-o", "new", "--set", "method.sc-exp.tail_ratio=1.5"],
        ["--data", "words.txt", "-o", "new", "--set", "training.batch=99999"],
        ["--data", "words.txt", "-o", "new", "--set", "model.d=9999"],
        ["--data", "words.txt", "-o", "new", "--set", "training.clip=inf"],
        ["--data", "words.txt", "-o", "new", "--set", "training.save_seconds=-1"],
        ["--data", "words.txt", "-o", "new", "--set", f"optimizer.lr={10**400}"],
        ["--data", "words.txt", "-o", "new", "--set", "method.cosreg.gamma=nan"],
        ["--data", "words.txt", "-o", "new", "--set", "model.input_dropout=nan"],
        ["--data", "words.txt", "-o", "new", "--set", "method.cosreg.gamma=-10"],
        ["--data", "words.txt", "-o", "new", "--set", "method.al.gamma=-1"],
        ["--data", "words.txt", "-o", "new", "--set", "method.frage.lambda_=-1"],
        ["--data", "words.txt", "-o", "new", "--set", "method.frage.lr=-1"],
        ["--data", "words.txt", "-o", "new", *SGD],
        ["--data", "words.txt", "-o", "words.txt"],
        ["--data", "words.txt", "-o", "words.runs"],
        ["--data", "words.txt", "-o", "."],
        ["--resume", "-o", "nowhere"],
        ["--resume"],
        ["--data", "words.txt", "--device", "cuda:77", "-o", "new"],
    ]:
        assert run(["train", *arguments]) == 2
        error = capsys.readouterr().err
        assert error.startswith("embgeo: ")
        check_message(error.removeprefix("embgeo: ").removesuffix("\n"))
        assert not Path("new").exists()


@pytest.mark.slow
def test_without_torch_one_line_says_what_to_install() -> None:
    code = (
        "import sys\n"
        "from importlib import util\n"
        "found = util.find_spec\n"
        "util.find_spec = lambda name, *p: None if name == 'torch' else found(name, *p)\n"
        "from embgeo.cli.app import run\n"
        "code = run(['train', '--data', 'words.txt'])\n"
        "assert 'torch' not in sys.modules\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        "embgeo: training needs torch, which is not installed; pip install 'embgeo[train]'\n"
    )


# --- Settings ------------------------------------------------------------------------------------


def test_assignments() -> None:
    for text, expected in (
        ("training.epochs=3", (["training", "epochs"], 3)),
        ("optimizer.lr = 3e-3", (["optimizer", "lr"], 3e-3)),
        ("model.name=vd-lstm", (["model", "name"], "vd-lstm")),
        ('compare=["mle"]', (["compare"], ["mle"])),
        ("method.sc-exp.strength=0.1", (["method", "sc-exp", "strength"], 0.1)),
        ("data.path=a=b", (["data", "path"], "a=b")),
        ("data.path=1\ny=2", (["data", "path"], "1\ny=2")),
    ):
        assert parse_assignment(text) == expected


def test_no_assignments() -> None:
    for text in ("", "=3", "a b=3", "training..epochs=3"):
        with refusal(BadOption):
            parse_assignment(text)


def test_settings_of_a_program_are_tables_or_dotted_names() -> None:
    given = {"training.steps": 3, "model": {"d": 8, "name": "vd-lstm"}, "seeds": [1]}
    tables = {"training": {"steps": 3}, "model": {"d": 8, "name": "vd-lstm"}, "seeds": [1]}
    assert as_tables(given) == tables
    assert gather_settings(settings=given).seeds == (1,)
    assert as_tables(["training.steps=3", "model.d=8", "model.name=vd-lstm", "seeds=[1]"]) == tables


def test_settings_on_the_line_stand_over_those_of_files(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[data]\npath = "text.txt"\nsize = 70\n[training]\nbatch = 3\nbptt = 9\n')
    given = gather_settings(
        preset="tiny-cpu", config=own, settings=("training.bptt=11",), compare="mle, frage "
    )
    config = given
    assert config.compare == ("mle", "frage")
    assert (config.training.batch, config.training.bptt) == (3, 11)
    assert config.data.path == str(tmp_path / "text.txt")
    assert config.model.name == "awd-lstm"


def test_a_file_means_paths_beside_itself(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[data]\npath = "text.txt"\n')
    found = gather_settings(config=own)
    assert found.data.path == str(tmp_path / "text.txt")
    assert gather_settings(config=own, settings=("data.path=t.txt",)).data.path == "t.txt"


def test_another_model_starts_from_its_own_settings(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[model]\nname = "transformer"\nlayers = 2\n')
    config = gather_settings(config=own, settings=("model.dropout=0.3",))
    assert config.model.name == "transformer"
    assert dict(config.model.settings) == {"layers": 2, "dropout": 0.3}
    assert gather_settings(settings=("model.name=awd-lstm",)) == gather_settings()


def test_geometry_of_an_untied_model_has_the_distance_of_its_spaces() -> None:
    rng = np.random.default_rng(0)
    W = rng.standard_normal((60, 4)).astype(np.float32)
    measure = geometry_measure(np.arange(60, 0, -1))
    assert set(measure(W, None)) == set(MEASURED)
    assert measure(W, W.copy())["subspace.distance"] == pytest.approx(0.0, abs=1e-6)


def test_methods_without_their_control_are_named() -> None:
    describe = train_workflow.describe_missing
    assert not describe({"mle": "", "cosreg": "mle"})
    assert describe({"cosreg": "mle", "frage": "mle", "factored": "mle", "sc-exp": "factored"}) == (
        "no difference is shown for cosreg, frage: mle, the control, has no run here; "
        "--resume --compare mle adds one",
    )


def test_the_help_names_every_preset() -> None:
    shown = CliRunner().invoke(app, ["train", "--help"]).output
    assert not [name for name in list_presets() if name not in shown]


def test_settings_of_a_run_have_no_preset_below(tmp_path: Path) -> None:
    from embgeo.training.complete import complete_settings
    from embgeo.training.settings import load_preset

    own = tmp_path / "run.toml"
    config = complete_settings(load_preset("overfit-cpu"))
    own.write_text(config.text(), "utf-8")
    assert complete_settings(gather_settings(config=own)) == config
    assert config.training.steps is None
    named = gather_settings(config=own, preset="tiny-cpu")
    own.write_text("seeds = [0]\n[training]\nepochs = 25\n", "utf-8")
    steps = load_preset("tiny-cpu").training.steps
    assert named.training.steps == gather_settings(config=own).training.steps == steps
