"""The command line: exit codes, one-line errors, what is written and what is left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import embgeo
from embgeo.cli import shared
from embgeo.cli.app import COMMANDS, run
from embgeo.cli.shared import Stopped
from embgeo.core.errors import BadOption
from embgeo.workflows import folders
from tests.support.command import MAIN, call, content, refused, spawn
from tests.support.record import check_record
from tests.support.refusals import refusal
from tests.support.sampling import sample_cases

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
HOSTILE = FIXTURES / "hostile"
TINY = FIXTURES / "tiny"
WRITTEN = {"analysis.json", "arrays.npz", "report.html"}
#: Enough for everything that is written, and quick.
QUICK = ("--sections", "tokens,cosine", "--no-reference")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder with a small matrix, its tokens and counts."""
    monkeypatch.chdir(tmp_path)
    save("matrix.npy", some_rows(50, 4))
    lines("tokens.txt", 50, "t{}")
    lines("counts.tsv", 50, "t{}\t1{}")
    return tmp_path


def some_rows(n: int, d: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((n, d)).astype(np.float32)


def save(name: str, array: npt.NDArray[Any]) -> str:
    np.save(name, array)
    return name


def lines(name: str, n: int, line: str) -> str:
    text = "".join(line.format(row, row) + "\n" for row in range(n))
    Path(name).write_text(text, encoding="utf-8")
    return name


# --- Files that cannot be analyzed -----------------------------------------------------------


def test_unreadable_files() -> None:
    """Those of `HOSTILE` are read one by one in tests/io/test_mutants.py."""
    Path("folder").mkdir()
    names = ("os_system.pkl", "truncated.npy", "zip_bomb.pt", "terabytes.safetensors")
    for path in ("missing.pt", "folder", *(HOSTILE / name for name in names)):
        refused("analyze", path)
        refused("inspect", path)


def test_arrays_that_are_no_embedding() -> None:
    for array in (np.zeros(50), np.zeros((50, 0)), np.zeros((50, 4)), np.full((9, 2), 1e200)):
        refused("analyze", save("bad.npy", array))


@pytest.mark.slow
def test_poisoned_checkpoint_is_measured_and_not_run(here: Path) -> None:
    result = call("analyze", HOSTILE / "os_system.pt", *QUICK)
    assert result.exit_code == 0, result.output
    assert {path.name for path in here.iterdir() if path.is_file()} == {
        "matrix.npy",
        "tokens.txt",
        "counts.tsv",
    }


# --- Labels, counts, options -----------------------------------------------------------------


def test_labels_and_counts_that_do_not_fit() -> None:
    refused("analyze", "matrix.npy", "--tokens", lines("labels.txt", 49, "t{}"))
    refused("analyze", "matrix.npy", "--counts", lines("bad.tsv", 50, "t{}\tx"))


def test_options_that_do_not_fit() -> None:
    for options in (
        ("--rows", "5"),
        ("--rows", "40:20"),
        ("--rows", "0:51"),
        ("--tensor", "nope"),
        ("--sections", "spectrum,nope"),
        ("--sections", ","),
        ("--popular-share", "0.3"),
        ("--popular-share", "1"),
        ("--popular-share", "nan"),
        ("--pairs", "few"),
        ("--pairs", "-3"),
        ("--pairs", "10", "--sections", "spectrum"),
        ("--isotropy-rows", "51"),
        ("--isotropy-runs", "3"),
        ("--show-neighbors", "a"),
        ("--rank-order", "--show-neighbors", "t1"),
        ("--tokens", "tokens.txt", "--rank-order", "--show-neighbors", "t50"),
        ("--counts", "counts.tsv", "--rank-order"),
        ("--corpus", "tokens.txt"),
        ("-o", os.sep),
        ("-o", "x" * 500),
    ):
        refused("analyze", "matrix.npy", *options)


def test_wrong_command_lines() -> None:
    """Each names what was meant, before the state of a folder is looked at."""
    Path("full").mkdir()
    Path("full/notes.txt").touch()
    Path("-dash.vec").touch()
    for words in (
        "analyze",
        "analyze a b c",
        "inspect a b",
        "train a",
        "analyze -dash.vec",
        "diff a -dash.vec",
        "analise",
        "full",
        "export full",
        "xyz",
        "diff --zzqx",
        "gate x --rules y",
        "analyze matrix.npy --sed 3 -o full",
        "analyze matrix.npy --sections cosin -o full",
        "analyze matrix.npy --rows 5 -o full",
        "diff matrix.npy matrix.npy --queries x -o full",
        "repair matrix.npy --method means -o full",
        "figures matrix.npy --figure scater -o full",
        "analyze x --out=",
        "analyze matrix.npy -o",
        "gate matrix.npy --rule",
        "analyze x -q=1",
        "gate matrix.npy --json=1",
        "--version=1",
        "train --seeds x",
        "figures x --width 30",
        "analyze x --isotropy-rows z",
        "analyze x --padding 7",
        "export x --to cvs",
        "figures x --venue icmll",
        "analyze x --json --format markdown",
        "diff x y --json --format markdown",
        "gate x --json --format markdown",
        "analyze x --json --open",
        "diff x y --json --open",
        "diff x y --pairs 5",
        "gate x --counts y",
        "diff x --mach row",
    ):
        refused(*words.split())
    refused("analyze", "")


# --- Values that are not defined -------------------------------------------------------------


def test_undefined_values_say_why() -> None:
    save("odd.npy", some_rows(1, 8))
    result = call("analyze", "odd.npy", "--no-reference")
    assert result.exit_code == 0, result.output
    assert "not defined: a single row has no pairs" in result.stdout
    scalars = json.loads(Path("odd.embgeo/analysis.json").read_text())["scalars"]
    assert scalars["cosine.mean"]["value"] is None
    assert scalars["cosine.mean"]["undefined"] == "a single row has no pairs"


@pytest.mark.slow
def test_rows_that_are_not_finite_are_left_out_and_counted() -> None:
    rows = some_rows(10, 4)
    rows[3] = np.nan
    save("holes.npy", rows)
    result = call("analyze", "holes.npy", "--no-reference")
    assert result.exit_code == 0, result.output
    assert "left out: non-finite" in result.stdout
    written = json.loads(Path("holes.embgeo/analysis.json").read_text())
    assert written["provenance"]["kept"] == 9
    assert "frequency" in written["absent"]


# --- What is written -------------------------------------------------------------------------


def test_a_folder_named_after_the_file_and_a_summary(here: Path) -> None:
    result = call("analyze", "matrix.npy", *QUICK)
    assert result.exit_code == 0, result.output
    assert {path.name for path in (here / "matrix.embgeo").iterdir()} == WRITTEN
    assert "Mean cosine" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("report: ")
    assert result.stderr == ""
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


@pytest.mark.slow
def test_quiet_says_nothing(here: Path) -> None:
    result = call("analyze", "matrix.npy", "--quiet", "-o", "deep/er/result", *QUICK)
    assert (result.exit_code, result.output) == (0, "")
    assert {path.name for path in (here / "deep/er/result").iterdir()} == WRITTEN
    again = call("report", "deep/er/result", "--quiet")
    assert (again.exit_code, again.output) == (0, "")


def test_json_goes_to_stdout_alone(here: Path) -> None:
    before = content(here)
    result = call("analyze", "matrix.npy", "--json", *QUICK)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["format"] == "embgeo.analysis"
    assert content(here) == before


@pytest.mark.slow
def test_json_and_folder_hold_the_same(here: Path) -> None:
    result = call("analyze", "matrix.npy", "--json", "-o", "out", *QUICK)
    assert result.exit_code == 0, result.output
    saved = json.loads((here / "out/analysis.json").read_text())
    assert saved.pop("arrays_sha256") == sha256((here / "out/arrays.npz").read_bytes()).hexdigest()
    assert json.loads(result.stdout) == saved
    assert {path.name for path in (here / "out").iterdir()} == WRITTEN


@pytest.mark.slow
def test_equal_runs_differ_in_timing_alone(here: Path) -> None:
    written = []
    for name in ("one", "two"):
        arguments = ("matrix.npy", "--counts", "counts.tsv", "--no-reference", "-o", name)
        assert call("analyze", *arguments).exit_code == 0
        text = (here / name / "analysis.json").read_text()
        written.append(text[: text.index('"timing"')])
    assert written[0] == written[1]


@pytest.mark.slow
def test_an_analysis_is_replaced(here: Path) -> None:
    Path("out").mkdir()  # an empty folder is as good as none
    assert call("analyze", "matrix.npy", "-o", "out", *QUICK).exit_code == 0
    Path("out/notes.txt").write_text("mine")
    save("other.npy", some_rows(20, 3))
    assert call("analyze", "other.npy", "-o", "out", *QUICK).exit_code == 0
    assert json.loads((here / "out/analysis.json").read_text())["provenance"]["n"] == 20
    assert embgeo.load_analysis(Path("out")).rows.shape == (20,)
    assert Path("out/notes.txt").read_text() == "mine"


@pytest.mark.parametrize("target", ["foreign", "matrix.npy"])
def test_what_is_not_an_analysis_is_not_touched(target: str) -> None:
    Path("foreign").mkdir()
    Path("foreign/thesis.tex").write_text("mine")
    refused("analyze", "matrix.npy", "-o", target)


@pytest.mark.slow
def test_report_is_rendered_again_from_the_folder_alone(here: Path) -> None:
    assert call("analyze", "matrix.npy", *QUICK).exit_code == 0
    page = here / "matrix.embgeo/report.html"
    first = page.read_bytes()
    page.unlink()
    Path("matrix.npy").unlink()
    result = call("report", "matrix.embgeo")
    assert result.exit_code == 0, result.output
    assert page.read_bytes() == first
    assert call("report", "matrix.embgeo/analysis.json", "-o", "copy.html").exit_code == 0
    assert Path("copy.html").read_bytes() == first


def test_folders_that_hold_no_analysis() -> None:
    for text in (
        None,
        "not JSON",
        '{"format": "else"}',
        '{"format": "embgeo.analysis", "format_version": 99}',
        '{"format": "embgeo.analysis", "format_version": 3}',
    ):
        Path("folder").mkdir(exist_ok=True)
        if text is not None:
            Path("folder/analysis.json").write_text(text)
        refused("report", "folder")
    refused("report", "matrix.npy")
    refused("report", "nowhere")


def test_inspect_lists_and_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TINY)
    record = Path(__file__).with_name("inspections.txt")
    for options in ("tiny-sharded", "tiny-sharded --all", "tiny-sharded --json"):
        result = call("inspect", *options.split())
        assert result.exit_code == 0, result.output
        check_record(record, f"inspect {options}", result.stdout.splitlines())


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("arguments", [("inspect", "a.npz"), ("inspect", "a.npz", "--json")])
def test_names_in_files_give_githubs_runner_no_commands(
    here: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    hostile = "##[error]x\n::set-output name=a::b"
    np.savez(here / "a.npz", **{hostile: np.eye(4), "::warning::y": np.eye(3)})
    assert "##[error]" in call(*arguments).output
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for result in (call(*arguments), call("analyze", "a.npz", "--tensor", "##[error]z")):
        assert "##[" not in result.output
        assert not any(line.lstrip().startswith("::") for line in result.output.splitlines())


@pytest.mark.slow
def test_inspect_says_which_tokens_and_counts_a_file_carries() -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {"word": ["the", "of"], "count": [9, 7], "vector": [[0.5, 1.0], [2.5, 3.0]]}
    pq.write_table(pa.table(rows), "a.parquet")
    result = call("inspect", "a.parquet")
    assert "tokens: 2, column word of the file\n" in result.output
    assert "counts: 2, column count of the file\n" in result.output
    facts = json.loads(call("inspect", "a.parquet", "--json").stdout)
    assert (facts["tokens"], facts["counts"]) == (2, 2)
    Path("b.txt").write_text("0.5 1.5\n2.5 3.5\n")
    assert "tokens" not in call("inspect", "b.txt").output


@pytest.mark.usefixtures("here")
def test_inspect_names_the_file_once_when_in_doubt() -> None:
    np.savez("two.npz", a=np.ones((5, 2)), b=np.ones((4, 2)))
    output = call("inspect", "two.npz").output
    assert "\nno choice: several tensors could be the embedding matrix: " in output
    assert output.count("two.npz") == 1


# --- When something goes wrong on the way ----------------------------------------------------


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("where", ["embgeo.io.load.open_source", "embgeo.measure.analyze.assemble"])
def test_interrupted_while_computing(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setattr(where, failing(KeyboardInterrupt()))
    assert run(["analyze", "matrix.npy", *QUICK]) == 130


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), 130), (Stopped("SIGTERM"), 143), (ValueError("bad"), 2)],
)
def test_a_command_that_a_signal_ends_has_the_exit_code_of_shells(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
) -> None:
    monkeypatch.setattr("embgeo.io.load.open_source", failing(error))
    assert run(["analyze", "matrix.npy"]) == code
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("how", [KeyboardInterrupt(), SystemExit(130), 130])
def test_interrupted_before_any_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], how: Any
) -> None:
    """typer itself may catch it first, and answers with a code of its own."""

    def group(*_: object, **__: object) -> int:
        if isinstance(how, int):
            return how
        raise how

    monkeypatch.setattr("embgeo.cli.app.app", group)
    assert run(["analyze", "matrix.npy"]) == 130
    assert capsys.readouterr().err == "embgeo: interrupted; no result was written\n"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there are no such signals on Windows")
