"""The corpus of hostile files: refused in one line, in seconds, and nothing else happens."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from embgeo.cli.app import run
from tests.support.hostile_cases import CANARY, Case
from tests.support.hostile_corpus import CORPUS, PARTS, NoNetwork, Outcome, command, missing, tree

HERE = Path(__file__).parents[1]
SCRIPT = HERE / "support" / "hostile_corpus.py"

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def reported(*options: str) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--report", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "executed, or wrote    0" in done.stdout


@forks
@pytest.mark.slow
def test_a_sample_in_processes_that_watch_themselves() -> None:
    """Each 160th file, with time and memory measured; the nightly run takes every file."""
    reported("--quick", "--sample", "160")


@forks
@pytest.mark.nightly
@pytest.mark.parametrize("part", PARTS)
def test_every_file(part: str) -> None:
    reported("--part", part, "--quick")


@forks
@pytest.mark.nightly
@pytest.mark.parametrize("name", ["pickle: dicts", "pickle: short strings"])
def test_what_takes_longest(name: str) -> None:
    reported("--only", name)


def of_each_format() -> list[Case]:
    """Two files of each format, in this process; all of them where there is no fork."""
    if not hasattr(os, "fork"):
        return [case for case in CORPUS if not case.dense]
    chosen: dict[tuple[str, bool], Case] = {}
    for case in CORPUS:
        if not case.dense:
            chosen.setdefault((case.format, case.opens), case)
    return list(chosen.values())


@pytest.mark.parametrize("case", of_each_format(), ids=lambda case: case.id)
@pytest.mark.slow
def test_in_this_process(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if missing(case):
        pytest.skip(f"{case.needs} is not installed")
    scratch, folder = tmp_path / "scratch", tmp_path / "case"
    scratch.mkdir()
    folder.mkdir()
    try:
        path = case.build(folder)
    except (AttributeError, NotImplementedError, OSError) as error:
        pytest.skip(f"this system has no such files: {error}")
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setattr(socket, "socket", NoNetwork)
    monkeypatch.chdir(folder)
    before = tree(folder)
    code = run(command(case, path, folder))
    assert Outcome(code, capfd.readouterr().err).complaint(case) == ""
    assert tree(folder) == before
    assert list(folder.rglob(f"*{CANARY}*")) == []
    assert list(scratch.iterdir()) == []


PROGRAM = """
import os, pathlib, pickle, socket, subprocess, sys, tempfile
from tests.support.hostile_corpus import watch
allowed, seen = pathlib.Path(sys.argv[1]), []
(allowed / "outside").mkdir()
(allowed / "inside").mkdir()
watch((allowed / "inside",), seen)
(allowed / "inside" / "file").write_text("")
assert seen == [], seen
(allowed / "outside" / "file").write_text("")
os.mkdir(allowed / "outside" / "folder")
os.system("exit 0")
subprocess.run([sys.executable, "-c", ""])
pickle.loads(b"cbuiltins\\nlist\\n.")
try:
    socket.getaddrinfo("localhost", 1)
except OSError:
    pass
print(len(seen), *seen, sep="\\n")
"""


@pytest.mark.slow
def test_the_watch_sees_what_it_should(tmp_path: Path) -> None:
    # Were it blind, the tests above could not fail.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=HERE.parent,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for event in ("wrote ", "os.mkdir", "os.system", "ran [", "pickle.find_class", "getaddrinfo"):
        assert event in done.stdout, (event, done.stdout)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(2, "embgeo: a: broken; mend it\n"), ""),
        (Outcome(0, ""), "exit code 0"),
        (Outcome(1, "Traceback"), "exit code 1"),
        (Outcome(-9, ""), "exit code -9"),
        (Outcome(2, ""), "not one line"),
        (Outcome(2, "a\nb\n"), "not one line"),
        (Outcome(2, "embgeo: unexpected KeyError: 3; --debug shows where\n"), "nobody foresaw"),
        (Outcome(2, "embgeo: a\n", ("os.system",)), "os.system"),
    ],
)
def test_complaints(outcome: Outcome, expected: str) -> None:
    complaint = outcome.complaint(CORPUS[0])
    assert expected in complaint
    assert bool(expected) == bool(complaint)
