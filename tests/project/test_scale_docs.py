"""docs/scale.md runs: its story in two rounds, its job for Slurm, its programs for Ray, Spark."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import embgeo
from embgeo.cli.app import app
from tests.support.documents import ROOT, agrees, blocks, commands
from tests.support.matrices import gaussian

PAGE = ROOT / "docs" / "scale.md"

#: A stand-in for Slurm's sbatch that runs every task at once.
SBATCH = """#!/bin/bash
set -eu
for argument in "$@"; do
  case "$argument" in
    --array=1-*) tasks=${argument#--array=1-} ;;
    --wrap=*) command=${argument#--wrap=} ;;
    --dependency=afterok:[0-9]*) ;;
    --parsable | --cpus-per-task=* | --mem=*) ;;
    *) echo "sbatch: $argument" >&2; exit 1 ;;
  esac
done
for ((task = 1; task <= ${tasks:-1}; task++)); do
  SLURM_ARRAY_TASK_ID=$task bash -c "$command" >&2
done
echo 4711
"""


@pytest.mark.slow
@pytest.mark.usefixtures("outlines")
def test_the_story_from_top_to_bottom(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    story = [command for block in blocks(PAGE, "console") for command in commands(block)]
    assert len(story) == 6
    with contextlib.chdir(tmp_path):
        for command in story:
            program, *arguments = shlex.split(command.line)
            assert program == "embgeo"
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, result.output
            assert agrees(command.output, result.output), result.output


@pytest.mark.skipif(shutil.which("bash") is None, reason="the job is a bash script")
@pytest.mark.nightly
def test_the_slurm_job(tmp_path: Path) -> None:
    (script,) = blocks(PAGE, "bash")
    programs = tmp_path / "bin"
    programs.mkdir()
    python = f'#!/bin/bash\nPYTHONPATH={ROOT} exec {sys.executable} -m embgeo "$@"\n'
    for name, text in (("sbatch", SBATCH), ("embgeo", python), ("measure.sh", script)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    np.save(tmp_path / "W.npy", gaussian(700, 40, 3))
    done = subprocess.run(
        ["measure.sh", "W.npy", "2"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert embgeo.load_analysis(tmp_path / "result.embgeo").provenance["n"] == 40


def ray_that_runs_here() -> ModuleType:
    """A stand-in for ray: a remote call is made when its result is asked for."""
    ray: Any = ModuleType("ray")
    ray.remote = lambda function: SimpleNamespace(remote=partial(partial, function))
    ray.get = lambda calls: [call() for call in calls]
    found: ModuleType = ray
    return found


class SparkThatRunsHere:
    """A stand-in for a session of Spark: what is mapped is computed when it is collected."""

    def __init__(self) -> None:
        self.sparkContext = self

    def parallelize(self, items: Iterable[Any], slices: int) -> SparkThatRunsHere:
        self.items = list(items)
        assert slices == len(self.items)
        return self

    def map(self, function: Callable[[Any], Any]) -> SimpleNamespace:
        return SimpleNamespace(collect=lambda: [function(item) for item in self.items])


@pytest.mark.parametrize("engine", ["ray", "spark"])
@pytest.mark.slow
def test_the_programs_for_ray_and_spark(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common, *programs = blocks(PAGE, "python")
    (program,) = [text for text in programs if f"{engine}." in text]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", ray_that_runs_here())

    def run(arguments: list[str], check: bool) -> None:
        assert arguments[0] == "embgeo"
        assert check
        result = CliRunner().invoke(app, arguments[1:])
        assert result.exit_code == 0, result.output

    monkeypatch.setattr(subprocess, "run", run)
    np.save("table.npy", gaussian(701, 40, 3))
    names = {"spark": SparkThatRunsHere()} if engine == "spark" else {}
    exec(compile(f"{common}\n{program}", str(PAGE), "exec"), names)
    assert embgeo.load_analysis("result.embgeo").provenance["n"] == 40
