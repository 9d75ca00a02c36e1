"""What lies in the folder of a stranger, and is not read or believed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import embgeo
from tests.support.command import call
from tests.support.sampling import each_value

ROOT = Path(__file__).parents[2]
W = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)
#: Prints every file in the working folder that is opened.
MAIN = f"""
import os, sys
sys.path[:] = [{str(ROOT)!r}, *(p for p in sys.path if p)]
here = os.getcwd() + os.sep
def note(event, arguments):
    if event == "open" and isinstance(arguments[0], str | bytes):
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if path.startswith(here):
            print("OPENED", path[len(here):], file=sys.stderr)
sys.addaudithook(note)
import embgeo.cli.app as a
a.main()
"""

SPECTRUM = ("--figure", "spectrum")
needs_links = pytest.mark.skipif(os.name == "nt", reason="links need rights there")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("command", ["analyze", "figures"])
def test_no_file_of_the_working_folder_is_read(here: Path, tmp_path: Path, command: str) -> None:
    np.save(tmp_path / "a.npy", W)
    embgeo.analyze(tmp_path / "a.npy").save(tmp_path / "saved")
    noise = random.Random(0).randbytes(300)
    for name in ("matplotlibrc", "numpy.py", ".env", "setup.cfg", "tokenizer.json", "config.json"):
        (here / name).write_bytes(noise)
    arguments = {
        "analyze": ["analyze", str(tmp_path / "a.npy"), "-q", "-o", str(tmp_path / "out")],
        "figures": ["figures", str(tmp_path / "saved"), "-o", str(tmp_path / "out"), *SPECTRUM],
    }
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments[command]],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "OPENED" not in done.stderr


# --- the checkpoint that a saved analysis names --------------------------------------------------


def save_stranger(here: Path, given: Path | str, name: str = "saved") -> Path:
    """A saved analysis that names another file as its checkpoint."""
    np.save(here / "original.npy", W)
    folder = here / name
    embgeo.analyze(here / "original.npy", sections="cosine").save(folder)
    (here / "original.npy").unlink()
    record = folder / "analysis.json"
    content = json.loads(record.read_text())
    content["provenance"]["file"] = str(given)
    record.write_text(json.dumps(content))
    return folder


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """The same matrix, outside of the folder of the analysis."""
    (tmp_path / "home").mkdir()
    np.save(tmp_path / "home/original.npy", W)
    return tmp_path / "home/original.npy"


@pytest.mark.parametrize("given", ["absolute", "../home/original.npy", "link/original.npy"])
@needs_links
def test_a_checkpoint_elsewhere_is_not_opened(
    here: Path, secret: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    (here / "link").symlink_to(secret.parent)
    saved = save_stranger(here, secret if given == "absolute" else given)

    def refuse(*_: object) -> None:
        raise AssertionError("it was opened")

    monkeypatch.setattr("embgeo.workflows.saved_analysis.load_again", refuse)
    done = call("export", str(saved), "--to", "projector")
    assert done.exit_code == 2
    assert "is not in its folder; name the checkpoint with --checkpoint" in done.stderr


def test_a_comparison_finds_a_checkpoint_elsewhere_by_its_digest(here: Path, secret: Path) -> None:
    saved = save_stranger(here, secret)
    assert embgeo.diff(saved, saved).members[0].matrix_absent == ""
    np.save(secret, W + 1.0)
    assert "another sha256" in embgeo.diff(saved, saved).members[0].matrix_absent


def test_a_checkpoint_elsewhere_that_the_user_names(here: Path, secret: Path) -> None:
    saved = save_stranger(here, secret)
    more = ["--checkpoint", str(secret)]
    done = call("export", str(saved), "--to", "projector", *more)
    assert done.exit_code == 0, done.output


def test_a_checkpoint_beside_the_analysis_or_below_the_working_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_stranger(here, here / "models/original.npy", "results/saved")
    (here / "models").mkdir()
    np.save(here / "models/original.npy", W)
    assert call("export", "results/saved", "--to", "projector", "-o", "a").exit_code == 0
    monkeypatch.chdir(here / "results")
    assert call("export", "saved", "--to", "projector", "-o", "b").exit_code == 2
    np.save(here / "results/original.npy", W)
    save_stranger(here, "original.npy", "results/saved")
    assert call("export", "saved", "--to", "projector", "-o", "b").exit_code == 0


# --- links as outputs ---------------------------------------------------------------------------


WRITERS = (
    ["analyze", "a.npy", "-o"],
    ["diff", "a.npy", "a.npy", "-o"],
    ["figures", "saved", "-o"],
    ["report", "saved", "-o"],
    ["export", "saved", "--to", "csv", "-o"],
    ["export", "saved", "--to", "projector", "-o"],
    ["repair", "a.npy", "-o"],
    ["fetch", "hf://org/name", "-o"],
    ["gate", "a.npy", "-r", "cosine.mean <= 1", "--junit"],
)
TARGETS = ("nowhere", "nowhere/deep", "dead", "/proc/nowhere/x")


@pytest.mark.parametrize(
    ("command", "target", "below"),
    [
        (command, TARGETS[(k + below) % len(TARGETS)], bool(below))
        for k, command in enumerate(WRITERS)
        for below in (0, 1)
    ],
)
@needs_links
def test_a_link_to_nothing_is_found_before_anything_is_computed(
    here: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], target: str, below: bool
) -> None:
    np.save("a.npy", W)
    embgeo.analyze("a.npy", sections="cosine").save("saved")
    (here / "dead").symlink_to(target)
    before = sorted(os.listdir())

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was computed")

    monkeypatch.setattr("embgeo.measure.analyze.measure_rows", refuse)
    out = "dead/inside" if below and command[0] != "gate" else "dead"
    done = call(*command, out)
    assert done.exit_code == 2, done.output
    assert "is a link to nothing" in done.stderr.splitlines()[-1]
    assert sorted(os.listdir()) == before


# --- pipes and devices in saved results ---------------------------------------------------------


@each_value
@pytest.mark.parametrize("name", ["analysis.json", "arrays.npz"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize(
    "command",
    [
        ["gate", "-r", "cosine.mean <= 1"],
        ["report", "-o", "report.html"],
        ["export", "--to", "csv"],
        ["figures", "-o", "figures"],
    ],
)
@needs_links
def test_pipes_and_devices_in_saved_results_are_refused(
    here: Path, name: str, kind: str, command: list[str]
) -> None:
    """Reading them would never end, or fill the memory."""
    embgeo.analyze(W, sections="cosine").save("saved")
    path = here / "saved" / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    done = call(command[0], "saved", *command[1:])
    assert done.exit_code == 2, done.output
    assert "unexpected" not in done.stderr


@pytest.mark.usefixtures("here")
def test_a_long_settings_file_is_refused() -> None:
    np.save("a.npy", W)
    Path("embgeo.toml").write_text("#" * (2**20 + 1))
    done = call("analyze", "a.npy", "--json", "--sections", "cosine")
    assert done.exit_code == 2
    assert "more than 1 MiB" in done.stderr
