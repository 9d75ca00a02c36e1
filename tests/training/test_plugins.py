"""Plug-ins: the page about them runs, they are refused in one line, and nothing runs unasked."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("tomli_w")

from safetensors.numpy import load_file

import embgeo
from embgeo.cli.app import app
from embgeo.core.errors import BadOption, OutOfMemory, UnreadableFile
from embgeo.core.progress import RunMonitor
from embgeo.training import plugins
from embgeo.training.complete import check_settings
from embgeo.training.loop.loop import train_run
from embgeo.training.methods import METHODS
from embgeo.training.methods.popular import ClassRegularizer
from embgeo.training.models import MODELS, build
from embgeo.training.registry import describe_class, find_method
from embgeo.training.settings import from_tables, read_settings
from embgeo.training.study.record import load_study
from embgeo.training.tasks import TASKS, make_task
from tests.support.documents import ROOT, agrees, blocks, commands
from tests.support.processes import in_two_processes
from tests.support.refusals import refusal
from tests.support.sampling import each_folder
from tests.support.training_runs import Stopped, silent, stopping

PAGE = ROOT / "docs" / "plugins.md"
SMALL = {"training.steps": 4, "data.size": 60, "data.tokens": 2000, "evaluation.tokens": 200}
TEXT = ROOT / "fixtures" / "pydocs.txt.gz"

METHOD = """
from pathlib import Path
from embgeo.training.methods import CosReg, Method, WeightRegularizer
from embgeo.training.plugins import register

with Path(__file__).with_suffix(".log").open("a") as log:
    log.write("ran\\n")
