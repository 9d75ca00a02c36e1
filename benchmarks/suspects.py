"""Planted faults in large matrices: whether every group is found with its exact rows, and the cost.

python benchmarks/suspects.py --rows 50257 --columns 768
"""

import argparse
import sys
import time
import tomllib
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import embgeo
from benchmarks.atlas import LIST, Entry, find_file, read
from embgeo.core.errors import EmbgeoError
from embgeo.report.text.suspects import list_lines, show_token

Array = npt.NDArray[np.float32]
#: Living rows scatter with a spectrum that falls like 1/k.
MEANS = (0.0, 1.0, 3.0)


def draw_rows(n: int, d: int, mean: float, seed: int) -> Array:
    """Draw rows with lognormal norms, and a common mean of this multiple of their spread."""
    g = np.random.default_rng(seed)
    scale = np.arange(1, d + 1, dtype=np.float32) ** -0.5
    rows = g.standard_normal((n, d), dtype=np.float32) * scale
    rows += mean * np.linalg.norm(scale) / np.sqrt(d)
    return rows * np.exp(0.1 * g.standard_normal((n, 1), dtype=np.float32))


def plant(rows: Array, seed: int) -> dict[str, list[int]]:
    """Change rows into suspects, and return those that the list has to name, by reason."""
    n, d = rows.shape
    g = np.random.default_rng(seed + 1)
    chosen = iter(g.permutation(np.arange(2, n - 2)))
    expected: dict[str, list[int]] = {}

    def take(reason: str, count: int) -> npt.NDArray[np.int64]:
        places = np.sort([int(next(chosen)) for _ in range(count)])
        expected[reason] = places.tolist()
        return places

    def noise(count: int, share: float) -> Array:
        size = np.linalg.norm(rows[1]) * share / np.sqrt(d)
        return size * g.standard_normal((count, d), dtype=np.float32)

    rows[take("long", 5)] *= 12.0
    rows[take("near_identical", 90)] = rows[0] + noise(90, 0.015)
    expected["near_identical"] = [0, *expected["near_identical"]]
    places = take("duplicate", 29)
    rows[places[9:]] = rows[places[np.arange(20) % 9]]
    groups = [[int(places[k]), *places[9:][np.arange(20) % 9 == k].tolist()] for k in range(9)]
    expected["duplicate"] = sorted(row for group in groups for row in sorted(group)[1:])
    untrained = take("untrained", 400)
    typical = float(np.median(np.linalg.norm(rows, axis=1)))
    rows[untrained] = 0.2 * typical / np.sqrt(d) * g.standard_normal((400, d), dtype=np.float32)
    # transformers draws the rows of new tokens from the mean and 1e-9 of the covariance.
    at_mean = take("mean", 300)
    living = np.delete(rows, at_mean, axis=0).astype(np.float64)
    spread = np.linalg.cholesky(np.cov(living.T) * 1e-9 + 1e-20 * np.eye(d))
    rows[at_mean] = living.mean(axis=0) + g.standard_normal((300, d)) @ spread.T
    rows[take("constant", 3)] = np.array([[0.1], [-0.2], [0.3]], np.float32)
    rows[take("damaged", 10)] *= 1e-12
    rows[take("zero", 5)] = 0.0
    rows[take("nonfinite", 2), 3] = np.nan
    return expected


def check(found: embgeo.Analysis, expected: dict[str, list[int]]) -> list[str]:
    """Compare the list with what was planted; other rows may not be serious."""
    wrong = []
    listed = {own.reason: own for own in found.suspects}
    for reason in expected.keys() | listed.keys():
        rows = set(expected.get(reason, ()))
        own: set[int] = set(listed[reason].rows.tolist()) if reason in listed else set()
        serious = reason in listed and bool(listed[reason].serious.any())
        if rows - own or (own - rows and serious):
            wrong.append(f"{reason}: {len(rows - own)} missing, {len(own - rows)} others")
    return wrong


def measure(rows: Array, **wanted: Any) -> tuple[embgeo.Analysis, float]:
    start = time.process_time()
    found = embgeo.analyze(embgeo.Matrix(rows), **wanted)
    return found, time.process_time() - start


def list_atlas(cache: Path, real: Path) -> None:
    """Print a line for each matrix of the atlas that is there and can be read."""
    print("| matrix | N × d | suspects; serious ones in bold |\n|---|---|---|")
    for given in tomllib.loads(LIST.read_text(encoding="utf-8"))["matrix"]:
        entry = Entry(**given)
        path = find_file(entry, cache, real)
        try:
            matrix = None if path is None else read(entry, path, real)
        except EmbgeoError:
            continue
        if matrix is None:
            continue
        found = embgeo.analyze(matrix, sections=["suspects"], reference=False)
        said = []
        for line in list_lines(found.suspects):
            text = f"**{line.text}**" if line.serious else line.text
            named = " ".join(f"`{show_token(token, row)}`" for _, row, token in line.rows[:3])
            said.append(f"{text}: {named}")
        size = f"{matrix.n:,} × {matrix.d:,}"
        print(f"| {entry.name} | {size} | {'; '.join(said) or 'none'} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_257)
    parser.add_argument("--columns", type=int, default=768)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--default", action="store_true", help="time the default call as well")
    parser.add_argument("--atlas", type=Path, help="packages, as atlas.py downloads them")
    parser.add_argument("--real", type=Path, default=Path(), help="folder of public matrices")
    given = parser.parse_args()
    if given.atlas:
        list_atlas(given.atlas, given.real)
        return 0
    failed = False
    print(f"| {given.rows:,} × {given.columns:,} | as planted | suspects | default call | memory |")
    print("|---|---|---|---|---|")
    for mean in MEANS:
        rows = draw_rows(given.rows, given.columns, mean, given.seed)
        expected = plant(rows, given.seed)
        found, seconds = measure(rows, sections=["suspects"], reference=False)
        tracemalloc.start()
        measure(rows, sections=["suspects"], reference=False)
        memory = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        wrong = check(found, expected)
        failed |= bool(wrong)
        every = f"{measure(rows)[1]:.1f} s" if given.default else "–"
        cosine = found.scalar("suspects.mean_cosine_others").value
        said = "; ".join(wrong) or "yes"
        print(f"| {cosine:.2f} | {said} | {seconds:.1f} s | {every} | {memory:.0f} MiB |")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
