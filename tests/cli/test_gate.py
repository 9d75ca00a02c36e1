"""``embgeo gate`` from the outside: exit codes, files, GitHub, and what it must never do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from junitparser import JUnitXml

import embgeo
from embgeo.cli.app import run
from tests.support import command
from tests.support.refusals import refusal
from tests.support.sampling import each_value

call, refused = partial(command.call, "gate"), partial(command.refused, "gate")

ROOT = Path(__file__).parents[2]
HOSTILE = ROOT / "fixtures" / "hostile"

HOLDS = "cosine.mean <= 0.5"
BREAKS = "cosine.mean >= 0.5"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with an isotropic matrix, a narrow cone, and counts for either."""
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).standard_normal((60, 6)).astype(np.float32)
    np.save("round.npy", rows)
    np.save("cone.npy", rows + 3)
    np.savez("both.npz", encoder=rows, decoder=rows + 3)
    Path("counts.tsv").write_text("".join(f"t{row}\t{row + 1}\n" for row in range(60)))
    return tmp_path


def gate(*arguments: object, code: int = 0) -> str:
    """What a run writes to stdout, if it ends with that exit code."""
    result = call(*arguments)
    assert result.exit_code == code, result.output
    return str(result.stdout)


def settings(text: str, name: str = "embgeo.toml") -> Path:
    Path(name).write_text(text, encoding="utf-8")
    return Path(name)


# --- Exit codes -------------------------------------------------------------------------------


def test_passed() -> None:
    assert gate("round.npy", "-r", HOLDS).endswith("gate passed: 1 of 1 check\n")


def test_failed() -> None:
    shown = gate("round.npy", "-r", HOLDS, "-r", BREAKS, code=1)
    assert "FAILED   cosine.mean >= 0.5  is " in shown
    assert ", has to be at least 0.5" in shown
    assert shown.endswith("gate failed: 1 of 2 checks\n")


def test_warnings_pass() -> None:
    assert "1 warning" in gate("round.npy", "-r", f"{BREAKS}, warn")


def test_whatever_else_goes_wrong_is_2() -> None:
    for arguments in (
        ("round.npy",),
        ("-r", HOLDS),
        ("missing.npy", "-r", HOLDS),
        (HOSTILE / "truncated.pt", "-r", HOLDS),
        ("round.npy", "-r", "cosine.mean"),
        ("round.npy", "-r", "cosine.meen <= 1"),
        ("round.npy", "-r", "isotropy.histogram <= 1"),
        ("round.npy", "-r", "cosine.histogram <= 1"),
        ("round.npy", "-r", "cosine.mean drop <= 1"),
        ("round.npy", "-r", "cosine.mean drop <= 1", "-b", "no.json"),
        ("round.npy", "-r", HOLDS, "-b", "cone.npy"),
        ("round.npy", "-r", HOLDS, "--level", "1"),
        ("round.npy", "-r", HOLDS, "--config", "no.toml"),
        ("round.npy", "-r", f"nope: {HOLDS}"),
        ("round.npy", "-r", HOLDS, "--update-baseline"),
        ("round.npy", "-b", "new.json", "--update-baseline"),
        ("round.npy", "-r", HOLDS, "--junit", "round.npy"),
        ("round.npy", "-r", HOLDS, "--junit", "cone.npy"),
        ("round.npy", "-r", HOLDS, "--sarif", "."),
        ("round.npy", "-r", HOLDS, "-b", "b.json", "--update-baseline", "--json"),
        ("round.npy", "-r", HOLDS, "-b", "cone.npy", "--update-baseline"),
    ):
        refused(*arguments)


def test_two_outputs_are_two_files() -> None:
    result = call("round.npy", "-r", HOLDS, "--junit", "m", "--sarif", "m")
    assert (result.exit_code, JUnitXml.fromfile("m").errors) == (2, 1)
    assert "--sarif m: is read or written already" in result.stderr


