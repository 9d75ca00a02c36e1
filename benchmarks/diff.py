"""Time to compare two 50,257 × 768 matrices, beside modeldelta's comparison of the same two.

    pip install --no-deps modeldelta==0.4.4   # it wants torch, click and huggingface-hub
    python benchmarks/diff.py [--rows N] [--columns D] [--runs R]

Both read the same two safetensors files, with the same number of threads, in turn. Every number
that both give is checked against plain float64 first; times are printed, never judged. Without
modeldelta its part is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import embgeo
from embgeo.comparison.compare import read_both
from embgeo.comparison.overlap import draw_queries, measure_overlap
from embgeo.comparison.shared import Shared
from embgeo.comparison.similarity import similarities
from embgeo.core.values import Scalar

TENSOR = "embed_tokens.weight"
ROOT = Path(__file__).parents[1]
Matrix = npt.NDArray[np.float32]
THEIRS = importlib.util.find_spec("modeldelta") is not None


def make_pair(rows: int, columns: int) -> tuple[Matrix, Matrix]:
    """A cone with a falling spectrum, and what further training might make of it."""
    rng = np.random.default_rng(0)
    fall = np.exp(-0.005 * np.arange(columns)).astype(np.float32)
    one = rng.standard_normal((rows, columns), dtype=np.float32) * fall + np.float32(0.3)
    step = rng.standard_normal((rows, columns), dtype=np.float32) * fall
    return one, one + np.float32(0.4) * step


def save_checkpoint(matrix: Matrix, folder: Path) -> Path:
    from safetensors.numpy import save_file

    folder.mkdir()
    save_file({TENSOR: matrix}, folder / "model.safetensors")
    return folder / "model.safetensors"


def exact(one: Matrix, other: Matrix) -> dict[str, float]:
    """What both packages give, from the whole matrices in float64."""
    x, y = one.astype(np.float64), other.astype(np.float64)
    difference = y - x
    sigma = np.sqrt(np.maximum(np.linalg.eigvalsh(difference.T @ difference), 0.0))
    share = sigma / sigma.sum()
    return {
        "relative change": float(np.linalg.norm(difference) / np.linalg.norm(x)),
        "cosine of the matrices": float(np.vdot(x, y) / np.linalg.norm(x) / np.linalg.norm(y)),
        "effective rank of the change": float(np.exp(-np.sum(share * np.log(share)))),
    }


def our_numbers(paths: list[Path], neighbors: bool) -> dict[str, float | None]:
    """Everything that takes both matrices, from the files."""
    first, second = (embgeo.load(path, hash_file=False) for path in paths)
    every = np.arange(first.n, dtype=np.int64)
    shared = Shared(first, second, every, every)
    queries = draw_queries(shared.n, None if neighbors else 0, 0)
    joint, found = read_both(shared, queries, lambda _: None)
    values: list[Any] = [*similarities(joint)]
    if found is not None:
        values.append(measure_overlap(found, 0))
    return {v.name.removeprefix("compare."): v.value for v in values if isinstance(v, Scalar)}


def their_numbers(folders: list[Path]) -> dict[str, Any]:
    from modeldelta.core.weight_diff import compare_models
    from modeldelta.utils.model_loader import get_tensor_map

    results, _ = compare_models(*(get_tensor_map(str(folder)) for folder in folders))
    found: dict[str, Any] = results[0]
    return found


def check(name: str, found: dict[str, float | None], truth: dict[str, float], most: float) -> None:
    """Print how far off each number is; stop if it is further than `most`."""
    for key, value in truth.items():
        shown = found[key]
        if shown is None:
            raise SystemExit(f"{name}: {key} is undefined")
        error = abs(shown - value) / abs(value)
        print(f"  {name:<11}{key:<30}{shown:.9f}   off by {error:.1e}")
        if error > most:
            raise SystemExit(f"{name}: {key} is {shown}, it should be {value}")


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")


def commands(folders: list[Path], out: Path) -> dict[str, Callable[[], None]]:
    """Both commands as people call them, each with its HTML page."""
    files = [str(folder / "model.safetensors") for folder in folders]
    embgeo_line = (sys.executable, "-m", "embgeo", "diff", *files, "-q", "-o", str(out / "ours"))
    found = {"embgeo diff, with both analyses and report": lambda: run(*embgeo_line)}
    if THEIRS:
        names = [str(folder) for folder in folders]
        page = str(out / "theirs.html")
        theirs = (sys.executable, "-m", "modeldelta", *names, "-o", page)
        found["modeldelta, with report"] = lambda: run(*theirs)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=50_257)
    parser.add_argument("--columns", type=int, default=768)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print(f"{options.rows:,} × {options.columns} float32; off from float64, relatively:")
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        matrices = make_pair(options.rows, options.columns)
        truth = exact(*matrices)
        folders = [home / "first", home / "second"]
        paths = [save_checkpoint(W, folder) for W, folder in zip(matrices, folders, strict=True)]
        del matrices
        ours = our_numbers(paths, neighbors=False)
        names = ("relative_change", "matrix_cosine", "change_effective_rank")
        check("embgeo", dict(zip(truth, map(ours.get, names), strict=True)), truth, 1e-9)
        if THEIRS:
            theirs = their_numbers(folders)
            keys = ("frob_norm_relative", "cosine_sim", "effective_rank")
            # Sums of float32 in float32: right to two or three digits.
            check("modeldelta", dict(zip(truth, map(theirs.get, keys), strict=True)), truth, 0.01)
        work: dict[str, Callable[[], object]] = {}
        if THEIRS:
            work["modeldelta: change, cosine, its spectrum"] = lambda: their_numbers(folders)
        work["embgeo: these, distance, angles, CKA, Procrustes"] = lambda: our_numbers(paths, False)
        work["embgeo: all of these and neighbors"] = lambda: our_numbers(paths, True)
        print_report(f"best of {options.runs}:", work, options.runs)
        print_report("whole commands, one run:", dict(reversed(commands(folders, home).items())), 1)


def print_report(title: str, work: dict[str, Callable[[], object]], runs: int) -> None:
    """Best of this many runs, taken in turn, and the ratio to the first."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(runs):
        for name, one in work.items():
            taken[name].append(seconds(one))
    first = min(next(iter(taken.values())))
    print(title)
    for name, times in taken.items():
        print(f"  {name:<52}{min(times):7.2f} s   × {min(times) / first:.2f}")


if __name__ == "__main__":
    main()
