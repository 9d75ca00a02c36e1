"""Every section of a large bfloat16 matrix on a GPU, with the cosines of all pairs.

    python benchmarks/gpu.py [--device cuda] [--rows N] [--columns D]

What the device answers is compared with numpy's answers on a small matrix first, number by number;
a wrong one ends with 1. Then 262,144 × 4,096 rows (a cone, σ_k ∝ k^(−0.35)) are analyzed from their
file: every section that a single matrix with frequencies has, with the cosine of every pair, and
once more with the neighbors of every row. Beside the seconds of each stage stands what share they
are of the rates at which the same device multiplies square matrices. The table is printed and
written to benchmarks/results/. Without a GPU one line says so.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)

from benchmarks.harness import machine, page  # noqa: E402
from benchmarks.harness.call import Wrong  # noqa: E402
from benchmarks.harness.matrices import Shape, warm_cache, write_matrix  # noqa: E402
from benchmarks.harness.ours import EVERY, counts, labels  # noqa: E402

FULL = (262_144, 4096)
#: More than 5 million pairs, of which a smaller matrix keeps every cosine instead of counting it.
SMALL = Shape(3_300, 48, "bfloat16")
#: What is measured, by which rows' neighbors are searched; saved one after the other.
RUNS: dict[str, Any] = {"all pairs": "sample", "all pairs, neighbors of all rows": "all"}
#: How far a number may be from numpy's: products in float32, searches, everything else.
IN_FLOAT32 = re.compile(r"isotropy\.i[12]|cosine\.(std|cone_aperture)")
#: Unit rows are float32, and a small matrix does not average their rounding out.
TOLERANCES = {
    "isotropy.eigengap": 1e-7,
    "cosine.positive_share": 1e-6,
}
ABSOLUTE = 1e-6
#: Stages of an analysis that search, for each row, the nearest by cosine and by distance.
SEARCHES = ("frequency", "tokens")


@dataclass(frozen=True)
class Stage:
    """A part of an analysis, and the products that it cannot do without.

    Attributes
    ----------
    float64, float32 : float
        Floating-point operations of its products, those of symmetric ones counted once.
    """

    what: str
    seconds: float
    float64: float = 0.0
    float32: float = 0.0


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto", help="as of embgeo analyze; %(default)s")
    parser.add_argument("--rows", type=int, default=FULL[0])
    parser.add_argument("--columns", type=int, default=FULL[1])
    scratch = Path(tempfile.gettempdir()) / "embgeo-benchmarks"
    parser.add_argument("--scratch", type=Path, default=scratch, help="folder for matrices, kept")
    parser.add_argument("--out", type=Path, help="where results go; of a GPU benchmarks/results")
    options = parser.parse_args(arguments)
    if min(options.rows, options.columns) < 16:
        parser.error("--rows, --columns: at least 16")
    return options


def main(arguments: list[str]) -> int:
    from embgeo.core.errors import EmbgeoError
    from embgeo.stats.backend.torch import open_device
    from embgeo.stats.resources import DEFAULT_MEMORY

    options = parse_arguments(arguments)
    try:
        device = open_device(options.device, DEFAULT_MEMORY)
    except EmbgeoError as error:
        print(f"nothing measured: {error}")
        return 0
    if device is None:
        print("nothing measured: PyTorch finds no GPU here")
        return 0
    try:
        worst = compare_devices(options.scratch, device.name)
    except Wrong as wrong:
        print(f"wrong answer: {wrong}")
        return 1
    shape = Shape(options.rows, options.columns, "bfloat16")
    folder = options.out
    if folder is None and device.at.type != "cpu":
        folder = ROOT / "benchmarks" / "results"
    results: dict[str, Any] = {
        "device": device.description,
        "versions": machine.versions() | {"torch": device.torch.__version__},
        "machine": machine.machine(),
        "date": str(date.today()),
        "shape": shape.text,
        "worst": worst,
        "rates": rates(device),
        "runs": {},
    }
    text, saved = "", None
    for name, neighbors_of in RUNS.items():
        path = write_matrix(shape, options.scratch)
        results["runs"][name] = measure_file(path, device, neighbors_of)
        text = written_out(results)
        if folder is not None:
            saved = save_results(results, text, folder)
    print(text)
    if saved is not None:
        print(saved)
    return 0


def save_results(results: Mapping[str, Any], text: str, folder: Path) -> Path:
    """The page and the numbers, in files named after the device, the matrix and the day."""
    name = f"gpu {results['device']} {results['shape']} {results['date']}"
    page_file = folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}.md"
    folder.mkdir(parents=True, exist_ok=True)
    page_file.write_text(text, encoding="utf-8")
    page_file.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    return page_file


# Answers -----------------------------------------------------------------------------------------


def compare_devices(scratch: Path, device: str) -> dict[str, float]:
    """How far a device's answers are from numpy's at most, by kind; Wrong if too far."""
    path = write_matrix(SMALL, scratch)
    found, expected = (analyze_file(path, on, "all")[0] for on in (device, "cpu"))
    worst: dict[str, float] = {}
    for name, kind, off, most in differences(found, expected):
        if not off <= most:
            raise Wrong(f"{name} on {device} is off by {off:.2g}, at most {most:g} is right")
        worst[kind] = max(worst.get(kind, 0.0), off)
    return worst


def differences(found: Any, expected: Any) -> Iterator[tuple[str, str, float, float]]:
    """Of each single number: its name, its kind, how far off it is, and how far it may be."""
    for wanted in expected.scalars:
        value = found[wanted.name].value
        if value is None or wanted.value is None:
            yield wanted.name, "undefined", float(value is not wanted.value), 0.0
            continue
        off = abs(value - wanted.value)
        if IN_FLOAT32.match(wanted.name):
            yield wanted.name, "products in float32", off, ABSOLUTE * max(1.0, abs(wanted.value))
        else:
            most = TOLERANCES.get(wanted.name, 1e-9)
            kind = (
                "searches, gaps and unit rows" if wanted.name in TOLERANCES else "everything else"
            )
            yield wanted.name, kind, off / max(abs(wanted.value), 1e-4), most
    for name in ("tokens.hubs", "frequency.neighbors"):
        yield name, "neighbors", float(found[name] != expected[name]), 0.0


def analyze_file(path: Path, device: str, neighbors_of: Any) -> tuple[Any, float]:
    """Every section with all pairs, and the seconds from file to result."""
    import embgeo
    from embgeo.core.progress import Progress
    from embgeo.stats.resources import Resources

    def start(what: str, _rows: int) -> None:
        print(f"  {what}", file=sys.stderr, flush=True)  # where a run that is cut off was

    began = time.perf_counter()
    matrix = embgeo.load(path, hash_file=False)
    found = embgeo.analyze(
        matrix,
        tokens=labels(matrix.n),
        counts=counts(matrix.n),
        sections=EVERY,
        options=embgeo.Options(pairs=None, neighbors_of=neighbors_of),
        reference=False,
        resources=Resources(device=device),
        progress=Progress(start=start),
    )
    return found, time.perf_counter() - began


# Times -------------------------------------------------------------------------------------------


def measure_file(path: Path, device: Any, neighbors_of: Any) -> dict[str, Any]:
    """One analysis of the file in the page cache, by stage."""
    warm_cache(path)
    if device.at.type == "cuda":
        device.torch.cuda.reset_peak_memory_stats(device.at)
    found, total = analyze_file(path, device.name, neighbors_of)
    n, d = found.provenance["kept"], found.provenance["d"]
    products = {
        "first pass": (n * d**2, n * d**2),
        "second pass": (0.0, 4.0 * n * d**2),
        "cosine": (0.0, float(n) * (n - 1) * d),  # of all pairs
    }
    if neighbors_of == "all":
        products |= dict.fromkeys(SEARCHES, (0.0, 2.0 * n * n * d))
    stages = [Stage(what, s, *products.get(what, ())) for what, s in found.timing.items()]
    stages.append(Stage("opening the file, and the rest", total - sum(found.timing.values())))
    whole = Stage(
        "all of it, from opening the file",
        total,
        sum(stage.float64 for stage in stages),
        sum(stage.float32 for stage in stages),
    )
    peak = None
    if device.at.type == "cuda":
        peak = device.torch.cuda.max_memory_allocated(device.at) / 1e9
    return {
        "stages": [asdict(stage) for stage in (*stages, whole)],
        "peak_gb": peak,
    }


def rates(device: Any, runs: int = 7) -> dict[str, float]:
    """Operations a second in products of square matrices: float64, float32 and bfloat16."""
    torch = device.torch
    size = 8192 if device.at.type == "cuda" else 4096 if device.at.type == "mps" else 512
    found = {}
    for name in ("float64", "float32", "bfloat16"):
        if name == "float64" and not device.has_float64:
            continue
        a, b = (
            torch.randn(size, size, device=device.at, dtype=getattr(torch, name)) for _ in range(2)
        )
        seconds = []
        with device.exact_products():
            for _ in range(runs):
                wait(device)
                began = time.perf_counter()
                a @ b
                wait(device)
                seconds.append(time.perf_counter() - began)
        found[name] = 2.0 * size**3 / median(seconds)
    return found


def wait(device: Any) -> None:
    """Until the device has done all that it was given."""
    if device.at.type in ("cuda", "mps"):
        getattr(device.torch, device.at.type).synchronize()


# The page ----------------------------------------------------------------------------------------


def written_out(results: Mapping[str, Any]) -> str:
    known = results["rates"]
    facts = {
        "Matrix": f"{results['shape']}, from a file in the page cache",
        "Host": f"{results['machine']['cpu']}, {results['machine']['cores']} cores",
        "Measured rates": ", ".join(f"{k} {v / 1e12:.3g} TFLOP/s" for k, v in known.items()),
        "Answers on a small matrix": "off from numpy's by at most "
        + ", ".join(f"{off:.0e} ({kind})" for kind, off in results["worst"].items()),
        **results["versions"],
        "Date": results["date"],
    }
    parts = [f"# {results['device']}: every section", page.bullets(facts)]
    for name, run in results["runs"].items():
        header = ("stage", "seconds", *(f"share of {rate}" for rate in known))
        body = [format_row(stage, known) for stage in run["stages"]]
        parts += [f"## With {name}", page.table(header, body)]
        if run["peak_gb"] is not None:
            parts.append(f"Peak memory on the card: {run['peak_gb']:.1f} GB.")
    parts.append(SHARES)
    return "\n\n".join(parts) + "\n"


SHARES = (
    "Shares are the operations of the products in that precision, symmetric ones counted once, by "
    "second, over the measured rate. embgeo multiplies entries of bfloat16 in float32, so the "
    "share of the bfloat16 rate says what is left to gain by tensor cores."
)


def format_row(stage: Mapping[str, Any], known: Mapping[str, float]) -> tuple[str, ...]:
    shares = []
    for rate, most in known.items():
        work = stage["float64" if rate == "float64" else "float32"]
        share = work / stage["seconds"] / most if stage["seconds"] else 0.0
        shares.append(f"{share:.1%}" if work else "")
    return stage["what"], page.number(stage["seconds"]), *shares


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
