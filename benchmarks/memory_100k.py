"""Peak memory of ``embgeo analyze`` on a matrix of 100,000 × 256, next to the matrix itself.

    python benchmarks/memory_100k.py [--rows N] [--columns D] [--folder FOLDER]

Every step runs in a process of its own, because a process inherits the peak of the one that
started it. Answers are checked before anything is printed; times are printed, never judged.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MEBI = 2**20
#: All that a single matrix has; input against output needs two.
SECTIONS = ("spectrum", "projection", "cosine", "isotropy", "frequency", "tokens")
ROOT = Path(__file__).resolve().parents[1]


def write_matrix(path: Path, rows: int, columns: int) -> None:
    """Rows in a cone with a power-law spectrum, σ_k ∝ k^(−0.6), written block by block."""
    import numpy as np

    rng = np.random.default_rng(0)
    sigma = np.arange(1, columns + 1) ** -0.6
    rotation, _ = np.linalg.qr(rng.standard_normal((columns, columns)))
    basis = sigma[:, None] * rotation
    common = 0.4 * np.linalg.norm(sigma) * rotation.mean(axis=0)
    matrix = np.lib.format.open_memmap(path, "w+", dtype=np.float32, shape=(rows, columns))
    for start in range(0, rows, 4096):
        stop = min(start + 4096, rows)
        # The rarer the token, the farther along the common direction.
        depth = 1.0 + np.arange(start, stop) / rows
        matrix[start:stop] = rng.standard_normal((stop - start, columns)) @ basis
        matrix[start:stop] += depth[:, None] * common
    matrix.flush()


def naive(path: Path) -> dict[str, Any]:
    """Mean cosine and spectrum by the obvious formulas, the whole matrix in float64."""
    import numpy as np

    w = np.load(path).astype(np.float64)
    total = (w / np.linalg.norm(w, axis=1, keepdims=True)).sum(axis=0)
    m = len(w)
    sigma = np.linalg.svd(w, compute_uv=False)
    return {
        "mean_cosine": float((total @ total - m) / (m * (m - 1.0))),
        "top_share": float(sigma[0] ** 2 / np.sum(sigma**2)),
        "singular_values": (sigma[:10] / sigma[0]).tolist(),
    }


def analyze(path: Path, out: Path, sections: str) -> dict[str, Any]:
    """The whole command, report included."""
    from embgeo.cli.app import app

    began = time.perf_counter()
    arguments = [
        "analyze",
        str(path),
        "--rank-order",
        "--quiet",
        "-o",
        str(out),
        "--sections",
        sections,
    ]
    app(arguments, standalone_mode=False)
    return {"seconds": time.perf_counter() - began}


def imports() -> dict[str, Any]:
    """What a run imports, and nothing else."""
    import scipy.linalg  # noqa: F401
    import sklearn.linear_model
    import sklearn.model_selection  # noqa: F401

    return {}


def peak_memory() -> int:
    """Highest resident memory of this process so far, in bytes."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def step(name: str, *arguments: object) -> dict[str, Any]:
    """Run one step in a fresh process; what it found, and its peak memory."""
    command = [sys.executable, __file__, "--step", name, *map(str, arguments)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def run_step(name: str, arguments: list[str]) -> None:
    sys.path.insert(0, str(ROOT))
    if name == "write":
        write_matrix(Path(arguments[0]), int(arguments[1]), int(arguments[2]))
        found: dict[str, Any] = {}
    elif name == "naive":
        found = naive(Path(arguments[0]))
    elif name == "imports":
        found = imports()
    else:
        found = analyze(Path(arguments[0]), Path(arguments[1]), arguments[2])
    print(json.dumps({**found, "peak": peak_memory()}))


def check(analysis: Path, expected: dict[str, Any]) -> None:
    """Stop unless the analysis says what the naive computation says, to nine digits."""
    written = json.loads(analysis.read_text(encoding="utf-8"))
    scalars = {name: s["value"] for name, s in written["scalars"].items()}
    curves = {s["name"]: s["y"] for s in written["series"]}
    pairs = [
        (scalars["cosine.mean"], expected["mean_cosine"]),
        (scalars["spectrum.top_share"], expected["top_share"]),
        *zip(
            curves["spectrum.singular_values"]["uncentered"],
            expected["singular_values"],
            strict=False,
        ),
    ]
    for seen, wanted in pairs:
        if not abs(seen - wanted) <= 1e-9 * abs(wanted):
            raise SystemExit(f"wrong answer: {seen!r} instead of {wanted!r}")
    missing = set(SECTIONS) - {name.partition(".")[0] for name in scalars}
    if missing:
        raise SystemExit(f"sections without values: {', '.join(sorted(missing))}")
    print(f"answers agree with the naive computation ({len(pairs)} values to nine digits)")


def measure(folder: Path, rows: int, columns: int) -> None:
    matrix, small = folder / "matrix.npy", folder / "small.npy"
    step("write", matrix, rows, columns)
    step("write", small, 500, columns)
    all_sections = ",".join(SECTIONS)
    loaded = step("imports")
    tiny = step("analyze", small, folder / "small.embgeo", all_sections)
    whole = step("analyze", matrix, folder / "matrix.embgeo", all_sections)
    without = ",".join(s for s in SECTIONS if s != "frequency")
    rest = step("analyze", matrix, folder / "rest.embgeo", without)
    check(folder / "matrix.embgeo" / "analysis.json", step("naive", matrix))
    size = matrix.stat().st_size
    print(f"{'the matrix in its file':<40}{size / MEBI:8.1f} MiB")
    print("peak resident memory, pages of the mapped file included:")
    for what, peak in (
        ("interpreter and imports", loaded["peak"]),
        (f"500 × {columns}, all sections", tiny["peak"]),
        (f"{rows:,} × {columns}, all but frequency", rest["peak"]),
        (f"{rows:,} × {columns}, all sections", whole["peak"]),
    ):
        beyond = max(0, peak - tiny["peak"]) / size
        print(f"  {what:<38}{peak / MEBI:8.1f} MiB   beyond 500 rows: {beyond:.2f} matrices")
    print(f"time of the last: {whole['seconds']:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--folder", type=Path, help="where to write; a temporary one by default")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        run_step(options.step[0], options.step[1:])
    elif options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
        measure(options.folder, options.rows, options.columns)
    else:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), options.rows, options.columns)


if __name__ == "__main__":
    main()
