"""Digits that single precision or a long mean row used to take, kept as regressions."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.core.matrix import Matrix
from tests.support.matrices import analyze_matrix, rng
from tests.support.sampling import each_value

approx = pytest.approx


def cone(ratio, n=600, d=16):
    """float32 rows around a mean of length 3 that is `ratio` times as long as their spread."""
    g = rng(501)
    mean = np.full(d, 3.0 / np.sqrt(d))
    return (mean + 3.0 / ratio / np.sqrt(d) * g.standard_normal((n, d))).astype(np.float32)


def std_cosine(W):
    """From all pairs, 1 − cos = ‖ŵ_i − ŵ_j‖²/2, which does not cancel."""
    W = W.astype(np.longdouble)
    unit = W / np.sqrt((W * W).sum(axis=1))[:, None]
    apart = np.concatenate([((unit[i + 1 :] - unit[i]) ** 2).sum(1) / 2 for i in range(len(W))])
    return float(apart.std())


def value(W, name, **options):
    found = analyze_matrix(
        Matrix(W),
        sections=(name.partition(".")[0],),
        **options,
    )
    return found[name].value


@pytest.mark.slow
def test_cosines_of_a_narrow_cone():
    for ratio in (3, 10, 30, 100, 300, 1000):
        W = cone(ratio)
        assert value(W, "cosine.std") == approx(std_cosine(W), rel=1e-6)


def test_equal_cosines_do_not_vary():
    for n in (40, 300):
        for W in (np.eye(n), np.linalg.qr(rng(503).standard_normal((n, n)))[0], np.ones((n, 3))):
            assert value(W, "cosine.std") == 0.0


def test_cosines_far_from_the_origin():
    W = (1e5 + rng(502).standard_normal((600, 16))).astype(np.float32)
    assert value(W, "cosine.std") == approx(std_cosine(W), rel=1e-6)


@each_value
@pytest.mark.parametrize("neighbors_of", ["sample", "all"])
@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8])
def test_dimension_far_from_the_origin(offset, neighbors_of):
    W = rng(504).standard_normal((400, 12))
    near, far = (
        value(X, "tokens.intrinsic_dimension", neighbors_of=neighbors_of)
        for X in ((W + offset) - offset, W + offset)
    )
    assert far == approx(near, rel=1e-6)


def test_eigengap_far_from_the_origin():
    for offset in (1e3, 1e6, 1e8):
        W = rng(505).standard_normal((400, 12)) + offset
        energy = np.linalg.svd(W, compute_uv=False) ** 2
        expected = np.min((energy[:-1] - energy[1:]) / energy[:-1])
        assert value(W, "isotropy.eigengap") == approx(expected, rel=1e-6)


@pytest.mark.parametrize(("factor", "marked"), [(1e4, False), (1e8, True)])
def test_eigenvectors_that_one_long_row_turns_are_marked(factor, marked):
    W = rng(0).standard_normal((300, 8))
    W[5] *= factor
    unit = W / np.linalg.norm(W, axis=1)[:, None]
    products = unit @ np.linalg.svd(W)[2].T
    z = np.exp(np.hstack([products, -products])).sum(axis=0)
    found = analyze_matrix(Matrix(W), sections=("isotropy",))["isotropy.i1_unit_rows"]
    assert (found.value == approx(z.min() / z.max(), rel=1e-6)) is not marked
    assert ("basis_dependent" in found.caveats) is marked


def test_signs_that_rounding_decides_are_marked():
    half = rng(508).standard_normal((40, 5))
    for W, marked in ((np.vstack([half, -half]), True), (half, False)):
        found = analyze_matrix(Matrix(W), sections=("isotropy",))
        for name in ("i1_mean_sign", "i2_mean_sign"):
            assert ("sign_dependent" in found[f"isotropy.{name}"].caveats) is marked
        assert found["isotropy.i1"].caveats == ()
