"""Runs of a study side by side, next to one after the other: wall and processor time, and bytes.

    python benchmarks/jobs.py [--jobs 2] [--rounds 2] [--steps 450] [--data FILE]

Three methods and two seeds. Whole commands are timed, in turns, with the reading of the text in
every process, analyses and the report. Every file of a run but its times has to be the same.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Files of a run that hold no time.
PLAIN = ("model.safetensors", "vocabulary.tsv", "run.toml", "outcomes.json", "arrays.npz")


def train(options: argparse.Namespace, jobs: int, home: Path) -> tuple[float, float]:
    """Train a study in a process of its own; wall and processor seconds of all its processes."""
    command = [sys.executable, "-m", "embgeo", "train", "--preset", "tiny-cpu"]
    command += ["--data", str(options.data), "--compare", "mle,cosreg,frage", "--seeds", "2"]
    command += ["--set", f"training.steps={options.steps}", "--jobs", str(jobs), "-o", str(home)]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def differing(alone: Path, beside: Path) -> list[str]:
    """The files and numbers of runs in which two studies differ."""
    found = []
    for path in sorted(alone.glob("*/seed-*/*")):
        name, other = path.relative_to(alone), beside / path.relative_to(alone)
        same = True
        if path.name in PLAIN:
            same = path.read_bytes() == other.read_bytes()
        elif path.name == "result.json":
            numbers = [json.loads(each.read_text("utf-8")) for each in (path, other)]
            same = all(numbers[0][key] == numbers[1][key] for key in ("valid", "test", "steps"))
        if not same:
            found.append(str(name))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--data", type=Path, default=ROOT / "fixtures" / "pydocs.txt.gz")
    parser.add_argument("--steps", type=int, default=450)
    options = parser.parse_args()
    print("| jobs | wall | processor |\n|---|---|---|")
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            homes = {jobs: Path(folder) / str(jobs) for jobs in (1, options.jobs)}
            for jobs, home in homes.items():
                wall, processor = train(options, jobs, home)
                print(f"| {jobs} | {wall:.1f} s | {processor:.1f} s |", flush=True)
            if wrong := differing(*homes.values()):
                raise SystemExit(f"not the same: {', '.join(wrong)}")
    print("\nThe files of all runs are the same.")


if __name__ == "__main__":
    main()
