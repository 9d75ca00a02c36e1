"""docs/scale.md runs: its story, its job for Slurm, its programs for Spark, Ray and dask."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
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


W = gaussian(701, 240, 6) + 0.3


@pytest.fixture
def table() -> Any:
    """Rows with tokens and counts."""
    pa = pytest.importorskip("pyarrow")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(W.ravel()), W.shape[1])
    words = [f"w{i}" for i in range(len(W))]
    return pa.table({"word": words, "n": 1 + np.arange(len(W)), "vector": vectors})


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], None]:
    """Run the program of an engine on a table, and compare its result with one run."""

    def follow(mark: str, held: Any) -> None:
        monkeypatch.chdir(tmp_path)
        (program,) = [text for text in blocks(PAGE, "python") if mark in text]
        exec(compile(program, str(PAGE), "exec"), {"table": held})
        found, whole = embgeo.load_analysis("result.embgeo"), embgeo.analyze(W)
        for name in ("spectrum.effective_rank", "cosine.mean", "isotropy.i1_mean_sign"):
            assert float(found[name]) == pytest.approx(float(whole[name]), rel=1e-12)
        assert set(found.tokens or ()) == {f"w{i}" for i in range(len(W))}

    return follow


@pytest.mark.loopback
@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")  # the engine's own, about itself and pandas
def test_the_program_for_spark(
    table: Any, follow: Callable[[str, Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = pytest.importorskip("pyspark.sql")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    local = sql.SparkSession.builder.master("local[2]")
    spark = local.config("spark.driver.host", "127.0.0.1").getOrCreate()
    try:
        follow("mapInArrow", spark.createDataFrame(table.to_pandas()).repartition(3, "n"))
    finally:
        spark.stop()


@pytest.mark.loopback
@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")  # the engine's own, about itself and pandas
def test_the_program_for_ray(table: Any, follow: Callable[[str, Any], None]) -> None:
    ray = pytest.importorskip("ray")
    try:
        follow("map_batches", ray.data.from_arrow([table.slice(a, 80) for a in (0, 80, 160)]))
    finally:
        ray.shutdown()


@pytest.mark.slow
def test_the_program_for_dask(table: Any, follow: Callable[[str, Any], None]) -> None:
    bag, config = pytest.importorskip("dask.bag"), pytest.importorskip("dask.config")
    # With empty parts, in a partition with others and alone.
    parts = [table[:0], table[:80], table[:0], table[80:80], table[80:160], table[160:]]
    with config.set(scheduler="sync"):
        follow("flatten()", bag.from_sequence(parts, npartitions=3))
