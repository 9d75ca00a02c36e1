"""Time to place the origin inside or outside the hull of 100,000 × 400 hidden states.

    python benchmarks/hull.py [--rows N] [--columns D]

Every answer is checked by its certificate, computed again from the points alone, before its time
is printed; times are printed, never judged.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from embgeo.core.matrix import Matrix
from embgeo.numerics.convex_hull import Hull, distance_to_hull
from embgeo.stats.reader import HiddenStates

Points = npt.NDArray[np.float32]


def normalized(points: Points) -> Points:
    """LayerNorm without scale and bias: all points in one plane, but for rounding."""
    centered = points - points.mean(axis=1, keepdims=True)
    return np.asarray(centered / points.std(axis=1, keepdims=True), np.float32)


def cluster_points(points: Points, rng: np.random.Generator) -> Points:
    """A hundred near copies of each of a few points, as of one token in many contexts."""
    few = np.repeat(points[: len(points) // 100 + 1], 100, axis=0)[: len(points)]
    return np.asarray(few + 1e-6 * rng.standard_normal(few.shape, dtype=np.float32))


def list_cases(rows: int, columns: int) -> Iterator[tuple[str, str, Points]]:
    """A name, the side where the origin must be, and the points."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((rows, columns), dtype=np.float32)
    yield "Gaussian, the origin well inside", "inside", points
    # The mean of some points on a face, moved to the origin: the hull only touches it.
    away = np.abs(points[:, :1])
    away[: 2 * columns] = 0.0
    touching = np.hstack([away, points[:, 1:] - points[: 2 * columns, 1:].mean(axis=0)])
    near = np.eye(1, columns, dtype=np.float32)
    yield "nearly outside: 1e-4 inside", "inside", touching - 1e-4 * near
    yield "nearly inside: 1e-4 outside", "outside", touching + 1e-4 * near
    yield "shifted by 0.25, outside", "outside", points + np.float32(0.25)
    yield "shifted by 0.5, far outside", "outside", points + np.float32(0.5)
    layer = normalized(points)
    yield "LayerNorm with bias 0.05", "outside", layer + np.float32(0.05)
    yield "LayerNorm without bias", "inside", layer
    yield "clusters of near copies", "outside", cluster_points(points, rng) + np.float32(0.5)


def check(name: str, side: str, points: Points, hull: Hull) -> None:
    """Stop unless the certificate holds when it is computed from scratch."""
    if hull.side != side:
        raise SystemExit(f"{name}: {hull.side}, it should be {side}")
    nearest = float(np.linalg.norm(hull.weights @ points[hull.rows].astype(np.float64)))
    convex = hull.weights.min() > 0 and abs(hull.weights.sum() - 1) < 1e-12
    if side == "inside":
        holds = convex and nearest <= 1e-12 * hull.longest
    else:
        highest = max(float((h @ hull.direction).max()) for _, h in Matrix(points).blocks())
        holds = convex and highest < 0 and -highest <= nearest * (1 + 1e-12) <= -highest * 1.001
    if not holds:
        raise SystemExit(f"{name}: the certificate does not hold")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=400)
    options = parser.parse_args()
    rounding = float(np.finfo(np.float32).eps)
    print(f"{options.rows:,} × {options.columns} float32, certificates checked from the points")
    for name, side, points in list_cases(options.rows, options.columns):
        began = time.perf_counter()
        states = HiddenStates(Matrix(points))
        repeated = states.find_repeated()
        hull = distance_to_hull(states.blocks, options.columns, rounding, repeated)
        seconds = time.perf_counter() - began
        check(name, side, points, hull)
        bounds = f"{hull.lower:.6g} – {hull.upper:.6g}" if side == "outside" else "0"
        print(
            f"  {name:<34}{side:<9}{seconds:6.2f} s{hull.passes:5} passes"
            f"{len(hull.rows):5} points   distance {bounds}",
            flush=True,
        )


if __name__ == "__main__":
    main()
