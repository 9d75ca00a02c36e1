"""What the numbers are: plain formulas in float64 over the whole matrix, without embgeo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.harness.matrices import BLOCK_ROWS, open_matrix

FloatArray = npt.NDArray[np.float64]


def compute_truth(path: str, rows: int | None = None, columns: int | None = None) -> dict[str, Any]:
    """Numbers of the first rows and columns of a matrix; kept in a file next to it."""
    kept = Path(f"{path}.{rows}-{columns}.truth.json")
    if not kept.exists():
        partial = kept.with_suffix(".partial")
        partial.write_text(json.dumps(numbers(open_matrix(Path(path))[:rows, :columns])))
        partial.replace(kept)
    found: dict[str, Any] = json.loads(kept.read_text())
    return found


def numbers(W: npt.NDArray[Any]) -> dict[str, Any]:
    n, d = W.shape
    gram, unit_gram = np.zeros((d, d)), np.zeros((d, d))
    total, unit_total = np.zeros(d), np.zeros(d)
    longest = 0.0
    for start in range(0, n, BLOCK_ROWS):
        x = W[start : start + BLOCK_ROWS].astype(np.float64)
        norms = np.linalg.norm(x, axis=1, keepdims=True)
        gram += x.T @ x
        total += x.sum(axis=0)
        longest = max(longest, float(norms.max()))
        x /= norms
        unit_gram += x.T @ x
        unit_total += x.sum(axis=0)
    pairs = n * (n - 1.0)
    mean = (unit_total @ unit_total - n) / pairs
    squares = (np.sum(unit_gram**2) - n) / pairs
    values, vectors = np.linalg.eigh(gram)
    sigma = np.sqrt(np.maximum(values[::-1], 0.0))
    share = sigma[sigma > 0] / sigma.sum()
    i1, i2 = isotropy(W, vectors, longest)
    centered = np.linalg.eigvalsh(gram - np.outer(total, total) / n)
    return {
        "singular_values": (sigma / sigma[0]).tolist(),
        "largest_singular_value": float(sigma[0]),
        "top_share": float(sigma[0] ** 2 / np.sum(sigma**2)),
        "effective_rank": float(np.exp(-np.sum(share * np.log(share)))),
        "mean_cosine": float(mean),
        "std_cosine": float(np.sqrt(squares - mean**2)),
        "i1": i1,
        "i2": i2,
        "isoscore": isoscore(centered),
    }


def isotropy(W: npt.NDArray[Any], vectors: FloatArray, longest: float) -> tuple[float, float]:
    """I1 and I2 over v and −v: Z by exponentials of every inner product."""
    z = np.zeros((2, vectors.shape[1]))
    for start in range(0, len(W), BLOCK_ROWS):
        inner = W[start : start + BLOCK_ROWS].astype(np.float64) @ vectors
        z += [np.exp(inner - longest).sum(axis=0), np.exp(-inner - longest).sum(axis=0)]
    return float(z.min() / z.max()), float(z.std() / z.mean())


def isoscore(variances: FloatArray) -> float:
    """Rudman et al. 2022, from the variances along the principal directions."""
    d = len(variances)
    relative = np.sqrt(d) * variances / np.linalg.norm(variances)
    defect = np.linalg.norm(relative - 1) / np.sqrt(2 * (d - np.sqrt(d)))
    used = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d**2
    return float((d * used - 1) / (d - 1))
