"""Matrices whose geometry is known on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest

from embgeo.core.matrix import Frequency, Matrix
from tests.support.matrices import analyze_matrix, gaussian

approx = pytest.approx
GEOMETRY = ("spectrum", "projection", "cosine", "isotropy")


def measured(W, sections=GEOMETRY, **options):
    return analyze_matrix(Matrix(np.asarray(W, dtype=np.float64)), 7, sections=sections, **options)


def value(found, name):
    scalar = found[name]
    assert scalar.value is not None, scalar.text
    return scalar.value


# Spectrum, cosine and isotropy ------------------------------------------------------------------


def test_orthonormal_rows():
    for n in (2, 5, 12):
        found = measured(np.eye(n))
        for name in ("effective_rank", "numerical_rank"):
            assert value(found, f"spectrum.{name}") == approx(n)
        assert value(found, "spectrum.condition_number") == approx(1)
        assert value(found, "spectrum.mean_norm_ratio") == approx(1 / math.sqrt(n))
        assert value(found, "spectrum.top_share") == approx(1 / n)
        assert value(found, "cosine.mean") == approx(0, abs=1e-15)
        # A variance of rounding errors only: its root is known to 1e-8.
        assert value(found, "cosine.std") == approx(0, abs=1e-7)
        assert value(found, "cosine.cone_aperture") == approx(90)
        # Σ exp(a_i) on the unit sphere is extreme where all coordinates are equal.
        sphere = math.exp(-2 / math.sqrt(n))
        # All eigenvalues are equal, E is any basis: I1 can only be bounded, and says so.
        assert sphere - 1e-9 <= value(found, "isotropy.i1") < 1
        assert value(found, "isotropy.eigengap") == approx(0, abs=1e-12)
        assert "basis-dependent: neighboring" in found["isotropy.i1"].convention
        assert found["isotropy.i1"].caveats == ("basis_dependent",)


def test_known_singular_values():
    found = measured(np.diag([4.0, 2.0, 1.0, 1.0]))
    p = np.array([4, 2, 1, 1]) / 8
    assert value(found, "spectrum.effective_rank") == approx(math.exp(-(p * np.log(p)).sum()))
    assert value(found, "spectrum.top_share") == approx(16 / 22)
    assert value(found, "spectrum.condition_number") == approx(4)
    # Shares 16/22, 20/22, 21/22, 1.
    assert value(found, "spectrum.energy_90") == 2
    assert value(found, "projection.svd2_share") == approx(20 / 22)


def test_a_share_reached_exactly_counts():
    assert value(measured(np.eye(10)), "spectrum.energy_90") == 9


@pytest.mark.parametrize(
    ("prior", "curve"),
    [
        ("exponential", lambda k: np.exp(-0.3 * (k**0.8 - 1))),
        ("polynomial", lambda k: k**-0.6),
    ],
)
def test_decay_recovers_its_own_prior(prior, curve):
    sigma = curve(np.arange(1.0, 13))
    rows = {row[0].split()[0]: row for row in measured(np.diag(sigma))["spectrum.decay"].rows}
    _, c1, c2, gamma, residual, better = rows[prior]
    assert better == "yes"
    assert residual < 1e-7
    assert c1 == approx(math.exp(0.3) if prior == "exponential" else 1, rel=1e-5)
    assert gamma == approx(0.8 if prior == "exponential" else 0.6, rel=1e-5)
    assert c2 == (approx(0.3, rel=1e-5) if prior == "exponential" else None)


def test_equal_rows():
    """Rank one: everything centered is undefined, with the reason."""
    w = np.array([0.3, -0.1, 0.2, 0.5])
    found = measured(np.tile(w, (9, 1)))
    length = np.linalg.norm(w)
    for name in ("effective_rank", "top_share"):
        assert value(found, f"spectrum.{name}") == approx(1)
    assert value(found, "cosine.mean") == approx(1)
    assert value(found, "cosine.std") == approx(0, abs=1e-14)
    assert value(found, "cosine.positive_share") == 1
    assert value(found, "cosine.cone_half_angle_max") == approx(0, abs=1e-12)
    assert value(found, "cosine.cone_aperture") == approx(0, abs=2e-6)
    assert value(found, "isotropy.i1") == approx(math.exp(-2 * length))
    assert value(found, "isotropy.i1_unit") == approx(math.exp(-2))
    assert "all kept rows are equal" in found["isotropy.isoscore"].undefined
    assert "numerical rank 1 of 4" in found["spectrum.condition_number"].undefined
    assert value(found, "spectrum.mean_norm_ratio") == approx(1)
    assert "fewer than two" in found["isotropy.eigengap"].undefined
    assert "projection.pca2" not in found


def test_two_sided_collapse():
    """The mean cosine sees nothing; the top direction holds everything."""
    m = 20
    w = np.array([1.0, 2.0, -1.0])
    found = measured(np.where(np.arange(m) % 2, 1, -1)[:, None] * w)
    mean = -1 / (m - 1)
    assert value(found, "cosine.mean") == approx(mean)
    assert value(found, "cosine.std") == approx(math.sqrt(1 - mean**2))
    assert value(found, "cosine.positive_share") == approx((m / 2 - 1) / (m - 1))
    assert value(found, "cosine.cone_aperture") == approx(180)
    assert value(found, "spectrum.top_share") == approx(1)
    assert value(found, "isotropy.isoscore") == approx(0, abs=1e-12)
    for part in ("max", "median"):
        assert "cancel" in found[f"cosine.cone_half_angle_{part}"].undefined
    assert "cancel" in found["cosine.max_dimension_share"].undefined


@pytest.mark.slow
def test_noisy_two_sided_collapse_shows_in_the_spectrum():
    """As measured on a real collapse: mean cosine about 0 with 99.8% on one direction."""
    side = np.where(np.arange(400) % 2, 1.0, -1.0)[:, None]
    noise = gaussian(32, n=400, d=6)
    found = measured(side * np.array([5.0, 0, 0, 0, 0, 0]) + 0.1 * noise)
    assert abs(value(found, "cosine.mean")) < 0.003
    assert value(found, "spectrum.top_share") > 0.995


def test_cone_of_known_half_angle():
    for half_angle in (1e-4, 1.0, 20.0, 60.0, 89.0, 120.0):
        m = 36
        theta, around = math.radians(half_angle), 2 * np.pi * np.arange(m) / m
        rows = np.column_stack(
            [
                np.full(m, math.cos(theta)),
                math.sin(theta) * np.cos(around),
                math.sin(theta) * np.sin(around),
            ]
        )
        found = measured(rows * np.linspace(0.5, 2, m)[:, None])
        # The common direction points into the cone, also of one wider than a half-space.
        angle = min(half_angle, 180 - half_angle)
        for part in ("max", "median"):
            assert value(found, f"cosine.cone_half_angle_{part}") == approx(angle, rel=1e-9)
        assert value(found, "cosine.cone_aperture") == approx(2 * angle, rel=1e-4)
        cos2 = math.cos(theta) ** 2
        assert value(found, "cosine.mean") == approx((m * cos2 - 1) / (m - 1), rel=1e-12)
        assert value(found, "cosine.max_dimension_share") == approx(1)


def test_regular_simplex():
    for n in (3, 4, 9):
        found = measured(3.0 * (np.eye(n) - 1 / n))
        assert value(found, "cosine.mean") == approx(-1 / (n - 1))
        assert value(found, "cosine.std") == approx(0, abs=1e-7)
        assert value(found, "cosine.cone_aperture") == approx(math.degrees(math.acos(-1 / (n - 1))))
        assert value(found, "spectrum.numerical_rank") == n - 1


@pytest.mark.slow
def test_isoscore_counts_used_dimensions():
    """Rudman et al.: k of d dimensions used evenly score (k − 1)/(d − 1)."""
    for used in (1, 2, 3, 5, 7):
        d = 7
        points = np.vstack([np.eye(d)[:used], -np.eye(d)[:used]])
        rotation = np.linalg.qr(gaussian(33, n=d, d=d))[0]
        found = measured(points @ rotation + 0.7)
        assert value(found, "isotropy.isoscore") == approx((used - 1) / (d - 1), abs=1e-9)


def test_partition_function_of_a_cross():
    """Rows ±c_k·e_k: Z(e_k) = Z(−e_k) = 2·cosh c_k + 2(d − 1), whatever the sign."""
    for length in (0.1, 3.0, 200.0):
        c = length * np.array([1.0, 1.1, 1.3, 1.6])
        found = measured(np.vstack([np.diag(c), -np.diag(c)]))
        Z = 2 * np.cosh(c) + 6
        for suffix in ("", "_mean_sign"):
            assert value(found, f"isotropy.i1{suffix}") == approx(Z.min() / Z.max(), rel=1e-9)
            assert value(found, f"isotropy.i2{suffix}") == approx(Z.std() / Z.mean(), rel=1e-9)


def test_partition_function_of_an_axis_system():
    """Rows c_k·e_k: Z(±e_k) is d − 1 + exp(±c_k)."""
    c = np.array([0.4, 0.9, 1.7, 2.6])
    Z = 3 + np.exp(np.concatenate([c, -c]))
    found = measured(np.diag(c))
    assert value(found, "isotropy.i1") == approx(Z.min() / Z.max())
    assert value(found, "isotropy.i2") == approx(Z.std() / Z.mean())
    one = Z[:4]
    assert value(found, "isotropy.i1_mean_sign") == approx(one.min() / one.max())
    assert value(found, "isotropy.i2_mean_sign") == approx(one.std() / one.mean())
    unit = 3 + np.exp(np.concatenate([c, -c]) / c.mean())
    assert value(found, "isotropy.i1_unit") == approx(unit.min() / unit.max())
    falling = found["isotropy.z"]
    np.testing.assert_allclose(falling.y["Z(v_k)"], one[::-1] / Z.mean())
    np.testing.assert_allclose(falling.y["Z(−v_k)"], Z[:3:-1] / Z.mean())
    squares = np.sort(c)[::-1] ** 2
    assert value(found, "isotropy.eigengap") == approx((1 - squares[1:] / squares[:-1]).min())


def test_log_domain_does_not_overflow():
    """exp(1e6) has no float; its logarithm has."""
    found = measured(np.diag([1e6, 2e6, 4e6]))
    assert "its natural logarithm is -4e+06" in found["isotropy.i1"].undefined
    assert 0 < value(found, "isotropy.i2") < math.inf


# Frequency --------------------------------------------------------------------------------------

M = 50
POPULAR = np.arange(M) < 10


def with_counts(W, counts=None, kind="counts"):
    counts = np.arange(M, 0, -1.0) if counts is None else counts
    matrix = Matrix(np.asarray(W), frequency=Frequency(kind, np.asarray(counts), "made"))
    return analyze_matrix(matrix, 7, sections=("frequency",))


def test_separated_classes():
    """Frequent and rare rows on either side of a plane, and on axes of their own."""
    noise = 0.01 * gaussian(34, n=M)
    found = with_counts(noise + np.where(POPULAR[:, None], np.eye(6)[0], np.eye(6)[1]))
    assert value(found, "frequency.probe_auc") == 1
    assert value(found, "frequency.neighbor_rarity_rare") == 1
    # A frequent token has nine popular neighbors, the tenth must be rare.
    assert value(found, "frequency.neighbor_rarity_popular") == approx(0.1)


def test_rows_that_know_nothing_of_frequency():
    found = with_counts(gaussian(35, n=M))
    scalar = found["frequency.probe_auc"]
    assert abs(scalar.value - 0.5) < 4 * scalar.standard_error
    assert scalar.reference == 0.5
    assert found["frequency.neighbor_rarity_rare"].reference == approx(39 / 49)
    assert found["frequency.neighbor_rarity_popular"].reference == approx(40 / 49)


@pytest.mark.parametrize("direction", [1, -1])
def test_norm_that_follows_frequency(direction):
    counts = np.arange(M, 0, -1.0)
    lengths = counts**direction
    unit = gaussian(36, n=M)
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    found = with_counts(unit * lengths[:, None])
    assert value(found, "frequency.norm_spearman") == approx(direction)
    median = np.median(lengths[POPULAR]) / np.median(lengths[~POPULAR])
    assert value(found, "frequency.norm_ratio") == approx(median)
    assert found["frequency.norm_ratio"].reference == 1.0


def test_rank_order_is_read_as_order():
    """Row 0 is the most frequent; log count is then −ln rank."""
    found = with_counts(gaussian(40, n=M), kind="rank")
    np.testing.assert_allclose(found["frequency.rank"].values, np.log10(np.arange(1, M + 1)))
    assert [row[2] for row in found["frequency.by_frequency_bin"].rows][:2] == ["1 – 5", "6 – 10"]


@pytest.mark.parametrize(
    ("above", "tied", "frequent"),
    [(18, 5, 18), (17, 5, 22), (18, 4, 22), (18, 6, None)],
)
def test_tokens_of_the_count_at_the_edge_are_in_one_class(above, tied, frequent):
    """The share is 20 of 100; ties of more than a fourth of them leave no classes."""
    counts = np.repeat([9.0, 5.0, 1.0], [above, tied, 100 - above - tied])
    W, order = gaussian(41, n=100), np.random.default_rng(1).permutation(100)
    found = with_counts(W, counts), with_counts(W[order], counts[order])
    if frequent is None:
        assert {one["frequency.norm_ratio"].value for one in found} == {None}
        assert all(one.popular is None for one in found)
        return
    popular = counts >= 5 if frequent > above else counts > 5
    assert popular.sum() == frequent
    assert found[0].popular.tolist() == popular.tolist()
    assert found[1].popular.tolist() == popular[order].tolist()
    assert value(found[0], "frequency.norm_ratio") == approx(
        np.median(np.linalg.norm(W[popular], axis=1))
        / np.median(np.linalg.norm(W[~popular], axis=1))
    )


@pytest.mark.parametrize(("occurring", "known"), [(9, False), (10, True)])
def test_tokens_that_never_occur_are_not_frequent(occurring, known):
    """Else the lowest rows would be, and an end of the matrix would be told from the rest."""
    counts = np.where(np.arange(M) >= M - occurring, np.arange(M) + 1.0, 0.0)
    found = with_counts(gaussian(41, n=M), counts)
    for name in ("norm_ratio", "probe_auc", "neighbor_rarity_rare", "neighbor_rarity_popular"):
        assert (found[f"frequency.{name}"].value is not None) is known
    assert found["frequency.norm_spearman"].value is not None
    assert (found.popular is not None) is known


@pytest.mark.parametrize("pairs", [None, 500])
def test_pairs_at_right_angles_are_not_positive(pairs):
    """Of rows along four axes, a fourth of the pairs has cosine 1, and the others exactly 0."""
    axes = np.arange(400) % 4
    found = analyze_matrix(Matrix(np.eye(4)[axes]), 7, sections=("cosine",), pairs=pairs)
    share = value(found, "cosine.positive_share")
    assert share == approx(99 / 399) if pairs is None else 0.1 < share < 0.4
    assert np.abs(found.by_half("cosine.positive_share") - 0.25).max() < 0.1
