"""Whole commands: help, README's first one, and a comparison of checkpoints beside modeldelta's."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import peers
from benchmarks.harness.answers import errors
from benchmarks.harness.call import ROOT, Wrong
from benchmarks.harness.command import PYTHON, command
from benchmarks.harness.contest import Bench, Round
from benchmarks.harness.matrices import Shape, open_matrix, write_matrix
from benchmarks.harness.row import Row, absent, over_rounds, ratio, seconds

TITLE = "Whole commands"


@dataclass(frozen=True)
class Sizes:
    """Rounds of a fraction of a second each, and the matrix that is compared."""

    rounds: int
    shape: Shape


FULL = Sizes(21, Shape(50_257, 768))
TINY = Sizes(1, Shape(400, 12))
HELP, TYPER = "embgeo --help", 'python -c "import typer"'
README, DIFF = "README's fixture", "diff of two checkpoints"
IMPORTS = "imports alone"
PEER = "modeldelta"
FIXTURE = ("fixtures/baseline.pt", "--counts", "fixtures/vocab_counts.tsv")
#: What a report imports of other packages.
PACKAGES = "numpy, scipy.linalg, scipy.optimize, scipy.spatial, matplotlib.figure, jinja2, typer"
BOUND_GB = 1.0


def measure(bench: Bench, sizes: Sizes = FULL) -> list[Row]:
    return [*measure_help(bench, sizes.rounds), *measure_work(bench, sizes.shape)]


def measure_help(bench: Bench, rounds: int) -> list[Row]:
    contenders = {
        HELP: command([*PYTHON, "-m", "embgeo", "--help"], check_help),
        TYPER: command([*PYTHON, "-c", "import typer"], lambda _: {}),
    }
    for once in contenders.values():
        once()
    runs = bench.contest(contenders, rounds)
    return [ratio(HELP, runs[HELP], runs[TYPER], 2.0, "whole processes")]


def measure_work(bench: Bench, shape: Shape) -> list[Row]:
    folders = [write_checkpoint(bench.scratch, shape, step) for step in (0, 1)]
    known = bench.call(compute_change, {"paths": [f"{x}/model.safetensors" for x in folders]})
    pythons = {"": Path(sys.executable)} | ({" before": bench.before} if bench.before else {})
    contenders = {IMPORTS: command([*PYTHON, "-c", f"import {PACKAGES}"], lambda _: {})}
    for suffix, python in pythons.items():
        fixture = ("analyze", *(str(ROOT / x) if "/" in x else x for x in FIXTURE))
        for name, line, check in (
            (README, fixture, lambda _: {}),
            (DIFF, ("diff", *folders), partial(check_change, known)),
        ):
            out = bench.scratch / f"{name[:4]}{suffix.strip()}.embgeo"
            contenders[name + suffix] = whole(python, line, out, check)
    has_peer = PEER in peers.list_installed(bench.peers)
    if has_peer and bench.peers:
        page = str(bench.scratch / "modeldelta.html")
        peer = [str(bench.peers), "-m", "modeldelta", *folders, "-o", page]
        contenders[PEER] = command(peer, lambda _: {}, cwd=bench.scratch)
    runs = bench.contest(contenders, 3)
    diff, what = runs[DIFF], f"{DIFF}, {shape.text}"
    rows = [
        seconds(README, runs[README], 2.2),
        ratio(README, runs[README], runs[IMPORTS], None, f"import {PACKAGES}"),
        over_rounds(
            f"peak, {what}",
            [run["peak_gb"] for run in diff.results],
            unit="GB",
            bound=BOUND_GB,
            note="all resident pages, those of both files included",
        ),
    ]
    if bench.before:
        rows.append(ratio(README, runs[README], runs[f"{README} before"]))
        rows.append(ratio(what, diff, runs[f"{DIFF} before"]))
    if has_peer:
        return [*rows, ratio(what, diff, runs[PEER], 2.0)]
    return [*rows, absent(f"{what}, against {PEER}", peers.MISSING, 2.0)]


def check_help(printed: str) -> dict[str, float]:
    if "analyze" not in printed:
        raise Wrong("embgeo --help does not name its commands")
    return {}


def whole(
    python: Path, arguments: tuple[str, ...], out: Path, check: Callable[[Any], dict[str, float]]
) -> Callable[[], Round]:
    """A command of embgeo that writes a folder, which is looked at."""

    def look(_: str) -> dict[str, float]:
        results = [json.loads(path.read_text("utf-8")) for path in out.glob("*.json")]
        page = (out / "report.html").read_text("utf-8")
        if not any(results) or "</html>" not in page:
            raise Wrong(f"{out} holds no result")
        shutil.rmtree(out)
        return check(results)

    shutil.rmtree(out, ignore_errors=True)
    return command(
        [str(python), "-m", "embgeo", *arguments, "-q", "-o", str(out)], look, cwd=out.parent
    )


def compute_change(paths: list[str]) -> dict[str, Any]:
    """Numbers of the change from one checkpoint to another, by plain formulas in float64."""
    from safetensors.numpy import load_file

    x, y = (load_file(path)["embed_tokens.weight"].astype(np.float64) for path in paths)
    change = y - x
    sigma = np.sqrt(np.maximum(np.linalg.eigvalsh(change.T @ change), 0.0))
    share = sigma / sigma.sum()
    return {
        "relative_change": float(np.linalg.norm(change) / np.linalg.norm(x)),
        "matrix_cosine": float(np.vdot(x, y) / np.linalg.norm(x) / np.linalg.norm(y)),
        "change_effective_rank": float(np.exp(-np.sum(share * np.log(share)))),
    }


def check_change(known: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, float]:
    scalars = next(result for result in results if "pairs" in result)["pairs"][0]["scalars"]
    found = {scalar["name"].removeprefix("compare."): scalar["value"] for scalar in scalars}
    return errors("embgeo diff", found, known, dict.fromkeys(known, 1e-7))


def write_checkpoint(scratch: Path, shape: Shape, step: int) -> str:
    """A checkpoint with the matrix, changed a little in step 1."""
    from safetensors.numpy import save_file

    folder = scratch / f"checkpoint-{shape.rows}-{step}"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "model.safetensors").exists():
        W = np.array(open_matrix(write_matrix(shape, scratch)))
        noise = np.random.default_rng(1).standard_normal(W.shape, dtype=np.float32)
        save_file({"embed_tokens.weight": W + step * 0.01 * noise}, folder / "model.safetensors")
    return str(folder)
