"""The reference column: isotropic rows of the same N, d and norms."""

from __future__ import annotations

import numpy as np
import pytest

from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.measure.analyze import analyze
from embgeo.measure.reference import (
    NO_REFERENCE,
    expect_isoscore,
)
from tests.support.matrices import gaussian

approx = pytest.approx
GEOMETRY = ("spectrum", "projection", "cosine", "isotropy")


@pytest.mark.parametrize("d", [2, 16])
def test_expectations_over_random_directions(d):
    cosines = (lambda u: u[:, 0] / np.linalg.norm(u, axis=1))(gaussian(60, n=200_000, d=d))
    matrix = Matrix(gaussian(60, n=100, d=d))
    found = analyze(matrix, sections=["cosine"], options=Options(pairs=50))
    e = {scalar.name: scalar.reference for scalar in found.scalars}
    assert e["cosine.std"] == approx(cosines.std(), rel=0.01)
    assert abs(cosines.mean() - e["cosine.mean"]) < 0.01
    assert abs((cosines > 0).mean() - e["cosine.positive_share"]) < 0.01


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


def lognormal(n, d, seed=63):
    W = gaussian(seed, n=n, d=d)
    norms = np.exp(0.3 * gaussian(seed + 1, n=n, d=1))
    return Matrix(W / np.linalg.norm(W, axis=1)[:, None] * norms)


@pytest.mark.slow
def test_a_reference_without_rows_is_near_that_of_drawn_rows(monkeypatch):
    matrix = lognormal(3000, 24)
    drawn = analyze(matrix, sections=GEOMETRY)
    monkeypatch.setattr("embgeo.numerics.isotropic_rows.DRAWN_ENTRIES", 0)
    without = analyze(matrix, sections=GEOMETRY)
    for a, b in zip(drawn.scalars, without.scalars, strict=True):
        assert a.reference_kind == b.reference_kind, a.name
        if a.reference is not None:
            rel = 0.7 if a.name.startswith("isotropy.i2") else 0.05
            assert b.reference == approx(a.reference, rel=rel), a.name


def test_rows_in_units_of_their_mean_norm_have_one_reference():
    matrix = lognormal(300, 8)
    found = [analyze(Matrix(c * matrix.data), sections=["isotropy"]) for c in (1.0, 4.0)]
    one, other = (a["isotropy.i1_unit"].reference for a in found)
    assert one == approx(other, rel=1e-9)


def test_the_same_seed_gives_the_same_reference():
    found = [analyze(lognormal(3000, 24), sections=["spectrum"]) for _ in range(2)]
    assert [a.reference for a in found[0].scalars] == [b.reference for b in found[1].scalars]
    other = analyze(lognormal(3000, 24), sections=["spectrum"], options=Options(seed=1))
    name = "spectrum.condition_number"
    assert other[name].reference != found[0][name].reference


@pytest.mark.parametrize("neighbors_of", ["sample", "all"])
def test_hubs_and_dimension_have_a_reference(neighbors_of):
    matrix = Matrix(gaussian(64, n=1500, d=4))
    found = analyze(matrix, sections=["tokens"], options=Options(neighbors_of=neighbors_of))
    assert found["tokens.hubness"].reference == approx(found["tokens.hubness"].value, abs=0.5)
    assert found["tokens.intrinsic_dimension"].reference == approx(4.0, abs=0.7)


def test_isoscore_is_expected_of_the_literal_sums():
    norms, d = np.array([0.5, 1.0, 2.0, 2.5]), 3
    squares = norms**2
    trace, of_square = squares.sum() ** 2, 0.0
    for i, a in enumerate(squares):
        for j, b in enumerate(squares):
            of_square += a * b if i == j else a * b / d
    assert expect_isoscore(norms, d) == approx((trace / of_square - 1) / (d - 1), rel=1e-12)


def test_numbers_that_isotropic_rows_have_exactly():
    W = gaussian(67, n=700, d=8)
    found = analyze(Matrix(W), sections=["cosine", "coordinates", "spectrum"])
    assert found["cosine.clusters"].reference == 1.0
    for name in ("rogue_coordinates", "rogue_share", "mean_cosine_without_1"):
        assert found[f"coordinates.{name}"].reference == 0.0
    drawn = found["spectrum.singular_values"].y["isotropic reference"]
    assert (drawn[0], len(drawn)) == (1.0, 8)


def test_angles_to_a_mean_need_rows_and_dimensions():
    for shape, known in (((1, 4), False), ((30, 1), False), ((2, 2), True)):
        found = analyze(
            Matrix(np.abs(gaussian(68, *shape)) + 1.0), sections=["cosine", "coordinates"]
        )
        for name in ("median", "max"):
            assert (found[f"cosine.cone_half_angle_{name}"].reference is not None) is known
        assert (found["coordinates.variance_ratio"].reference is not None) is (shape[1] > 1)


def test_isotropic_rows_in_clusters_equal_their_reference():
    W = gaussian(66, n=400, d=12) / 12**0.5
    W += 4 * np.eye(12)[np.arange(400) % 3]
    found = analyze(Matrix(W), sections=["cosine"], reference=False)
    between = found["cosine.mean_between_clusters"]
    assert between.reference == 0.0
    assert between.value == approx(0.0, abs=0.02)
