"""Every pair, met once by blocks on several threads, next to the whole matrix of cosines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.measure.analyze import analyze
from embgeo.stats.resources import Resources
from tests.support import naive
from tests.support.matrices import gaussian

#: One block, an even and an odd number of blocks, and a last one of a single row.
SIZES = (30, 256, 300, 321)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.slow
def test_every_pair_is_met_once(monkeypatch, n, dtype, threads):
    monkeypatch.setattr("embgeo.metrics.pairs.BLOCK_ROWS", 64)
    W = (gaussian(81, n=n, d=5) + 0.4).astype(dtype)
    expected = np.sort(naive.pair_cosines(W.astype(np.float64)))
    precise = 1e-9 if dtype is np.float64 else 1e-6
    for kept in (10**6, 0):
        monkeypatch.setattr("embgeo.metrics.pairs.KEPT_PAIRS", kept)
        found = analyze(
            Matrix(W),
            sections=("cosine",),
            options=Options(pairs=None),
            reference=False,
            resources=replace(Resources(), threads=threads),
        )
        histogram = found["cosine.histogram"]
        assert histogram.counts.sum() == n * (n - 1) // 2
        share = found["cosine.positive_share"].value
        assert share == pytest.approx(np.mean(expected > 0), abs=2 / len(expected))
        aperture = np.degrees(np.arccos(expected[0]))
        assert found["cosine.cone_aperture"].value == pytest.approx(aperture, rel=1e-6)
        uniformity = np.log(np.mean(np.exp(4 * expected - 4)))
        assert found["cosine.uniformity"].value == pytest.approx(uniformity, rel=precise)
        quantiles = [row[1] for row in found["cosine.quantiles"].rows]
        levels = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
        if n > 200:  # with few pairs it matters how one interpolates
            np.testing.assert_allclose(quantiles, np.quantile(expected, levels), atol=6e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kept", [10**6, 0])
def test_orthogonal_rows_have_no_positive_cosine(monkeypatch, kept, dtype):
    monkeypatch.setattr("embgeo.metrics.pairs.KEPT_PAIRS", kept)
    found = analyze(
        Matrix(3 * np.eye(12, dtype=dtype)),
        sections=("cosine",),
        options=Options(pairs=None),
        reference=False,
    )
    assert found["cosine.positive_share"].value == 0.0


def test_opposite_rows_are_180_degrees_apart_in_float32(monkeypatch):
    """An arccos of a cosine in float32 would be off by hundredths of a degree here."""
    monkeypatch.setattr("embgeo.metrics.pairs.KEPT_PAIRS", 0)
    row = gaussian(82, n=1, d=7).astype(np.float32)
    W = np.vstack([row, -2 * row, 3 * row])
    found = analyze(Matrix(W), sections=("cosine",), options=Options(pairs=None), reference=False)
    assert found["cosine.cone_aperture"].value == pytest.approx(180.0, abs=1e-5)
