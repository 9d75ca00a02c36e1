"""The reference column: isotropic rows of the same N, d and norms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.options import Options
from embgeo.measure.analyze import analyze
from embgeo.measure.reference import NO_REFERENCE, GaussianRows, expect_weighted, expected
from tests.support.matrices import gaussian

approx = pytest.approx
GEOMETRY = ("spectrum", "projection", "cosine", "isotropy")


@pytest.mark.parametrize("d", [2, 16])
def test_expectations_over_random_directions(d):
    cosines = (lambda u: u[:, 0] / np.linalg.norm(u, axis=1))(gaussian(60, n=200_000, d=d))
    e = expected(np.ones(3), d)
    assert e["cosine.std"] == approx(cosines.std(), rel=0.01)
    assert e["cosine.uniformity"] == approx(math.log(np.exp(4 * cosines - 4).mean()), abs=0.01)
    assert abs(cosines.mean() - e["cosine.mean"]) < 0.01
    assert abs((cosines > 0).mean() - e["cosine.positive_share"]) < 0.01


@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_spread_of_z_over_random_directions(scale):
    norms = np.linspace(0.5, 2.0, 200) * scale
    variances = []
    for seed in range(60):
        rows = gaussian(seed, n=200, d=6)
        rows *= (norms / np.linalg.norm(rows, axis=1))[:, None]
        directions = gaussian(100 + seed, n=6, d=2000)
        Z = np.exp(rows @ (directions / np.linalg.norm(directions, axis=0))).sum(axis=0)
        variances.append(Z.var() / Z.mean() ** 2)
    found = expected(norms, 6)["isotropy.z_random_std"]
    # Z of longer rows has the heavier tail: its mean over few matrices is less certain.
    assert found**2 == approx(np.mean(variances), rel=4 * np.std(variances) / 60**0.5 / found**2)


def test_norms_too_long_for_a_closed_form_have_none():
    assert "isotropy.z_random_std" not in expected(np.array([1.0, 1e4]), 6)


def test_reference_rows_have_the_given_norms_however_they_are_read():
    lengths = np.linspace(0.1, 9, 3000)
    rows = GaussianRows(lengths, 5, seed=3)
    whole = rows[:]
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), lengths, rtol=1e-6)
    some = np.array([2999, 0, 1500, 1024, 1023])
    np.testing.assert_array_equal(rows[some], whole[some])
    np.testing.assert_array_equal(np.vstack([rows[:1], rows[1:1700], rows[1700:]]), whole)
    assert np.abs((whole / lengths[:, None]).mean(axis=0)).max() < 4 / math.sqrt(5 * 3000)


def test_an_isotropic_matrix_equals_its_reference():
    W = gaussian(61, n=2000, d=8)
    matrix = Matrix(W / np.linalg.norm(W, axis=1)[:, None])
    found = analyze(matrix, sections=GEOMETRY, options=Options())
    defined = [scalar for scalar in found.scalars if scalar.value is not None]
    without = {scalar.name for scalar in defined if scalar.reference is None}
    assert without <= {*NO_REFERENCE}
    # Which coordinate the mean of isotropic rows leans to is chance, as are p-values.
    for scalar in defined:
        if scalar.name in (*without, "cosine.max_dimension_share", "spectrum.largest_p"):
            continue
        # Two draws of the same thing.
        assert scalar.value == approx(scalar.reference, rel=0.1, abs=0.05), scalar.name
    assert "isotropic reference" in found["spectrum.singular_values"].y


def test_a_reference_drawn_on_the_fly_is_that_of_held_rows(monkeypatch):
    matrix = Matrix(gaussian(62, n=300, d=4) + 1.0)
    held = analyze(matrix, sections=GEOMETRY)
    monkeypatch.setattr("embgeo.measure.reference.HELD_ENTRIES", 10)
    drawn = analyze(matrix, sections=GEOMETRY)
    references = [(s.name, s.reference) for s in held.scalars]
    assert [s.name for s in drawn.scalars] == [name for name, _ in references]
    for scalar, (name, reference) in zip(drawn.scalars, references, strict=True):
        if scalar.reference is not None:
            assert scalar.reference == approx(reference, rel=1e-9), name


def lognormal(n, d, seed=63):
    W = gaussian(seed, n=n, d=d)
    norms = np.exp(gaussian(seed + 1, n=n, d=1))
    return Matrix(W / np.linalg.norm(W, axis=1)[:, None] * norms)


@pytest.mark.slow
def test_a_large_reference_is_that_of_a_small_one(monkeypatch):
    whole = analyze(lognormal(3000, 24), options=Options())
    monkeypatch.setattr("embgeo.measure.reference.SINGLE_ENTRIES", 10)
    monkeypatch.setattr("embgeo.measure.reference.HELD_ENTRIES", 10)
    large = analyze(lognormal(3000, 24), options=Options())
    compared = [scalar.name for scalar in whole.scalars if scalar.reference_kind == "isotropic"]
    assert {"isotropy.i1", "isotropy.isoscore", "tokens.intrinsic_dimension"} <= {*compared}
    for name in compared:
        # The p-value of a largest eigenvalue far beyond the edge has few digits.
        rel = 0.01 if name == "spectrum.largest_p" else 2e-5
        assert large[name].reference == approx(whole[name].reference, rel=rel, abs=1e-9), name


@pytest.mark.parametrize("neighbors_of", ["sample", "all"])
def test_hubs_and_dimension_have_a_reference(neighbors_of):
    matrix = Matrix(gaussian(64, n=1500, d=4))
    found = analyze(matrix, sections=["tokens"], options=Options(neighbors_of=neighbors_of))
    assert found["tokens.hubness"].reference == approx(found["tokens.hubness"].value, abs=0.5)
    assert found["tokens.intrinsic_dimension"].reference == approx(4.0, abs=0.7)


def measure_weighted(seed, norms, counts):
    W = gaussian(seed, n=len(norms), d=6)
    W *= (norms / np.linalg.norm(W, axis=1))[:, None]
    matrix = Matrix(W, frequency=Frequency("counts", counts, "a list"))
    return analyze(matrix, sections=["frequency"], reference=False)


def test_weighted_values_have_the_expectation_of_isotropic_rows():
    norms, counts = np.linspace(0.5, 2.0, 60), np.ceil(500 / np.arange(1.0, 61))
    found = [measure_weighted(seed, norms, counts) for seed in range(12)]
    for name, reference in expect_weighted(norms, 6, counts / counts.sum()).items():
        values = np.array([one[name].value for one in found])
        assert reference == approx(values.mean(), abs=4 * values.std() / 12**0.5), name


def test_every_weighted_value_has_a_reference():
    W, counts = gaussian(65, n=400, d=6), np.ceil(4000 / np.arange(1.0, 401))
    matrix = Matrix(W, frequency=Frequency("counts", counts, "a list"))
    found = analyze(matrix, sections=["frequency"])
    for scalar in found.scalars:
        if "weighted" in scalar.name:
            assert scalar.reference_kind == "isotropic"
            assert scalar.value == approx(scalar.reference, abs=0.06 * abs(scalar.value) + 0.06)


def test_isotropic_rows_in_clusters_equal_their_reference():
    W = gaussian(66, n=400, d=12) / 12**0.5
    W += 4 * np.eye(12)[np.arange(400) % 3]
    found = analyze(Matrix(W), sections=["cosine"], reference=False)
    between = found["cosine.mean_between_clusters"]
    assert between.reference == 0.0
    assert between.value == approx(0.0, abs=4 * between.population_error)
