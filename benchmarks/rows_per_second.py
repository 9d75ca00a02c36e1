"""Rows that one core takes in a second in either round over a part, and what it leaves behind.

    python benchmarks/rows_per_second.py [--rows N] [--columns D]

The matrix is one part of a larger one, in float32. Answers are checked before anything is printed:
what comes of the two rounds must be what the plain formulas give. Times are processor time, which
other processes disturb less than the clock, the best of three; they are printed, never judged.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

import embgeo
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.options import Options
from embgeo.distributed import (
    add_rows,
    describe_part,
    extend_plan,
    finish,
    first_round,
    make_plan,
    make_task,
    second_round,
)
from embgeo.distributed.part import sha256_of_rows
from embgeo.distributed.states import save_first, save_second
from embgeo.metrics import SECTIONS
from embgeo.numerics.blas_threads import limited
from embgeo.stats.resources import Resources

T = TypeVar("T")
CHOICES = {
    "spectrum, isotropy": ("spectrum", "isotropy"),
    "sections 1–4": ("spectrum", "projection", "cosine", "isotropy"),
    "all sections": SECTIONS,
}
ONE_CORE = Resources(threads=1)
#: Rows of the worked example of docs/scale.md.
BILLION = 10**9


def rows_of_a_cone(rows: int, columns: int) -> npt.NDArray[np.float32]:
    rng = np.random.default_rng(0)
    spread = (np.arange(1, columns + 1) ** -0.35).astype(np.float32)
    spread /= np.linalg.norm(spread)
    cone = 0.3 * rng.standard_normal(columns, dtype=np.float32) / np.sqrt(columns)
    matrix = rng.standard_normal((rows, columns), dtype=np.float32)
    matrix *= spread
    matrix += cone
    return matrix


def compute_truth(matrix: npt.NDArray[np.float32]) -> dict[str, float]:
    """The plain formulas in float64."""
    w = matrix.astype(np.float64)
    energies, vectors = np.linalg.eigh(w.T @ w)
    exponents = w @ vectors
    z = np.concatenate([np.exp(exponents).sum(axis=0), np.exp(-exponents).sum(axis=0)])
    return {
        "spectrum.stable_rank": float(energies.sum() / energies[-1]),
        "isotropy.i1": float(z.min() / z.max()),
    }


def best(action: Callable[[], T], times: int = 3) -> tuple[float, T]:
    """Processor seconds of the quickest of several calls, and what the last one gave."""
    seconds = []
    for _ in range(times):
        began = time.process_time()
        result = action()
        seconds.append(time.process_time() - began)
    return min(seconds), result


def measure(
    matrix: Matrix, sections: tuple[str, ...], right: dict[str, float], folder: Path
) -> dict[str, float]:
    """Rows a second in either round, and bytes that a part's states take."""
    part = describe_part(matrix, digest=False)
    options = Options(sphere=False)
    wanted: dict[str, Any] = {"sections": sections, "options": options, "reference": False}
    first_round(matrix, describe_part(matrix, 0, 100, digest=False), **wanted)  # late imports
    first_seconds, first = best(lambda: first_round(matrix, part, resources=ONE_CORE, **wanted))
    save_first(first, folder / "s.npz")
    plan = extend_plan(make_plan(first), lambda rows: np.asarray(matrix.data[rows]))
    task = make_task(plan)
    second_seconds, second = best(lambda: second_round(task, matrix, part, resources=ONE_CORE))
    save_second(second, folder / "plan.npz", folder / "t.npz")
    found = finish(add_rows(plan, second.rows), second.statistics)
    for name, value in right.items():
        scalar = found.scalar(name)
        if scalar is None or scalar.value is None or abs(scalar.value / value - 1) > 1e-5:
            gave = None if scalar is None else scalar.value
            raise SystemExit(f"{name} is {value:.9g}, the rounds gave {gave}")
    return {
        "first": matrix.n / first_seconds,
        "second": matrix.n / second_seconds,
        "both": matrix.n / (first_seconds + second_seconds),
        "first_bytes": float((folder / "s.npz").stat().st_size),
        "second_bytes": float((folder / "t.npz").stat().st_size),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--columns", type=int, default=128)
    options = parser.parse_args()
    data = rows_of_a_cone(options.rows, options.columns)
    right = compute_truth(data)
    ranks = Frequency("rank", np.arange(options.rows, 0, -1.0), "row order")
    matrix = Matrix(data, frequency=ranks)
    print(f"embgeo {embgeo.__version__}, {options.rows:,} × {options.columns} float32, one core")
    print("| sections | first round, rows/s | second | both | state, bytes a row | second |")
    print("|---|---|---|---|---|---|")
    with limited(1), tempfile.TemporaryDirectory() as folder:
        for name, sections in CHOICES.items():
            found = measure(matrix, sections, right, Path(folder))
            print(
                f"| {name} | {found['first']:,.0f} | {found['second']:,.0f} | "
                f"{found['both']:,.0f} | {found['first_bytes'] / matrix.n:.1f} | "
                f"{found['second_bytes'] / matrix.n:.1f} |",
                flush=True,
            )
            hours = BILLION / found["both"] / 3600
            print(f"  {BILLION:,} such rows: {hours:.1f} core hours", flush=True)
    seconds, _ = best(lambda: sha256_of_rows(data))
    print(f"SHA-256 of the rows: {options.rows / seconds:,.0f} rows/s")


if __name__ == "__main__":
    main()
