"""Extremes over the sphere, beside closed forms and scipy's minimizer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from embgeo.numerics.eigen import signed_eigen
from embgeo.numerics.sphere_search import find_extremes


@pytest.mark.parametrize("seed", range(4))
def test_a_quadratic_form_has_its_eigenvectors_for_extremes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 6))
    A = A @ A.T
    starts = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    best, values, settled = find_extremes(
        lambda a: ((a * (A @ a)).sum(0), 2 * A @ a), starts, starts
    )
    eigen = signed_eigen(A.copy(), None)
    low, high = np.argmin(values), np.argmax(values)
    assert settled[[low, high]].all()
    assert abs(best[:, low] @ eigen.vectors[:, -1]) == pytest.approx(1, abs=1e-6)
    assert abs(best[:, high] @ eigen.vectors[:, 0]) == pytest.approx(1, abs=1e-6)


@pytest.mark.slow
def test_log_partition_functions_end_no_worse_than_scipy() -> None:
    rng = np.random.default_rng(5)
    W = rng.standard_normal((40, 3))
    W[:, 0] += 0.5

    def evaluate(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return logsumexp(W @ a, axis=0), W.T @ softmax(W @ a, axis=0)

    starts = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    starts = np.hstack([starts, -starts])
    best, values, settled = find_extremes(evaluate, starts, starts)
    assert settled.all()
    for sign, found in ((1.0, best[:, values.argmin()]), (-1.0, best[:, values.argmax()])):
        others = [
            minimize(lambda x, s=sign: s * logsumexp(W @ (x / np.linalg.norm(x))), start).fun
            for start in starts.T
        ]
        assert sign * logsumexp(W @ found) <= min(others) + 1e-6
