"""Decisions at their limits, and references in the hard cases."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import embgeo
from embgeo.core.quantities.isotropy import Z
from embgeo.core.values import Histogram, Scalar, Table
from embgeo.metrics import isotropy
from embgeo.metrics.coordinates import measure_variances
from embgeo.metrics.cosine import round_range
from embgeo.metrics.isotropy import bound_exponents, make_z_series
from embgeo.metrics.pairs import summarize_histogram, summarize_sample
from embgeo.metrics.shared import SharedStatistics
from embgeo.stats import PairHistogram, PairSample, RowHashes
from embgeo.stats.log_partition import AVERAGED_BOUND, SINGLE_BOUND
from tests.support import naive
from tests.support.matrices import from_spectrum, gaussian


def scalar(found: embgeo.Analysis, name: str) -> Scalar:
    value = found[name]
    assert isinstance(value, Scalar)
    return value


def table(found: embgeo.Analysis, name: str) -> Table:
    value = found[name]
    assert isinstance(value, Table)
    return value


def test_rows_of_equal_hashes_are_compared_entry_by_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    W = gaussian(3, 13, 4)
    W[[5, 9]] = W[1]
    W[7] = W[2]
    plain = embgeo.analyze(W, sections=["suspects"], reference=False)
    unit = naive.unit(np.unique(W, axis=0))
    literal = ((unit @ unit.T).sum() - 10) / (10 * 9)
    assert scalar(plain, "suspects.mean_cosine_others").value == pytest.approx(literal, abs=1e-12)
    zeros = np.zeros(13, dtype=np.uint64)
    monkeypatch.setattr(RowHashes, "values", lambda _: zeros)
    collided = embgeo.analyze(W, sections=["suspects"], reference=False)
    for found in (plain, collided):
        (own,) = found.suspects
        assert (own.reason, own.rows.tolist()) == ("duplicate", [5, 7, 9])


@pytest.mark.parametrize(("times", "is_long"), [(99.9, False), (100.1, True)])
def test_a_mean_row_is_long_from_a_hundred_times_the_spread(times: float, is_long: bool) -> None:
    moments = SimpleNamespace(n=50, mean=np.array([0.0, 3.0 * times]), trace=lambda: 50 * 9.0)
    assert SharedStatistics.mean_is_long.func(SimpleNamespace(moments=moments)) is is_long


def test_curves_over_directions_begin_at_1_and_never_overflow() -> None:
    series = make_z_series(Z, np.array([[800.0, 700.0], [799.0, -800.0]]))
    assert series.x.tolist() == [1.0, 2.0]
    expected = np.array([1.0, np.exp(-100.0)]), np.array([np.exp(-1.0), 0.0])
    mean = sum(part.sum() for part in expected) / 4
    for found, part in zip(series.y.values(), expected, strict=True):
        np.testing.assert_allclose(found, part / mean, rtol=1e-12)


def test_histograms_of_cosines_have_round_limits() -> None:
    for low, high, expected in (
        (0.5, 0.52, (0.499, 0.521)),  # a margin of a twentieth of the range
        (0.5, 0.5, (0.5 - 1e-9, 0.5 + 1e-9)),
        (0.51, 0.57, (0.5, 0.6)),  # twentieths
        (-0.999, 0.98, (-1.0, 1.0)),
    ):
        sample = PairSample()
        sample.add(np.array([low, (low + high) / 2.0, high]))
        histogram = summarize_sample(sample, "all", exact=True)[-1]
        assert isinstance(histogram, Histogram)
        assert (histogram.edges[0], histogram.edges[-1]) == pytest.approx(expected, abs=1e-12)
        assert (histogram.counts.sum(), len(histogram.counts)) == (3, 80)


def test_ranges_are_widened_to_round_numbers() -> None:
    for low, high, most, expected in (
        (0.23, 1.77, np.inf, (0.0, 2.0)),  # steps of a half
        (12.3, 17.6, 180.0, (12.0, 18.0)),
        (101.0, 178.0, 180.0, (100.0, 180.0)),
        (0.0, 0.0, 180.0, (-5e-10, 5e-10)),
    ):
        found = round_range(low, high, 0.0, most)
        assert found == pytest.approx(expected, abs=1e-10)
        assert found[0] < found[1]


def test_a_range_of_one_number_has_a_width() -> None:
    for at, step in ((1.0, 5e-10), (7.3e5, 5e-5), (1e6, 5e-4)):
        low, high = round_range(at, at, 0.0, np.inf)
        assert low <= at <= high
        assert 0.9 * step < high - low < 2.1 * step


def test_all_pairs_by_their_bins_are_nearly_those_by_single_cosines() -> None:
    cosines = np.random.default_rng(0).uniform(-0.3, 0.8, 2_000)
    single, binned = PairSample(), PairHistogram()
    single.add(cosines)
    binned.add(cosines)
    exact = summarize_sample(single, "all", exact=True)
    for one, other in zip(exact, summarize_histogram(binned, "all"), strict=True):
        if isinstance(one, Scalar):
            assert isinstance(other, Scalar)
            assert (one.quantity, one.known) == (other.quantity, other.known)
            assert other.value == pytest.approx(one.value, abs=1e-9)
        if isinstance(one, Histogram):
            assert isinstance(other, Histogram)
            np.testing.assert_array_equal(other.edges, one.edges)
            assert np.abs(other.counts - one.counts).sum() <= 4


def test_curves_that_fall_by_orders_are_drawn_in_logarithms() -> None:
    found = embgeo.analyze(
        gaussian(6, 60, 5),
        counts=np.arange(1, 61),
        sections=["spectrum", "frequency", "isotropy"],
        reference=False,
    )
    assert {one.name for one in found.series if one.log_y} == {
        "spectrum.singular_values",
        "spectrum.decay_fit",
    }


def test_wide_coordinates() -> None:
    for variance, expected in (
        ([25.0, 1.0, 1.0], [25.0, 1, 25 / 27]),
        ([24.9, 1.0, 1.0], [24.9, 0, 0.0]),
        ([30.0, 60.0, 1.0, 1.0, 1.0], [60.0, 2, 90 / 93]),
        # They stand apart from the next, which may be wide, too; else none is named.
        ([31.0, 60.0, 10.0, 1.0, 1.0, 1.0, 1.0], [60.0, 2, 91 / 105]),
        ([30.0, 60.0, 10.0, 1.0, 1.0, 1.0, 1.0], [60.0, 0, 0.0]),
        ([100.0, 33.0, 26.0, 20.0, *[1.0] * 5], [100.0, 1, 100 / 184]),
        ([1.0, 2.3e-16, 1e-17], [1.0 / 2.3e-16, 1, 1.0]),
        ([1.0, 2.2e-16, 1e-17], [None, None, None]),
    ):
        for found, value in zip(measure_variances(np.array(variance), ""), expected, strict=True):
            assert found.value == (value if value is None else pytest.approx(value, rel=1e-9))


@pytest.mark.parametrize("d", [1, 2])
def test_two_coordinates_can_be_compared(d: int) -> None:
    found = embgeo.analyze(
        gaussian(7, 60, d), sections=["coordinates", "isotropy"], reference=False
    )
    for name in ("coordinates.mean_cosine_without_1", "isotropy.isoscore"):
        assert (scalar(found, name).value is not None) is (d == 2)


def test_the_rank_of_a_row_counts_from_1() -> None:
    found = embgeo.analyze(
        gaussian(5, 40, 3), rank_order=True, sections=["frequency"], reference=False
    )
    listed = table(found, "frequency.neighbors")
    assert listed.columns[:3] == ("token", "class", "rank")
    assert all(token == f"row {rank - 1}" for token, _, rank, *_ in listed.rows if rank)
    assert len(listed.rows) == 8
    bins = table(found, "frequency.by_frequency_bin").rows
    assert [row[2] for row in bins][:2] == ["1 – 4", "5 – 8"]


@pytest.mark.parametrize("rank_order", [False, True])
def test_a_count_that_is_not_known_is_not_shown(rank_order: bool) -> None:
    found = embgeo.analyze(
        gaussian(4, 20, 3), rank_order=rank_order, sections=["tokens"], reference=False
    )
    for name in ("smallest_norms", "largest_norms", "nearest_to_mean"):
        assert {row[2] for row in table(found, f"tokens.{name}").rows} <= {None}
    counted = embgeo.analyze(
        gaussian(4, 20, 3), counts=np.arange(20), sections=["tokens"], reference=False
    )
    for row, _, count, _ in table(counted, "tokens.smallest_norms").rows:
        assert count == row


def test_the_rank_tolerance_is_that_of_the_longer_side() -> None:
    """σ_d between min(M, d)·2⁻⁵² and max(M, d)·2⁻⁵²."""
    m, d = 20_000, 5
    sigma = np.array([1.0, 1.0, 1.0, 1.0, np.sqrt(m * d) * 2.0**-52])
    W = from_spectrum(sigma, 6, n=m)
    found = embgeo.analyze(W, sections=["spectrum"], reference=False)
    assert scalar(found, "spectrum.numerical_rank").value == d - 1
    assert scalar(found, "spectrum.condition_number").value is None


@pytest.mark.slow
def test_a_weak_common_direction_is_one() -> None:
    """Rows in opposite pairs, with a mean direction far above rounding."""
    for length in (1e-3, 1e-6, 1e-9):
        rows = np.random.default_rng(7).standard_normal((300, 4))
        rows[:, 0] = 0.0
        W = np.vstack([rows, -rows])
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        W[:, 0] = length
        found = embgeo.analyze(W, sections=["cosine"], reference=False)
        angle = scalar(found, "cosine.cone_half_angle_median")
        assert angle.value == pytest.approx(90.0 - np.degrees(length), abs=1e-6)
        assert scalar(found, "cosine.max_dimension_share").value == pytest.approx(1.0, abs=1e-6)


def test_exponents_are_bounded_unless_rows_are_short() -> None:
    for length, bound in ((20.0, 20.0), (0.26, 0.26), (0.24, np.inf)):
        shared = SimpleNamespace(norms=np.full(100, length))
        assert bound_exponents(shared) == bound  # type: ignore[arg-type]


@pytest.mark.parametrize(("spread", "widest"), [(1.99, AVERAGED_BOUND), (2.01, SINGLE_BOUND)])
@pytest.mark.parametrize(("length", "mean"), [(2.0, 3.0), (2.0, 0.0), (0.25, 1.0)])
def test_rows_in_float32_are_within_its_bound_at_either_scale_and_around_the_mean(
    length: float, mean: float, spread: float, widest: float
) -> None:
    """Where many rows are far out along a direction, the bound is that of each exponent."""
    scale = max(1.0, 1.0 / length)
    longest = min(widest / scale, widest - mean)
    moments = SimpleNamespace(n=100, mean=np.array([mean, 0.0]), trace=lambda: 100.0)
    pairs = SimpleNamespace(vectors=np.eye(2), values=np.array([100 * (spread / scale) ** 2, 0.0]))
    shared = SimpleNamespace(
        norms=np.full(100, length),
        moments=moments,
        eigen=pairs,
        eigen_centered=pairs,
        rotation=None,
        single=np.eye(2, dtype=np.float32),
        all_rows_equal="",
        request_singular_values=lambda _: [],
    )
    facts = SimpleNamespace(m=100, kept_groups=None, groups=None)
    measurement = SimpleNamespace(shared=shared, facts=facts)
    (partition,) = isotropy.second(measurement)  # type: ignore[arg-type]
    assert partition.longest_single == longest  # type: ignore[attr-defined]


def test_few_rows_alone_in_a_section() -> None:
    """The scatter is decomposed twice; the first time it must not be released yet."""
    rows = gaussian(93, 10, 30)
    alone = embgeo.analyze(rows, sections=["isotropy"], reference=False)
    among = embgeo.analyze(rows, sections=["spectrum", "isotropy"], reference=False)
    assert alone["isotropy.i1"] == among["isotropy.i1"]
