"""Draw the tables of `embgeo/numerics/chance.py`: hubness and silhouette of random directions.

    python benchmarks/chance_tables.py [--draws N]

Each entry is an average over draws of isotropic rows. Its standard error, and how far dimensions
between two entries are from their interpolation, are printed below. Ends with 1 if a table of the
package is farther from the new one than it says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from embgeo.metrics.clusters import SAMPLE, choose_clusters
from embgeo.numerics import chance
from embgeo.numerics.hubness import count_occurrences, skewness
from embgeo.numerics.sampling import generator

#: Rows and neighbors from which the table of hubness is made, and others that it has to hold for.
ROWS, NEIGHBORS = 4000, 10
CHECKED = ((1000, 10), (4000, 5), (4000, 50))
#: Dimensions between those of the table.
BETWEEN = (5, 24, 96, 768)


def draw_directions(seed: int, n: int, d: int) -> np.ndarray:
    rows = np.random.default_rng([seed, n, d]).standard_normal((n, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])


def measure_hubness(seed: int, d: int, n: int = ROWS, k: int = NEIGHBORS) -> float:
    """Skewness of N_k in units of that of a binomial number."""
    occurrences, _, _ = count_occurrences(draw_directions(seed, n, d), k)
    p = k / (n - 1.0)
    return (skewness(occurrences) or 0.0) * float(np.sqrt(k * (1.0 - p)) / (1.0 - 2.0 * p))


def measure_silhouette(seed: int, d: int) -> float:
    labels, scores = choose_clusters(draw_directions(seed, SAMPLE, d), generator(0, "centers"))
    if labels.max():
        raise SystemExit(f"{SAMPLE} isotropic rows in {d} dimensions are in clusters")
    return float(scores.mean())


def average(measure: Callable[[int, int], float], d: int, draws: int) -> tuple[float, float]:
    found = [measure(seed, d) for seed in range(draws)]
    return float(np.mean(found)), float(np.std(found, ddof=1) / draws**0.5)


def main(draws: int) -> int:
    wrong = 0
    for name, measure, table, relative, most in (
        ("HUBNESS", measure_hubness, chance.HUBNESS, False, 0.06),
        ("SILHOUETTE", measure_silhouette, chance.SILHOUETTE, True, 0.05),
    ):
        found = {d: average(measure, d, draws) for d in (*chance.DIMENSIONS, *BETWEEN)}
        listed = ", ".join(f"{found[d][0]:.3g}" for d in chance.DIMENSIONS)
        print(f"{name} = ({listed})")
        for d, (value, error) in found.items():
            if len(table) == len(chance.DIMENSIONS):
                log = np.log(table) if relative else table
                kept = chance.interpolate(log, d)
                kept = float(np.exp(kept)) if relative else kept
                away = abs(value - kept) / (value if relative else 1.0)
                allowed = most + 3.0 * error / (value if relative else 1.0)
                wrong |= away > allowed
                print(f"  d = {d}: {value:.4f} ± {error:.4f}, in the package {kept:.4f}")
    for n, k in CHECKED:
        for d in (3, 16, 128):
            value, error = average(lambda s, at, n=n, k=k: measure_hubness(s, at, n, k), d, draws)
            print(f"  N = {n}, k = {k}, d = {d}: {value:.3f} ± {error:.3f}")
    return int(wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=6)
    sys.exit(main(parser.parse_args().draws))