assert issubclass(CosReg, WeightRegularizer)
register(Method("mine", "Mine", (CosReg,), {"gamma": 2.0}))
"""


KNOWN: tuple[dict[str, Any], ...] = (MODELS, METHODS, TASKS)


@contextlib.contextmanager
def forgetting() -> Iterator[None]:
    """What is registered inside is not known after it."""
    before = [(known, dict(known)) for known in KNOWN]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins, "_LOADED", {})
        yield
    for known, own in before:
        known.clear()
        known.update(own)


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    with forgetting():
        yield


def page_files(folder: Path) -> list[Path]:
    """The programs of the page, each under the name in its first line."""
    found = []
    for body in blocks(PAGE, "python"):
        path = folder / body.split()[1]
        path.write_text(body, "utf-8")
        found.append(path)
    return found


def write_plugin(folder: Path, text: str = METHOD, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def train(folder: Path, *files: Path, **more: Any) -> Any:
    given = {"compare": "mle,mine", "settings": SMALL, "out": folder / "runs"}
    return embgeo.train(TEXT, plugins=files, **{**given, **more})


@pytest.fixture
def few_figures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("embgeo.report.page.CHARTS", ())
        yield


@pytest.mark.usefixtures("few_figures")
@pytest.mark.nightly
def test_the_page_runs(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    assert [path.name for path in page_files(tmp_path)] == ["mine.py", "bigrams.py"]
    assert all(len(body.splitlines()) < 80 for body in blocks(PAGE, "python"))
    story = [command for block in blocks(PAGE, "console") for command in commands(block)]
    with contextlib.chdir(tmp_path):
        for command in story:
            result = CliRunner().invoke(app, shlex.split(command.line)[1:])
            assert result.exit_code == 0, result.output
            assert agrees(command.output, result.output), f"{command.line}\n{result.output}"
    study = load_study(tmp_path / "bigrams.runs")
    assert {run.task for run in study.runs} == {"bigrams"}
    assert not study.outcomes
    assert all(0.0 < run.numbers["test.accuracy"] < 1.0 for run in study.runs)
    page = (tmp_path / "bigrams.runs" / "report.html").read_text("utf-8")
    assert "Too few seeds to test (1). embgeo train --resume -o FOLDER --seeds 3 adds some." in page
    assert "test accuracy" in page.lower()
    assert '<h2 id="balance-title">Perplexity' not in page


BIGRAMS = {
    **SMALL,
    "task.name": "bigrams",
    "model.name": "bigram",
    "training.batch": 4,
    "training.save_steps": 1,
    "training.threads": 1,
}


@pytest.mark.usefixtures("few_figures")
@pytest.mark.slow
def test_a_task_of_ones_own_is_resumed_to_the_byte(tmp_path: Path) -> None:
    _, file = page_files(tmp_path)
    one = tmp_path / "one"
    train(tmp_path, file, compare="mle,cosreg", settings=BIGRAMS, device="cpu", out=one)
    again, home = tmp_path / "again", Path("cosreg") / "seed-0"
    config = read_settings(one / home / "run.toml")
    arguments = {"measure": None, "command": ""}
    dataset = make_task(config).load(config)
    with pytest.raises(Stopped):
        train_run(config, dataset, again, progress=stopping(2), **arguments)
    train_run(config, dataset, again, progress=silent(), **arguments)
    model = "model.safetensors"
    assert (again / model).read_bytes() == (one / home / model).read_bytes()


@pytest.mark.usefixtures("few_figures")
@pytest.mark.nightly
def test_a_task_of_ones_own_is_shared_by_processes(tmp_path: Path) -> None:
    _, file = page_files(tmp_path)
    one, out = tmp_path / "one", tmp_path / "two"
    train(tmp_path, file, compare="mle,cosreg", settings=BIGRAMS, device="cpu", out=one)
    script = (
        "import sys, embgeo, json\n"
        "embgeo.train(sys.argv[1], plugins=[sys.argv[2]], out=sys.argv[3], device='cpu', "
        "compare='mle,cosreg', settings=json.loads(sys.argv[4]))\n"
    )
    in_two_processes(script, str(TEXT), str(file), str(out), json.dumps(BIGRAMS))
    for method in ("mle", "cosreg"):
        place = Path(method) / "seed-0" / "model.safetensors"
        alone, together = load_file(one / place), load_file(out / place)
        assert alone.keys() == together.keys()
        for name, tensor in alone.items():
            assert abs(tensor - together[name]).max() < 1e-5


@pytest.mark.usefixtures("few_figures")
@pytest.mark.slow
def test_a_study_goes_on_with_the_same_plugin_only(tmp_path: Path) -> None:
    path = write_plugin(tmp_path)
    train(tmp_path, path)
    runs, log = tmp_path / "runs", path.with_suffix(".log")
    assert log.read_text() == "ran\n"
    recorded = read_settings(runs / "train.toml").plugins
    assert list(recorded) == ["mine.py"]
    assert load_study(runs).methods[1].name == "mine"
    with refusal(BadOption):
        embgeo.train(out=runs, resume=True)
    assert train(tmp_path, path, resume=True).study.methods[1].name == "mine"
    assert log.read_text() == "ran\n"
    write_plugin(tmp_path, METHOD.replace("2.0", "3.0"))
    with refusal(BadOption):
        train(tmp_path, path, resume=True)


def test_reading_settings_runs_nothing(tmp_path: Path) -> None:
    path = write_plugin(tmp_path)
    own = tmp_path / "own.toml"
    own.write_text('compare = ["mle"]\n[plugins]\n"mine.py" = "0"\n', "utf-8")
    assert read_settings(own).plugins == {"mine.py": "0"}
    with refusal(BadOption):
        embgeo.train(TEXT, config=own, out=tmp_path / "runs")
    assert not path.with_suffix(".log").exists()
    assert not (tmp_path / "runs").exists()


CLASH = METHOD.replace('"mine"', '"cosreg"')
REGISTER = "from embgeo.training.plugins import register\n"
WRONG = {
    "raises": "x = 1\nraise RuntimeError('no')",
    "not Python": "x = =",
    "exits": REGISTER + "raise SystemExit(3)",
    "registers nothing": "x = 1",
    "name of another": CLASH,
    "wrong kind": REGISTER + "register(int)",
    "name of a folder outside": METHOD.replace('"mine"', '"../mine"'),
    "model without layers": REGISTER + "from embgeo.training.models import LanguageModel\n"
    "register(type('Empty', (LanguageModel,), {'NAME': 'empty', 'SOURCE': ''}))",
    "part that is no class": METHOD.replace("(CosReg,)", "CosReg"),
    "reference that is none": METHOD.replace("2.0}", "2.0}, reference='x'"),
}
#: What is left out or changed in a program of the page, and what is said of it.
LEFT_OUT = {
    "name": ("gru", '    NAME = "gru"\n', ""),
    "name that is none": ("gru", '"gru"', "3"),
    "default": ("gru", "d=32", "d"),
    "default of settings": ("gru", "d=32", "d=torch.tensor(32)"),
    "source of a regularizer": ("gru", 'SOURCE = "public', 'SAUCE = "public'),
    "need": ("gru", '("logits",)', '("logit",)'),
    "role": ("gru", '    SOURCE = "public', '    ROLE = "top"\n    SOURCE = "public'),
    "default of a method": ("gru", "lambda_=0.01", "lambda_"),
    "evaluator": ("bigrams", "    EVALUATOR", "    JUDGE"),
    "models": ("bigrams", "MODELS", "OTHERS"),
    "direction": ("bigrams", 'better="higher"', 'better="up"'),
    "quantities": ("bigrams", "QUANTITIES", "OTHERS"),
}


def change_program(folder: Path, program: str, old: str, new: str) -> Path:
    path = page_files(folder)[program == "bigrams"]
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")
    return path


def test_what_cannot_be_registered_is_refused_with_its_file(tmp_path: Path) -> None:
    for folder, (program, old, new) in each_folder(tmp_path, LEFT_OUT.values()):
        path = change_program(folder, program, old, new)
        with forgetting(), refusal():
            plugins.load_plugins([path])


RETURNED = "return Output(hidden=raw, raw=raw, state=last)"
PENALTY = "return self.lambda_ * sum(torch.linalg.vector_norm(b - a) for a, b in pairs)"
LOSSES = "return Losses(mean, mean, step)"
FED = "return Batches(own, config.training.bptt, seed=config.seeds[0])"
ODD_STATE = (
    "fed = Batches(own, config.training.bptt)\n"
    "        fed.state_dict = lambda: {'draws': torch.Generator()}\n"
    "        return fed"
)
RAISED = {
    "model": ("gru", RETURNED, "raise ValueError('no')"),
    "exit": ("gru", RETURNED, "raise SystemExit(0)"),
    "no output": ("gru", RETURNED, "return raw, last"),
    "wide output": ("gru", "nn.GRU(d, d)", "nn.GRU(d, 9)"),
    "state": ("gru", "state=last", "state={'h': last}"),
    "embedding": (
        "gru",
        "        self.make_embedding(0.1 * torch.randn(n_tokens, d))",
        "        self.make_embedding(torch.randn(d, n_tokens))",
    ),
    "penalty without graph": ("gru", PENALTY, "return 0.5"),
    "loss": ("bigrams", LOSSES, "return mean"),
    "batches": ("bigrams", FED, "return None"),
    "saved state": ("bigrams", FED, ODD_STATE),
    "scores": ("bigrams", '"accuracy": float(right)', ""),
}


@pytest.mark.slow
def test_an_error_of_a_plugin_in_training_is_one_line(tmp_path: Path) -> None:
    for folder, (program, old, new) in each_folder(tmp_path, RAISED.values()):
        path = change_program(folder, program, old, new)
        settings = {**SMALL, "training.save_steps": 1, "model.name": program.removesuffix("s")}
        if program == "bigrams":
            settings["task.name"] = program
        compare = "moment-match" if program == "gru" else "cosreg"
        with forgetting(), refusal():
            train(folder, path, compare=compare, settings=settings)
        for _, added in plugins._LOADED.values():  # else the next one has the names of this one
            plugins.forget(added)
        plugins._LOADED.clear()


@pytest.mark.slow
def test_what_goes_on_names_the_plugins(tmp_path: Path) -> None:
    path = change_program(tmp_path, "gru", RETURNED, "raise KeyboardInterrupt")
    settings = {**SMALL, "model.name": "gru"}
    with refusal():
        train(tmp_path, path, compare="mle", settings=settings)


def test_errors_that_are_not_of_a_plugin_stay_as_they_are(tmp_path: Path) -> None:
    for error in (BadOption("this"), OSError(28, "full"), MemoryError(), KeyboardInterrupt()):
        with pytest.raises(type(error)) as raised, plugins.naming_plugins([tmp_path / "mine.py"]):
            raise error
        assert raised.value is error
    with refusal(ValueError), plugins.naming_plugins(None):
        raise ValueError("no")


def test_a_plugin_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    for folder, text in each_folder(tmp_path, WRONG.values()):
        path = write_plugin(folder, text)
        with refusal():
            train(folder, path)
        assert not any("mine" in known for known in KNOWN)
        assert not (folder / "runs").exists()


def test_a_missing_plugin_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    with refusal(UnreadableFile):
        train(tmp_path, tmp_path / "mine.py")
    (tmp_path / "other").mkdir()
    files = [write_plugin(tmp_path), write_plugin(tmp_path / "other")]
    with refusal(BadOption):
        train(tmp_path, *files)


def test_a_plugin_that_changed_replaces_what_it_had_added(tmp_path: Path) -> None:
    path = write_plugin(tmp_path)
    plugins.load_plugins([path])
    assert find_method("mine").usual == {"gamma": 2.0}
    write_plugin(tmp_path, METHOD.replace("2.0", "3.0"))
    plugins.load_plugins([path])
    assert find_method("mine").usual == {"gamma": 3.0}


def test_names_that_nobody_added_are_refused_with_those_there_are(tmp_path: Path) -> None:
    plugins.load_plugins([write_plugin(tmp_path)])
    with refusal(BadOption):
        find_method("other")
    with refusal(BadOption):
        train(tmp_path, compare="mle", settings={**SMALL, "task.name": "other"})


SETTING = """
from embgeo.training.plugins import register
from embgeo.training.tasks import LanguageModeling


