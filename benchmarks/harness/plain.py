"""Plain numpy for single numbers: what people write by hand, and what checks the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import clock
from benchmarks.harness.matrices import BLOCK_ROWS, open_matrix


def isotropy_loop(path: str) -> dict[str, Any]:
    """I1 as published code computes it: Z of one eigenvector after the other, over both signs."""
    W = np.array(open_matrix(Path(path)), dtype=np.float64)
    began = clock.now()
    vectors = np.linalg.eigh(W.T @ W)[1]
    z = [np.exp(W @ side).sum() for v in vectors.T for side in (v, -v)]
    i1 = min(z) / max(z)
    return {"seconds": clock.now() - began, "answers": {"i1": float(i1)}}


def find_nearest(path: str) -> dict[str, Any]:
    """The ten nearest rows of each row by cosine, with SciPy's tree of the unit rows."""
    from scipy.spatial import cKDTree

    W = np.array(open_matrix(Path(path)), dtype=np.float64)
    began = clock.now()
    unit = W / np.linalg.norm(W, axis=1, keepdims=True)
    distances, _ = cKDTree(unit).query(unit, 11)
    spent = clock.now() - began
    nearest = 1.0 - np.square(np.asarray(distances)[:, 1]).mean() / 2.0
    return {"seconds": spent, "answers": {"nearest_cosine": float(nearest)}}


def two_nn(path: str) -> dict[str, Any]:
    """TwoNN's dimension from the distances of all pairs, in its maximum-likelihood form."""
    W = np.array(open_matrix(Path(path)), dtype=np.float64)
    squares = np.einsum("ij,ij->i", W, W)
    logs = 0.0
    for start in range(0, len(W), BLOCK_ROWS):
        x = W[start : start + BLOCK_ROWS]
        distances = squares[start : start + len(x), None] + squares - 2 * (x @ W.T)
        distances[np.arange(len(x)), start + np.arange(len(x))] = np.inf
        nearest = np.sort(np.partition(distances, 1, axis=1)[:, :2], axis=1)
        logs += 0.5 * np.sum(np.log(nearest[:, 1] / nearest[:, 0]))
    return {"dimension": float((len(W) - 1) / logs)}
