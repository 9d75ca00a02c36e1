"""The bare products that no exact analysis can do without, by BLAS alone.

Reading, one symmetric rank-k update in float64 and one in float32, one eigendecomposition, and
one float32 product of every row with the eigenvectors. Nothing else: no norms, no exponentials,
no statistics.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.harness import clock
from benchmarks.harness.answers import errors
from benchmarks.harness.matrices import BLOCK_ROWS, open_matrix


class Laps:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = clock.now()

    def lap(self, stage: str) -> None:
        now = clock.now()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now


def measure(path: str) -> dict[str, Any]:
    """Seconds of the bare products, by stage, and the singular values that came out."""
    from scipy.linalg import eigh
    from scipy.linalg.blas import dsyrk, sgemm, ssyrk

    W = open_matrix(Path(path))
    n, d = W.shape
    clock = Laps()
    gram = np.zeros((d, d), order="F")
    single = np.zeros((d, d), dtype=np.float32, order="F")
    for start in range(0, n, BLOCK_ROWS):
        x = W[start : start + BLOCK_ROWS].astype(np.float32)
        wide = x.astype(np.float64)
        clock.lap("read")
        # BLAS stores columns first: the transpose of a block is what it reads without a copy.
        gram = dsyrk(1.0, wide.T, beta=1.0, c=gram, overwrite_c=1)
        clock.lap("float64 syrk")
        single = ssyrk(1.0, x.T, beta=1.0, c=single, overwrite_c=1)
        clock.lap("float32 syrk")
    traces = float(np.trace(gram)), float(np.trace(single))
    values, vectors = eigh(gram, overwrite_a=True, lower=False, check_finite=False, driver="evd")
    turned = np.asfortranarray(vectors, dtype=np.float32)
    clock.lap("eigh")
    product = np.zeros((d, BLOCK_ROWS), dtype=np.float32, order="F")
    for start in range(0, n, BLOCK_ROWS):
        x = W[start : start + BLOCK_ROWS].astype(np.float32)
        clock.lap("read")
        z = sgemm(1.0, turned, x.T, trans_a=1, c=product[:, : len(x)], overwrite_c=1)
        clock.lap("float32 product")
    return {
        "seconds": sum(clock.seconds.values()),
        "stages": clock.seconds,
        "answers": collect_answers(values, traces, x, vectors, z),
    }


def collect_answers(
    values: npt.NDArray[np.float64],
    traces: tuple[float, float],
    x: npt.NDArray[np.float32],
    vectors: npt.NDArray[np.float64],
    z: npt.NDArray[np.float32],
) -> dict[str, Any]:
    """What shows that each product was made: the last block stands for the others."""
    sigma = np.sqrt(np.maximum(values[::-1], 0.0))
    wanted = (x[:8].astype(np.float64) @ vectors).T
    return {
        "singular_values": (sigma / sigma[0]).tolist(),
        "float32_trace": traces[1] / traces[0],
        "product_error": float(np.abs(z[:, :8] - wanted).max() / np.abs(wanted).max()),
    }


def check(found: dict[str, Any], truth: dict[str, Any]) -> dict[str, float]:
    """How far off the floor's answers are; raises Wrong."""
    wanted = {**truth, "float32_trace": 1.0}
    seen = errors("floor", found, wanted, {"singular_values": 1e-9, "float32_trace": 1e-4})
    product = errors(
        "floor", {"product": 1 + found["product_error"]}, {"product": 1.0}, {"product": 1e-5}
    )
    return seen | product