@register
class Own(LanguageModeling):
    NAME = "own"

    def __init__(self, *, width=3, shape: list | tuple = ()):
        self.width = width
"""


@pytest.mark.parametrize("name", ["own", "lm"])
def test_a_setting_that_a_task_does_not_have_is_refused(name: str, tmp_path: Path) -> None:
    settings = {**SMALL, "task.name": name, "task.depth": 2}
    with refusal(BadOption):
        train(tmp_path, write_plugin(tmp_path, SETTING), compare="mle", settings=settings)


def test_settings_of_a_plugin_are_those_of_its_constructor_and_its_bases(tmp_path: Path) -> None:
    wider = (
        "from embgeo.training.models import AwdLstm\n"
        "@register\nclass Wide(AwdLstm):\n    NAME = 'wide'\n"
        "    def __init__(self, n_tokens, *, factor=2, d=64, **others):\n"
        "        super().__init__(n_tokens, d=factor * d, **others)\n"
    )
    plugins.load_plugins([write_plugin(tmp_path, SETTING + wider)])
    own = {"task": {"name": "own", "width": 4, "shape": [2]}, "model": {"name": "wide"}}
    found = check_settings(from_tables(own))
    assert make_task(found).width == 4
    kept = found.model.settings
    assert (kept["factor"], kept["d"], kept["layers"]) == (2, 64, 3)
    assert build("wide", 9, {**kept, "hidden": 4}).d == 128
    with refusal(BadOption):
        check_settings(found.updated({"model": {"layers": 10**6}}))
    assert describe_class(ClassRegularizer).__struct_fields__ == ("share",)


HUNGRY = """
import torch
from embgeo.training.methods import Method, Regularizer
from embgeo.training.plugins import register


