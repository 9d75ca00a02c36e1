"""Sums of a scatter matrix that outlive it."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.stats import Moments
from embgeo.stats.block import Block
from tests.support.matrices import gaussian


@pytest.mark.parametrize("of", ["rows", "unit"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_kept_of_a_forgotten_scatter(of, dtype):
    W = (gaussian(70, n=50, d=6) + 0.4).astype(dtype)
    moments = Moments(6, of=of)
    moments.update(Block(np.arange(50), W))
    scatter, mean = moments.scatter, moments.mean
    moments.forget_scatter()
    assert moments.trace() == pytest.approx(np.trace(scatter), rel=1e-12)
    assert moments.squares() == pytest.approx(np.square(scatter).sum(), rel=1e-12)
    assert moments.along_mean() == pytest.approx(mean @ scatter @ mean, rel=1e-12)
    assert moments.n == 50
    with pytest.raises(ValueError, match="forgotten"):
        moments.gram()
    assert moments.blank().trace() == 0.0
