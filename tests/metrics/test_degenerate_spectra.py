"""Equal or zero eigenvalues: every number is finite, every error finite or absent."""

from __future__ import annotations

import math

import numpy as np
import pytest

import embgeo

G = np.random.default_rng(0)
MATRICES = {
    "orthonormal columns": np.linalg.qr(G.standard_normal((300, 16)))[0],
    "repeated axes": np.tile(np.eye(8), (40, 1)),
    "a cross": np.tile(np.vstack([np.eye(6), -np.eye(6)]), (20, 1)),
    "a simplex": np.tile(np.eye(5) - 0.2, (30, 1)),
    "equal rows": np.ones((100, 4)),
    "a line": np.outer(G.standard_normal(200), np.arange(1.0, 6)),
    "corners of a square": np.array([[1.0, 1], [1, -1]])[G.integers(0, 2, 200)],
}


@pytest.mark.parametrize("name", MATRICES)
def test_every_number_is_finite_or_absent(name: str) -> None:
    rows = MATRICES[name]
    found = embgeo.analyze(rows, counts=np.arange(len(rows), 0, -1), pairs=500)
    for scalar in found.scalars:
        assert scalar.text
        for number in (scalar.value, scalar.standard_error, scalar.population_error):
            assert number is None or math.isfinite(number), scalar.name
    assert found.verdict.headline


def test_isotropic_rows_of_any_norms_have_no_direction_above_chance() -> None:
    """Norms alone put eigenvalues of the rows themselves above the edge: p was 3e-29."""
    for seed in range(4):
        g = np.random.default_rng(seed)
        rows = g.standard_normal((1000, 20)) * np.exp(g.standard_normal((1000, 1)))
        found = embgeo.analyze(rows, sections=["spectrum"], reference=False)
        assert found["spectrum.above_edge"] == 0
        assert found["spectrum.largest_p"] > 0.05


def test_the_gap_is_over_the_printed_rank() -> None:
    """Directions down to 1e-12 of the first count for both."""
    g = np.random.default_rng(1)
    sigma = np.r_[1.0, 0.5, 1e-9, 0.99e-9, 1e-12]
    left, right = (np.linalg.qr(g.standard_normal(shape))[0] for shape in ((200, 5), (5, 5)))
    rows = (left * sigma) @ right.T
    found = embgeo.analyze(rows, sections=["spectrum", "isotropy"], reference=False)
    assert found["spectrum.numerical_rank"] == 5
    assert found["isotropy.eigengap"].value == pytest.approx(1 - 0.99**2, rel=1e-3)
    alone = embgeo.analyze(rows, sections=["isotropy"], reference=False)
    assert alone["isotropy.eigengap"] == found["isotropy.eigengap"]
