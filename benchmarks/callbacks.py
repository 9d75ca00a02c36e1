"""What a callback costs a training: seconds for each measurement, by size and by section.

    python benchmarks/callbacks.py [--calls K]

Each value is compared with the obvious computation before any time is printed; times are printed,
never judged. What is timed is `Monitor.measure`, all that a callback does besides handing over to
the loggers. Beside it stands one product WᵀW, which says how fast the machine was at the time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from embgeo.callbacks import Monitor
from embgeo.callbacks.monitor import SCALARS

Rows = npt.NDArray[np.float32]

#: What is measured: the default, then one section at a time.
GAUGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("default", SCALARS),
    ("cosine", ("cosine.mean",)),
    ("spectrum", ("spectrum.effective_rank",)),
    ("isotropy", ("isotropy.i1_unit",)),
)
SIZES = ((5_000, 64), (20_000, 300), (50_257, 768))


def cone(n: int, d: int) -> Rows:
    """Rows with a common direction, of norms as trained embeddings have them."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n, d), dtype=np.float32)
    return np.asarray((rows + rng.standard_normal(d, dtype=np.float32)) / np.sqrt(d))


def check(rows: Rows, values: dict[str, float]) -> None:
    """Stop unless the values are those of the definitions, in float64."""
    W = rows.astype(np.float64)
    n = len(W)
    unit = W / np.linalg.norm(W, axis=1, keepdims=True)
    eigenvalues, vectors = np.linalg.eigh(W.T @ W)
    singular = np.sqrt(np.maximum(eigenvalues, 0.0))
    p = singular / singular.sum()
    scores = (W / np.linalg.norm(W, axis=1).mean()) @ vectors
    log_z = [np.logaddexp.reduce(sign * scores, axis=0) for sign in (1.0, -1.0)]
    expected = {
        "embgeo/cosine.mean": (np.square(unit.sum(axis=0)).sum() - n) / (n * (n - 1)),
        "embgeo/spectrum.effective_rank": np.exp(-np.sum(p * np.log(p))),
        "embgeo/spectrum.top_share": eigenvalues[-1] / eigenvalues.sum(),
        "embgeo/isotropy.i1_unit": np.exp(np.min(log_z) - np.max(log_z)),
    }
    for name, value in values.items():
        if name in expected and not np.isclose(value, expected[name], rtol=1e-4):
            raise SystemExit(f"{name} is {value}, it should be {expected[name]}")


def median(calls: int, work: Callable[[int], object]) -> float:
    """Seconds of one call; the first one is not counted."""
    work(0)
    seconds = []
    for step in range(1, calls + 1):
        start = time.perf_counter()
        work(step)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=5)
    calls = parser.parse_args().calls
    print("| matrix | WᵀW in float64 | " + " | ".join(name for name, _ in GAUGES) + " |")
    print("|---|---|" + "---|" * len(GAUGES))
    for n, d in SIZES:
        rows = cone(n, d)
        check(rows, Monitor([*SCALARS, "isotropy.i1_unit"]).measure(rows, 0))
        double = rows.astype(np.float64)
        cells = [median(calls, lambda _, W=double: W.T @ W)]
        for _, names in GAUGES:
            monitor = Monitor(names, every=1)
            cells.append(median(calls, lambda step, W=rows, g=monitor: g.measure(W, step)))
        shown = " | ".join(f"{seconds:.3f} s" for seconds in cells)
        print(f"| {n:,} × {d} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