@each_value
@pytest.mark.parametrize("error", [RuntimeError("bug"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize(
    "where", ["embgeo.io.load.open_source", "embgeo.workflows.gate.check_rules"]
)
def test_a_crash_is_neither_a_pass_nor_a_failed_gate(
    monkeypatch: pytest.MonkeyPatch, where: str, error: BaseException
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(where, fail)
    result = call("round.npy", "-r", HOLDS)
    assert result.exit_code == (130 if isinstance(error, KeyboardInterrupt) else 2)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
def test_exit_code_of_a_process() -> None:
    done = command.spawn("gate", "round.npy", "-r", BREAKS)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.slow
def test_a_broken_installation_is_2(here: Path) -> None:
    """Python's own exit code would be that of a failed gate."""
    (here / "typer.py").write_text("raise ImportError('half\\ninstalled')")
    command = [sys.executable, "-m", "embgeo", "gate", "round.npy", "-r", HOLDS]
    path = os.pathsep.join([str(here), str(ROOT)])
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    assert done.stderr == ("embgeo: cannot start (ImportError: half installed); install it again\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_gate_that_cannot_tell_is_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for rule in (HOLDS, BREAKS):
        with open("/dev/full", "w") as full, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", full)
            assert run(["gate", "round.npy", "-r", rule]) == 2
        assert "No space left" in capsys.readouterr().err


# --- What is measured -------------------------------------------------------------------------


def test_only_the_sections_of_the_rules_are_measured() -> None:
    (matrix,) = embgeo.gate("round.npy", rules=[HOLDS, "isotropy.i1 >= 0"]).matrices
    assert {name.partition(".")[0] for name in matrix.readings} == {"cosine", "isotropy"}


def test_options_are_about_checkpoints() -> None:
    embgeo.analyze("round.npy", sections=["cosine"], reference=False).save("saved")
    gate("round.npy", "-r", HOLDS, "--baseline", "base.json", "--update-baseline")
    for baseline in (None, "saved", "base.json"):
        with refusal():
            embgeo.gate("saved", rules="cosine.mean change <= 2", baseline=baseline, seed=1)
    assert embgeo.gate("saved", rules="cosine.mean change <= 2", baseline="cone.npy", seed=1).passed


@pytest.mark.slow
def test_a_saved_analysis_is_all_it_takes() -> None:
    command.call("analyze", "cone.npy", "--sections", "cosine", "--no-reference")
    Path("cone.npy").unlink()
    assert "gate passed" in gate("cone.embgeo", "-r", BREAKS)
    assert "gate passed" in gate("cone.embgeo/analysis.json", "-r", BREAKS)
    shown = gate("cone.embgeo", "-r", "isotropy.i1 >= 0", code=1)
    assert "is not defined: the section isotropy was not measured" in shown


def test_what_is_not_defined_fails_unless_that_is_allowed() -> None:
    rule = "frequency.norm_ratio <= 1e6"
    shown = gate("round.npy", "-r", rule, code=1)
    assert "is not defined: the section frequency was skipped" in shown
    assert "1 not defined, which is allowed" in gate("round.npy", "-r", f"{rule}, allow undefined")
    settings('[analyze]\ncounts = "counts.tsv"\n')
    assert "gate passed" in gate("round.npy", "-r", rule)


def test_a_sampled_value_passes_only_if_its_interval_does() -> None:
    measured = json.loads(gate("round.npy", "-r", "cosine.positive_share >= 0", "--json"))
    value = measured["checks"][0]["measured"]["value"]
    rule = f"cosine.positive_share <= {value + 0.001}"
    settings("[analyze]\npairs = 100\n")
    sample = ("round.npy", "-r", rule)
    assert "within its sampling error it may be" in gate(*sample, code=1)
    assert "gate passed" in gate("round.npy", "-r", "cosine.positive_share <= 1", "--level", "0.5")
    # With every pair there is nothing to be unsure of.
    settings('[analyze]\npairs = 100\n[gate.analyze]\npairs = "all"\n')
    every = json.loads(gate("round.npy", "-r", rule, "--json"))
    assert every["checks"][0]["measured"]["known"] == "exact"


def test_rules_of_one_tensor_of_a_checkpoint() -> None:
    shown = gate("both.npz", "-r", f"encoder: {HOLDS}", "-r", f"decoder: {BREAKS}")
    assert "both.npz  encoder  60 × 6" in shown
    assert "both.npz  decoder  60 × 6" in shown
    assert "gate passed: 2 of 2 checks" in shown
    # A rule without a tensor is about the chosen one alone, which is measured once.
    rules = ("-r", BREAKS, "-r", f"decoder: {BREAKS}", "-r", "decoder: isotropy.i1 >= 0")
    settings('[analyze]\ntensor = "decoder"\nsections = "cosine"\n')
    shown = gate("both.npz", *rules)
    assert "gate passed: 3 of 3 checks" in shown
    assert shown.count("both.npz") == 1


def test_several_files_at_once() -> None:
    shown = gate("round.npy", "cone.npy", "-r", HOLDS, code=1)
    assert "gate failed: 1 of 2 checks" in shown
    assert "gate passed: 2 of 2" in gate(
        "round.npy", "both.npz", "-r", f"decoder: {BREAKS}", "-r", f"encoder: {HOLDS}"
    )
    shown = gate("round.npy", "cone.npy", "-r", f"nowhere: {HOLDS}", code=1)
    assert "no tensor called nowhere was measured" in shown


# --- Baselines --------------------------------------------------------------------------------

NO_RISE = "cosine.mean rise <= 5%"


@pytest.mark.slow
def test_every_kind_of_baseline() -> None:
    shown = gate("round.npy", "-r", NO_RISE, "-b", "base.json", "--update-baseline")
    assert shown == "baseline: base.json, 10 numbers; no rule was checked\n"
    command.call("analyze", "round.npy", "--sections", "cosine", "--no-reference")
    for baseline in ("base.json", "round.embgeo", "round.npy"):
        assert "as in the baseline" in gate("round.npy", "-r", NO_RISE, "-b", baseline)
        shown = gate("cone.npy", "-r", NO_RISE, "-b", baseline, code=1)
        assert "a rise of at most 5% is allowed" in shown


def test_a_baseline_is_updated_and_says_what_changed() -> None:
    update = ("-r", NO_RISE, "-b", "base.json", "--update-baseline")
    gate("round.npy", *update)
    first = Path("base.json").read_bytes()
    assert "0 of them new or changed" in gate("round.npy", *update)
    assert Path("base.json").read_bytes() == first
    np.save("round.npy", np.load("cone.npy"))
    assert "8 of them new or changed" in gate("round.npy", *update)
    found = json.loads(Path("base.json").read_text())
    assert found["command"].startswith("embgeo")
    assert len(found["matrices"][0]["sha256"]) == 64
    assert found["matrices"][0]["versions"]["numpy"] == np.__version__


def test_a_damaged_baseline_is_written_again() -> None:
    update = ("round.npy", "-r", NO_RISE, "-b", "base.json", "--update-baseline")
    gate(*update)
    whole = Path("base.json").read_text()
    Path("base.json").write_text(whole[:-40])
    result = call("round.npy", "-r", NO_RISE, "-b", "base.json")
    assert result.exit_code == 2
    assert "write it again with --update-baseline" in result.stderr
    gate(*update)
    assert Path("base.json").read_text() == whole


def with_format_version(version: str) -> str:
    """The baseline of round.npy, changed to another format version."""
    gate("round.npy", "-r", NO_RISE, "-b", "base.json", "--update-baseline")
    text = Path("base.json").read_text()
    Path("base.json").write_text(
        text.replace('"format_version": 1', f'"format_version": {version}')
    )
    return text


def test_a_baseline_of_no_newer_format_is_written_again() -> None:
    for version in ("1", "0", "true", '"2"'):
        text = with_format_version(version)
        gate("round.npy", "-r", NO_RISE, "-b", "base.json", "--update-baseline")
        assert Path("base.json").read_text() == text


@pytest.mark.parametrize("more", [(), ("--update-baseline",)])
def test_a_baseline_of_a_newer_format_is_refused_and_stays(more: tuple[str, ...]) -> None:
    with_format_version("2")
    refused("round.npy", "-r", NO_RISE, "-b", "base.json", *more)


def test_a_baseline_that_cannot_be_measured_stays_as_it_was() -> None:
    update = ("-r", NO_RISE, "-b", "base.json", "--update-baseline")
    gate("round.npy", *update)
    Path("round.npy").write_bytes(b"damaged")
    refused("round.npy", *update)


def test_a_baseline_of_other_sections_fails_with_the_reason() -> None:
    gate("round.npy", "-r", NO_RISE, "-b", "base.json", "--update-baseline")
    rule = "spectrum.effective_rank drop <= 10"
    shown = gate("round.npy", "-r", rule, "-b", "base.json", code=1)
    assert "is not defined: in the baseline: the section spectrum was not measured" in shown


# --- Settings ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_settings_hold_everything(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings(
        f'[gate]\nrules = [\n "{HOLDS}",\n "frequency.norm_ratio <= 1e6",\n "{NO_RISE}",\n]\n'
        'sources = ["cone.npy"]\nbaseline = "round.npy"\n[gate.analyze]\ncounts = "counts.tsv"\n'
        "pairs = 50\n"
    )
    (here / ".git").mkdir()
    (here / "deep").mkdir()
    monkeypatch.chdir(here / "deep")
    shown = gate(code=1)
    assert "../cone.npy" in shown
    assert "(../embgeo.toml:3)" in shown
    monkeypatch.chdir(here)
    shown = gate(code=1)
    assert "(embgeo.toml:3)" in shown
    assert "(embgeo.toml:5)" in shown
    assert "gate failed: 2 of 3 checks" in shown
    assert "gate failed: 2 of 4 checks" in gate("-r", BREAKS, code=1)
    assert "gate passed: 3 of 3 checks" in gate("round.npy")
    assert "gate passed: 1 of 1 check" in gate("cone.npy", "--no-config", "-r", BREAKS)


def test_settings_in_pyproject() -> None:
    settings(f'[tool.embgeo.gate]\nrules = ["{BREAKS}"]\n', "pyproject.toml")
    assert "(pyproject.toml:2)" in gate("round.npy", code=1)
    assert "gate passed" in gate("cone.npy", "--config", "pyproject.toml")


@pytest.mark.slow
def test_settings_that_do_not_fit() -> None:
    for text in (
        '[gate]\nrules = [\n\n"cosine.mean <= few"]',
        '[gate]\nrules = ["cosine.meen <= 1"]',
        '[gate]\nrules = [{ rule = "a: cosine.mean <= 1", tensor = "b" }]',
        '[gate]\nrules = ["cosine.mean <= 1"]\nlevel = 2',
        "[gate]\nrules = []",
        '[gate]\nrules = ["cosine.mean <= 1"]\nanalyze = { color = 1 }',
        '[gate]\nrules = ["cosine.mean <= 1"]\nanalyze = { seed = "x" }',
        '[gate]\nrules = ["cosine.mean <= 1"]\nanalyze = { pairs = true }',
    ):
        settings(text)
        refused("round.npy")


def test_settings_without_a_gate_are_none() -> None:
    settings("[other]\n", "other.toml")
    refused("round.npy", "--config", "other.toml")
    refused("round.npy", "--config", "other.toml", "--no-config")


def test_frequencies_of_the_gate_replace_those_of_the_analyses() -> None:
    rules = '[gate]\nrules = ["frequency.norm_ratio <= 1e6"]\n'
    settings(f'[analyze]\ncounts = "missing.tsv"\n{rules}')
    refused("round.npy")
    settings(f'[analyze]\ncounts = "missing.tsv"\n{rules}analyze = {{ rank_order = true }}\n')
    assert "gate passed" in gate("round.npy")


# --- Where to ---------------------------------------------------------------------------------


def test_json_alone_on_stdout() -> None:
    found = json.loads(gate("round.npy", "-r", BREAKS, "--json", code=1))
    assert found["passed"] is False
    assert found["checks"][0]["state"] == "failed"


def test_quiet_says_nothing() -> None:
    for shape in ((), ("--format", "markdown")):
        assert gate("round.npy", "-r", BREAKS, "--quiet", *shape, code=1) == ""


def test_files_are_written_and_written_again() -> None:
    files = ("--junit", "ci/j.xml", "--sarif", "ci/s.sarif")
    gate("round.npy", "-r", HOLDS, *files)
    assert JUnitXml.fromfile("ci/j.xml").failures == 0
    gate("cone.npy", "-r", HOLDS, *files, code=1)
    assert JUnitXml.fromfile("ci/j.xml").failures == 1
    assert len(json.loads(Path("ci/s.sarif").read_text())["runs"][0]["results"]) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_links_and_pipes_are_written_to() -> None:
    Path("target.xml").touch()
    Path("link.xml").symlink_to("target.xml")
    os.mkfifo("pipe")
    with ThreadPoolExecutor(1) as reader:
        piped = reader.submit(Path("pipe").read_text)
        gate("round.npy", "-r", HOLDS, "--junit", "link.xml", "--sarif", "pipe")
        assert "embgeo" in piped.result()
    assert Path("link.xml").is_symlink()
    assert JUnitXml.fromfile("target.xml").errors == 0
    assert Path("pipe").is_fifo()


def test_a_crash_is_an_error_in_junit() -> None:
    gate("round.npy", "-r", HOLDS, "--junit", "j.xml")
    assert call(HOSTILE / "truncated.pt", "-r", HOLDS, "--junit", "j.xml").exit_code == 2
    assert call(HOSTILE / "truncated.pt", "-r", HOLDS, "--sarif", "s.sarif").exit_code == 2
    (run,) = json.loads(Path("s.sarif").read_text())["runs"]
    assert not run["invocations"][0]["executionSuccessful"]
    found = JUnitXml.fromfile("j.xml")
    assert (found.tests, found.failures, found.errors) == (1, 0, 1)


# --- GitHub -----------------------------------------------------------------------------------


@pytest.fixture
def github(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of a step; the file of its summary."""
    settings(f'[gate]\nrules = [\n "{HOLDS}",\n "{HOLDS}, warn",\n]\n')
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(here.parent))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "summary.md"))
    return here / "summary.md"


def test_annotations_and_summary_come_by_themselves(here: Path, github: Path) -> None:
    github.write_text("# Of another tool\n")
    shown = gate("cone.npy", code=1)
    error, warning = [line for line in shown.splitlines() if line.startswith("::")]
    assert error.startswith(
        f"::error title=embgeo gate%3A cosine.mean <= 0.5,file={here.name}/embgeo.toml,line=3::"
    )
    assert warning.startswith("::warning ")
    assert "line=4" in warning
    summary = github.read_text()
    assert summary.startswith("# Of another tool\n### embgeo gate failed")


@pytest.mark.usefixtures("github")
def test_json_is_not_mixed_with_annotations() -> None:
    result = call("cone.npy", "--json")
    assert json.loads(result.stdout)["passed"] is False
    assert result.stderr.startswith("::error ")


def test_github_silenced_and_forced(github: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "::" not in gate("cone.npy", "--no-github", code=1)
    assert not github.exists()
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert "\n::" not in gate("cone.npy", code=1)
    assert github.exists()  # the summary has a variable of its own
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    monkeypatch.delenv("GITHUB_WORKSPACE")
    assert "file=embgeo.toml,line=3" in gate("cone.npy", "--github", code=1)


def test_a_full_summary_is_left_alone(github: Path) -> None:
    github.write_bytes(b"x" * (2**20 - 50))
    gate("cone.npy", code=1)
    assert github.stat().st_size == 2**20 - 50


def test_a_crash_is_annotated_as_what_it_is(github: Path) -> None:
    result = call("missing.npy")
    assert result.exit_code == 2
    assert result.stdout.startswith("::error title=embgeo gate could not run::missing.npy: there")
    assert result.stdout.count("\n") == 1
    assert "could not run" in github.read_text()


def test_a_summary_that_cannot_be_written_is_2(
    github: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(github / "no" / "folder"))
    result = call("round.npy")
    assert result.exit_code == 2
    assert "--no-github" in result.stderr


def test_a_summary_needs_no_mode_that_windows_lacks(
    github: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _blocking: bool) -> None:
        raise OSError("The handle is invalid")

    monkeypatch.delattr(os, "O_NONBLOCK", raising=False)
    monkeypatch.setattr(os, "set_blocking", refuse)
    gate("cone.npy", code=1)
    assert github.read_text().startswith("### embgeo gate failed")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_without_a_reader_is_refused_as_summary(github: Path) -> None:
    os.mkfifo(github)
    result = call("round.npy")
    assert result.exit_code == 2
    assert "summary.md: cannot be written" in result.stderr
    reader = os.open(github, os.O_RDONLY | os.O_NONBLOCK)
    gate("cone.npy", code=1)
    assert os.read(reader, 2**16).startswith(b"### embgeo gate failed")
    os.close(reader)


@pytest.mark.skipif(os.name == "nt", reason="such names are not possible on Windows")
@pytest.mark.usefixtures("github")
def test_a_hostile_file_name_gives_no_commands() -> None:
    name = "##[error]a\n::error::b\x1b[2J%0A,c:d.npy"
    Path("cone.npy").rename(name)
    for arguments in ((name,), (name, "--json")):
        result = call(*arguments)
        assert result.exit_code == 1
        lines = (result.stdout + result.stderr).splitlines()
        assert sum(line.lstrip().startswith("::") for line in lines) == 2
        assert not any("##[" in line for line in lines if not line.startswith("::"))
        assert "\x1b" not in result.output
    Path(name).write_bytes(b"damaged")
    result = call(name)
    assert result.exit_code == 2
    assert sum(line.startswith("::") for line in result.output.splitlines()) == 1
    assert "##[" not in result.stderr


def test_what_a_gate_says_is_the_same_as_of_the_library() -> None:
    analysis = embgeo.analyze(embgeo.load("round.npy"), sections=("cosine",), reference=False)
    found = json.loads(gate("round.npy", "-r", HOLDS, "--json"))
    scalar = analysis.find_scalar("cosine.mean")
    assert scalar is not None
    assert found["checks"][0]["measured"]["value"] == scalar.value
