"""What a step of `embgeo diff --track` costs on top of its arithmetic, in processor seconds.

    python benchmarks/track.py [--steps 6 24]

Matrices of 300 × 8 are so small that overhead shows. The whole command runs in a process of its
own, with two numbers of steps; their difference is what a further step costs, and the rest is spent
once (imports, the report). The arithmetic of a step, an analysis with its isotropic reference and
two comparisons, is timed in this process, after a first one that is not counted.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from embgeo.comparison.compare import Input, compare_pair
from embgeo.comparison.comparison import Member
from embgeo.comparison.matching import match_rows
from embgeo.core.progress import Progress
from embgeo.io.load import load
from embgeo.measure.analyze import analyze
from embgeo.stats.resources import Resources

N, D = 300, 8


def write_run(folder: Path, steps: int) -> list[Path]:
    """Matrices that drift."""
    rng = np.random.default_rng(0)
    start, drift = rng.standard_normal((2, N, D), dtype=np.float32)
    paths = [folder / f"ckpt-{100 * i}.npy" for i in range(1, steps + 1)]
    for i, path in enumerate(paths):
        np.save(path, start + np.float32(0.05 * i) * drift)
    return paths


def time_command(paths: list[Path], out: Path) -> float:
    """Processor seconds of the whole command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "embgeo", "diff", "--track", *map(str, paths), "--quiet"]
    subprocess.run(
        [*command, "-o", str(out)], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare_two(one: Input, other: Input) -> None:
    matching = match_rows(one[0].analysis, other[0].analysis, None)
    compare_pair(one, other, matching, None, 0, Resources(), Progress(), "two matrices")


def time_arithmetic(paths: list[Path]) -> float:
    """Processor seconds of reading, measuring and comparing a step."""
    inputs = []
    for path in paths[:3]:
        matrix = load(path)
        inputs.append((Member(path.stem, str(path), analyze(matrix)), matrix))
    compare_two(*inputs[:2])
    seconds = []
    for path in paths[3:6]:
        start = time.process_time()
        matrix = load(path)
        inputs[2] = (Member(path.stem, str(path), analyze(matrix)), matrix)
        for first in (0, 1):
            compare_two(inputs[first], inputs[2])
        seconds.append(time.process_time() - start)
    return float(np.median(seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs=2, default=(6, 24))
    few, many = parser.parse_args().steps
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        paths = write_run(home, many)
        time_command(paths[:2], home / "first" / "out")  # the bytecode is there from now on
        small, large = (
            time_command(paths[:steps], home / str(steps) / "out") for steps in (few, many)
        )
        again = time_command(paths, home / str(many) / "again")
        arithmetic = time_arithmetic(paths)
    step = (large - small) / (many - few)
    print(f"{few} steps of {N} × {D}: {small:.2f} s; {many} steps: {large:.2f} s")
    print(f"{many} steps again, with the analyses that were kept: {again:.2f} s")
    print(f"a further step: {step:.3f} s, of which arithmetic and reading {arithmetic:.3f} s")
    print(f"overhead of a step: {step - arithmetic:.3f} s; once: {small - few * step:.2f} s")


if __name__ == "__main__":
    main()
