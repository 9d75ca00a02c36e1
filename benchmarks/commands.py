"""Whole commands: README's first one, and a comparison of two checkpoints beside modeldelta's."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.harness import peers
from benchmarks.harness.call import ROOT, Wrong
from benchmarks.harness.command import command
from benchmarks.harness.contest import Bench, Round
from benchmarks.harness.matrices import Shape, open_matrix, write_matrix
from benchmarks.harness.row import Row, absent, ratio, seconds

TITLE = "Whole commands"
FULL = Shape(50_257, 768)
TINY = Shape(400, 12)
README, DIFF = "README's fixture", "diff of two checkpoints"
PEER = "modeldelta"
FIXTURE = ("fixtures/baseline.pt", "--counts", "fixtures/vocab_counts.tsv")


def measure(bench: Bench, shape: Shape = FULL) -> list[Row]:
    folders = [write_checkpoint(bench.scratch, shape, step) for step in (0, 1)]
    pythons = {"": Path(sys.executable)} | ({" before": bench.before} if bench.before else {})
    contenders = {}
    for suffix, python in pythons.items():
        for name, command_ in (
            (README, ("analyze", *(str(ROOT / x) if "/" in x else x for x in FIXTURE))),
            (DIFF, ("diff", *folders)),
        ):
            out = bench.scratch / f"{name[:4]}{suffix.strip()}.embgeo"
            contenders[name + suffix] = whole(python, command_, out)
    has_peer = PEER in peers.list_installed(bench.peers)
    if has_peer and bench.peers:
        page = str(bench.scratch / "modeldelta.html")
        peer = [str(bench.peers), "-m", "modeldelta", *folders, "-o", page]
        contenders[PEER] = command(peer, lambda _: {}, cwd=bench.scratch)
    runs = bench.contest(contenders, 3)
    diff, what = runs[DIFF], f"{DIFF}, {shape.text}"
    rows = [seconds(README, runs[README], 2.2)]
    if bench.before:
        rows.append(ratio(README, runs[README], runs[f"{README} before"]))
        rows.append(ratio(what, diff, runs[f"{DIFF} before"]))
    if has_peer:
        return [*rows, ratio(what, diff, runs[PEER], 2.0)]
    return [*rows, absent(f"{what}, against {PEER}", peers.MISSING, 2.0)]


def whole(python: Path, arguments: tuple[str, ...], out: Path) -> Callable[[], Round]:
    """A command of embgeo that writes a folder, which is looked at."""

    def check(_: str) -> dict[str, float]:
        results = [json.loads(path.read_text("utf-8")) for path in out.glob("*.json")]
        page = (out / "report.html").read_text("utf-8")
        if not any(results) or "</html>" not in page:
            raise Wrong(f"{out} holds no result")
        shutil.rmtree(out)
        return {}

    shutil.rmtree(out, ignore_errors=True)
    return command(
        [str(python), "-m", "embgeo", *arguments, "-q", "-o", str(out)], check, cwd=out.parent
    )


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