class Hungry(Regularizer):
    NAME = "hungry"
    SOURCE = "a test"

    def penalty(self, step):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 80 GiB")


register(Method("hungry", "Hungry", (Hungry,)))
"""


@pytest.mark.slow
def test_a_run_that_lacks_memory_fails_alone(tmp_path: Path) -> None:
    lines: list[str] = []
    path = write_plugin(tmp_path, HUNGRY)
    compare = "mle,hungry,cosreg"
    found = train(tmp_path, path, compare=compare, monitor=RunMonitor(say=lines.append))
    assert {run.method for run in found.study.runs} == {"mle", "cosreg"}
    assert found.report.is_file()
    assert lines[1] == (
        "2/3  hungry, seed 0: out of memory: CUDA out of memory. Tried to allocate 80 GiB"
    )
    assert found.study.notes[0].startswith("hungry, seed 0: out of memory: ")
    (kept,) = found.failed.values()
    assert (kept.__traceback__, kept.__context__) == (None, None)  # else it holds the model
    error = found.error()
    assert error.cause.startswith("1 of 3 runs lacked memory (hungry with seed 0); the report is")
    assert error.way_out == "lower batch of [training] and raise accumulate, in another folder"
    with refusal(OutOfMemory):
        train(tmp_path, path, compare="hungry", out=tmp_path / "alone")
