"""A part of a Parquet file next to the same part of an `.npy` file: processor time and memory.

    python benchmarks/parquet_part.py [--rows N] [--columns D] [--groups G] [--rounds K]

Both files hold the same float32 rows, the Parquet file in G row groups without compression. Each
round measures the first pass over part 3 of G of both, in processes of their own; one that measures
two rows is the floor. Before any time is reported, the sums of both states have to be equal. Memory
is the largest resident set above the floor's, of the process and of the one that decodes; that of a
mapped `.npy` file counts the pages of the part.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
CHILD = """
import resource, sys
from typer.testing import CliRunner
from embgeo.cli.app import app
done = CliRunner().invoke(app, sys.argv[1:])
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
seconds = sum(u.ru_utime + u.ru_stime for u in used)
print(done.exit_code, seconds, 1024 * sum(u.ru_maxrss for u in used))
if done.exit_code:
    print(done.output)
"""


def write(folder: Path, n: int, d: int, groups: int) -> None:
    """The same rows as W.npy and W.parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    W = np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)
    np.save(folder / "W.npy", W)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(W.ravel()), d)
    size = -(-n // groups)
    parquet.write_table(
        pa.table({"vector": vectors}),
        folder / "W.parquet",
        row_group_size=size,
        compression="none",
        use_dictionary=False,
    )


def measure(folder: Path, name: str, part: str) -> tuple[float, float]:
    """Seconds of the processor and the largest resident set, in bytes, of a first round."""
    arguments = ["analyze", name, *part.split(), "--save-state", f"{name}.state.npz", "-q"]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    code, seconds, memory = done.stdout.splitlines()[0].split()
    if code != "0":
        raise SystemExit(done.stdout)
    return float(seconds), float(memory)


def check(folder: Path) -> None:
    """Stop unless both states saw the same rows and have the same sums."""
    with np.load(folder / "W.npy.state.npz") as one, np.load(folder / "W.parquet.state.npz") as two:
        if sorted(one) != sorted(two):
            raise SystemExit("the states of both files hold other arrays")
        for name in one:
            if one[name].dtype.kind == "f" and not np.array_equal(one[name], two[name]):
                raise SystemExit(f"the states of both files differ in {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--groups", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    part = f"--part {min(3, options.groups)}/{options.groups}"
    cases = {"floor": ("W.npy", "--rows 0:2"), "npy": ("W.npy", part)}
    cases["parquet"] = ("W.parquet", part)
    times: dict[str, list[float]] = {name: [] for name in cases}
    memory: dict[str, float] = dict.fromkeys(cases, 0.0)
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        # In a process of its own: a child inherits the largest resident set of its parent.
        sizes = (folder, options.rows, options.columns, options.groups)
        writer = multiprocessing.get_context("spawn").Process(target=write, args=sizes)
        writer.start()
        writer.join()
        for _ in range(options.rounds):
            for name, (file, rows) in cases.items():
                seconds, most = measure(folder, file, rows)
                times[name].append(seconds)
                memory[name] = max(memory[name], most)
            check(folder)
    show(times, memory)


def show(times: dict[str, list[float]], memory: dict[str, float]) -> None:
    print("| | processor time over the .npy's | above the floor | memory above the floor |")
    print("|---|---|---|---|")
    for name in ("npy", "parquet"):
        ratio = statistics.median(a / b for a, b in zip(times[name], times["npy"], strict=True))
        above = statistics.median(a - b for a, b in zip(times[name], times["floor"], strict=True))
        more = (memory[name] - memory["floor"]) / 2**20
        print(f"| {name} | {ratio:.2f} | {above:.2f} s | {more:,.0f} MiB |")


if __name__ == "__main__":
    main()