@pytest.mark.parametrize(("name", "exit_code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_to_end_is_one_line(name: str, exit_code: int) -> None:
    code = (
        f"import os, signal, sys; sys.path.insert(0, {str(ROOT)!r})\n"
        # nohup, for one, has children ignore the signal.
        f"signal.signal(signal.{name}, signal.SIG_DFL)\n"
        "import embgeo.cli.app as app\n"
        f"app.app = lambda *_, **__: os.kill(os.getpid(), signal.{name})\n"
        "app.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        exit_code,
        f"embgeo: stopped by {name}; no result was written\n",
    )


@pytest.mark.slow
def test_interrupted_while_the_program_is_read() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from embgeo.__main__ import main\n"
        "class Stop:\n"
        "    def find_spec(self, *_): raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop()); main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "embgeo: interrupted; no result was written\n")


@pytest.mark.slow
def test_stopped_while_writing_leaves_the_old_result(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("analyze", "matrix.npy", *QUICK).exit_code == 0
    before = content(here)
    monkeypatch.setattr("embgeo.report.analysis.render", failing(KeyboardInterrupt()))
    result = call("analyze", "matrix.npy", *QUICK)
    assert (result.exit_code, result.stderr.count("\n")) == (130, 1)
    assert content(here) == before


def test_a_crash_is_2_in_one_line_and_a_traceback_on_request(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(here)
    error = RuntimeError("first\nsecond\x1b[31m")
    monkeypatch.setattr("embgeo.io.load.open_source", failing(error))
    result = call("analyze", "matrix.npy")
    assert result.exit_code == 2
    assert result.stderr == (
        "embgeo: unexpected RuntimeError: first second\\x1b[31m; --debug shows where\n"
    )
    traced = call("analyze", "matrix.npy", "--debug")
    assert traced.exit_code == 2
    assert "Traceback" in traced.stderr
    assert content(here) == before


def test_out_of_memory_names_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embgeo.io.load.open_source", failing(MemoryError()))
    refused("analyze", "matrix.npy")


# --- In a process of its own -----------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    sample_cases(
        ["new\nline\x1b[2J.pt", "missing.pt", HOSTILE / "os_system.pkl", HOSTILE / "zip_bomb.pt"], 3
    ),
    ids=lambda path: Path(path).stem,
)
@pytest.mark.slow
def test_one_line_and_exit_code_2(here: Path, path: Path | str) -> None:
    before = content(here)
    run = spawn("analyze", path)
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.count("\n") == 1
    assert "Traceback" not in run.stderr
    assert "\x1b" not in run.stderr
    assert content(here) == before


@pytest.mark.slow
def test_a_run_from_beginning_to_end(here: Path) -> None:
    run = spawn("analyze", "matrix.npy", "--tokens", "tokens.txt", *QUICK)
    assert (run.returncode, run.stderr) == (0, "")
    provenance = json.loads((here / "matrix.embgeo/analysis.json").read_text())["provenance"]
    assert provenance["command"].startswith("embgeo analyze matrix.npy --tokens tokens.txt")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are closed in another way on Windows")
@pytest.mark.slow
def test_a_reader_that_has_gone_is_no_crash(tmp_path: Path) -> None:
    """And the result is written all the same."""
    out = ["-o", str(tmp_path / "result"), *QUICK]
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "analyze", str(TINY / "tiny.pt"), *out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(60)
    assert (process.returncode, errors) == (2, b"")
    assert (tmp_path / "result" / "report.html").exists()


@pytest.mark.slow
def test_terminal_of_another_encoding() -> None:
    run = spawn("analyze", "matrix.npy", *QUICK, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert run.returncode == 0, run.stderr
    assert "50 \\xd7 4" in run.stdout


# --- Help ------------------------------------------------------------------------------------


def test_version() -> None:
    result = call("--version")
    assert (result.exit_code, result.output) == (0, f"embgeo {embgeo.__version__}\n")


def test_without_a_command_the_help_is_shown() -> None:
    result = call()
    assert result.exit_code == 2
    assert "Commands:" in result.output


def test_every_command_has_help() -> None:
    for command in COMMANDS:
        result = call(command, "--help")
        assert result.exit_code == 0
        assert "Example:\n  embgeo" in result.output
        assert " ".join(result.output.split("\n\n")[1].split()) == COMMANDS[command]


def test_hostile_text_is_printed_without_control_characters() -> None:
    assert shared.printable("a\x1b[31m\r\nb\u202e·é") == "a\\x1b[31m\\r\\nb\\u202e·é"


def test_a_folder_below_a_file_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with refusal(BadOption):
        folders.check_analysis_folder(tmp_path / "file" / "deeper" / "out")
    with refusal(BadOption):
        folders.check_analysis_folder(tmp_path / "file")


@pytest.mark.slow
def test_report_does_not_write_over_another_file(tmp_path: Path) -> None:
    tiny = ROOT / "fixtures" / "tiny" / "tiny.npy"
    assert call("analyze", tiny, "-o", tmp_path / "r", "--no-reference").exit_code == 0
    before = (tmp_path / "r" / "analysis.json").read_bytes()
    done = call("report", tmp_path / "r", "-o", tmp_path / "r" / "analysis.json")
    assert done.exit_code == 2
    assert (tmp_path / "r" / "analysis.json").read_bytes() == before
    assert call("report", tmp_path / "r").exit_code == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["--version"], ["analyze", "--help"]])
@pytest.mark.slow
def test_a_full_disk_under_stdout_is_told_in_one_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("embgeo: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_python_m_embgeo_is_the_command_line() -> None:
    command = [sys.executable, "-m", "embgeo", "--version"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("embgeo ")


@pytest.mark.usefixtures("here")
def test_neighbors_of_a_requested_token_are_printed() -> None:
    W = np.load("matrix.npy").astype(np.float64)
    names = [f"t{row}" for row in range(len(W))]
    names[3] = "t3\x1b[31m"
    Path("names.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    given = ("--tokens", "names.txt", "--show-neighbors", "t0=t1", "--sections", "frequency")
    result = call("analyze", "matrix.npy", *given, "--no-reference")
    assert result.exit_code == 0, result.output
    unit = W / np.linalg.norm(W, axis=1, keepdims=True)
    order = [row for row in np.argsort(-unit @ unit[0], kind="stable") if row != 0]
    listed = next(line for line in result.output.splitlines() if "Neighbors of t0: " in line)
    shown = [word.strip() for word in listed.partition(": ")[2].split(",")]
    assert [name.partition("\\")[0] for name in shown] == [f"t{row}" for row in order[:10]]
    rank = order.index(1) + 1
    assert f"  Rank of t1 among the neighbors of t0: {rank}" in result.output.splitlines()
    assert "\x1b" not in result.output


@pytest.mark.usefixtures("here")
def test_unknown_tokens_bring_suggestions() -> None:
    names = [f"word{row}" for row in range(len(np.load("matrix.npy")))]
    Path("names.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    result = call("analyze", "matrix.npy", "--tokens", "names.txt", "--show-neighbors", "wrod1")
    assert result.exit_code == 2
    assert "no token is called 'wrod1'; did you mean 'word1'" in result.stderr
