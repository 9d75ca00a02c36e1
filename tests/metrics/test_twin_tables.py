"""Curves, pictures, histograms, columns and tables beside their slow twins."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from embgeo.core.values import Histogram, Scalar
from tests.support import naive, naive_frequency
from tests.support.matrices import ASKED, NAMES, analysis, analyze_matrix, case
from tests.support.sampling import sample_cases
from tests.support.twins import twins

CHECKED: dict[str, object] = {}


def twin_of(name):
    """Register the function that checks the value of this name."""

    def register(check):
        CHECKED[name] = check
        return check

    return register


@pytest.mark.parametrize(("name", "block_rows"), sample_cases(product(NAMES, (1000, 23)), 3))
@pytest.mark.slow
def test_everything_but_scalars_equals_its_twin(name, block_rows):
    found = analysis(name, block_rows)
    for value in found.values():
        if not isinstance(value, Scalar):
            assert value.name in CHECKED, f"{value.name} has no twin in this file"
            CHECKED[value.name](value, case(name), found)


@pytest.mark.slow
def test_every_check_ran_at_least_once():
    assert set(CHECKED) == {
        value.name
        for name in NAMES
        for value in analysis(name).values()
        if not isinstance(value, Scalar)
    }


def close(a, b, absolute=1e-12, relative=1e-9):
    np.testing.assert_allclose(a, b, rtol=relative, atol=absolute)


def of_products(c):
    """Tolerance of what is computed from products in the precision of the stored entries."""
    return 1e-9 if c.matrix.working is np.float64 else 1e-6


# Spectrum and projections -----------------------------------------------------------------------


@twin_of("spectrum.singular_values")
def check_singular_values(series, c, _found):
    s = naive.singular_values(c.W)
    close(series.x, np.arange(1, len(s) + 1))
    close(series.y["uncentered"], s / s[0], 1e-14)
    close(series.y["centered"], naive.singular_values(naive.subtract_mean(c.W)) / s[0], 1e-14)


@twin_of("spectrum.decay")
def check_decay(table, c, _found):
    s = naive.singular_values(c.W)
    curve = s / s[0]
    if len(curve) < 4:
        assert table.rows == ()
        assert "not defined" in table.note
        return
    residuals = []
    for row, prior in zip(table.rows, ("exponential", "polynomial"), strict=True):
        title, c1, c2, gamma, residual, _ = row
        assert title.startswith(prior)
        if c1 is None:
            assert (c2, gamma) == (None, None)
            assert f"{prior}: not identifiable, the best fit lies at " in table.note
        else:
            close(residual, naive.decay_residual(prior, c1, c2, gamma, curve))
        assert residual <= naive.best_residual(prior, tuple(curve)) * (1 + 1e-6) + 1e-9
        residuals.append(residual)
    better = [row[-1] for row in table.rows]
    assert better.index("yes") == int(np.argmin(residuals))
    assert sorted(better) == ["", "yes"]


@twin_of("spectrum.decay_fit")
def check_decay_fit(series, c, found):
    s = naive.singular_values(c.W)
    curve = s / s[0]
    data, *fits = series.y.values()
    close(data, curve, 1e-14)
    for fit, row in zip(fits, found["spectrum.decay"].rows, strict=True):
        close(np.sqrt(np.mean((fit - curve) ** 2)), row[4])


@twin_of("projection.svd2")
def check_svd2(points, c, _found):
    close(points.xy, naive.svd2(c.W), 1e-9 * np.abs(c.W).max())
    s = naive.singular_values(c.W) ** 2
    close(points.share, s[:2] / s.sum())


@twin_of("projection.pca2")
def check_pca2(points, c, _found):
    close(points.xy, naive.pca2(c.W), 1e-9 * np.abs(c.W).max())
    s = naive.singular_values(naive.subtract_mean(c.W)) ** 2
    close(points.share, s[:2] / s.sum())


# Cosine -----------------------------------------------------------------------------------------


def counted(values, edges):
    """Numbers between edges; the last interval holds its right edge."""
    inside = [((values >= a) & (values < b)).sum() for a, b in pairwise(edges)]
    inside[-1] += (values == edges[-1]).sum()
    return np.array(inside)


def check_histogram(histogram: Histogram, values):
    """Same counts up to values that lie on an edge but for rounding."""
    assert histogram.counts.sum() == len(values)
    assert np.all(np.diff(histogram.edges) > 0)
    on_edge = np.abs(values[:, None] - histogram.edges).min(axis=1) <= 1e-12 * np.abs(values)
    off = np.abs(histogram.counts - counted(values, histogram.edges))
    assert off.sum() <= 2 * on_edge.sum()


@twin_of("cosine.histogram")
def check_cosine_histogram(histogram, c, _found):
    check_histogram(histogram, naive.pair_cosines(c.W))


@twin_of("cosine.cone_angles")
def check_cone_angles(histogram, c, _found):
    check_histogram(histogram, naive.angles_to_mean(c.W))


@twin_of("cosine.angle_to_mean")
def check_angle_to_mean(column, c, _found):
    close(column.values, naive.angles_to_mean(c.W))


@twin_of("cosine.top_dimensions")
def check_top_dimensions(table, c, _found):
    share = naive.mean_share_by_dimension(c.W)
    order = np.argsort(-share)[:10]
    assert [row[0] for row in table.rows] == order.tolist()
    close([row[1] for row in table.rows], share[order])


# Isotropy ---------------------------------------------------------------------------------------


def check_z_over_eigenvectors(series, c, W):
    V = naive.right_vectors(W)
    V = V * np.where(W.mean(axis=0) @ V >= 0, 1, -1)
    logs = np.array([naive.log_z(W, V), naive.log_z(W, -V)])
    Z = np.exp(logs - logs.max())
    close(np.array(list(series.y.values())), Z / Z.mean(), relative=of_products(c))


@twin_of("isotropy.z")
def check_z(series, c, _found):
    check_z_over_eigenvectors(series, c, c.W)


# Frequency --------------------------------------------------------------------------------------


@twin_of("frequency.by_frequency_bin")
def check_bins(table, c, _found):
    lengths, direction = naive.norms(c.W), naive.unit(c.W).sum(axis=0)
    direction /= np.linalg.norm(direction)
    bins = naive_frequency.frequency_bins(c.counts, c.kept)
    for number, (row, inside) in enumerate(zip(table.rows, bins, strict=True), start=1):
        counts = c.counts[inside]
        ends = f"{counts.min():,.0f} – {counts.max():,.0f}"
        assert row[:2] == (number, len(inside))
        assert row[2] == (ends if counts.min() < counts.max() else ends.split()[0])
        close(row[3], np.median(lengths[inside]))
        if len(inside) > 1:
            close(row[4], naive.mean_cosine(c.W[inside]))
        else:
            assert row[4] is None
        close(row[5], np.mean(naive.unit(c.W[inside]) @ direction))


def label(c, position):
    return c.matrix.tokens[c.kept[position]]


def check_rare(table, c, columns):
    """Exactly the cells of these columns that name rare tokens are marked."""
    assert set(table.rare) == {
        (i, j)
        for i, row in enumerate(table.rows)
        for j in columns
        if not c.popular[position(c, row[j])]
    }


def position(c, token):
    return c.kept.tolist().index(c.matrix.tokens.index(token))


@twin_of("frequency.neighbors")
def check_neighbors(table, c, _found):
    assert [row[0] for row in table.rows] == [token for token, _ in ASKED]
    for token, kind, count, *near in table.rows:
        at = position(c, token)
        assert kind == ("frequent" if c.popular[at] else "rare")
        assert count == c.counts[at]
        assert near == [label(c, j) for j in naive_frequency.nearest(c.W, at, 10)]
    check_rare(table, c, range(3, len(table.columns)))


@twin_of("frequency.neighbor_ranks")
def check_ranks(table, c, _found):
    asked = [(token, other) for token, others in ASKED for other in others]
    for (token, other), row in zip(asked, table.rows, strict=True):
        a, b = position(c, token), position(c, other)
        assert row[:2] == (label(c, a), label(c, b))
        close(row[2], naive.cosine_matrix(c.W)[a, b])
        assert row[3] == naive_frequency.rank_of(c.W, a, b)
    check_rare(table, c, (0, 1))


@twin_of("frequency.log_count")
def check_log_count(column, c, _found):
    close(column.values, np.log10(1 + c.counts))


# Subspace and tokens ----------------------------------------------------------------------------


@twin_of("subspace.principal_angles")
def check_angles(series, c, _found):
    close(series.y["principal angle"], naive.principal_angles(*c.paired), 1e-11)


@twin_of("tokens.norm")
def check_norm(column, c, _found):
    close(column.values, naive.norms(c.W))


@twin_of("tokens.norms")
def check_norms(histogram, c, _found):
    check_histogram(histogram, naive.norms(c.W))


def check_extremes(table, c, keys):
    """Ten rows of smallest key; ties (duplicates) by row number."""
    order = sorted(range(len(keys)), key=lambda i: (round(keys[i], 12), i))[:10]
    assert [row[0] for row in table.rows] == c.kept[order].tolist()
    for (row, token, count, value), at in zip(table.rows, order, strict=True):
        assert (token, count) == (c.matrix.tokens[row], c.counts[at])
        close(value, abs(keys[at]))


@twin_of("tokens.smallest_norms")
def check_smallest(table, c, _found):
    check_extremes(table, c, naive.norms(c.W))


@twin_of("tokens.largest_norms")
def check_largest(table, c, _found):
    check_extremes(table, c, -naive.norms(c.W))


@twin_of("tokens.nearest_to_mean")
def check_nearest(table, c, _found):
    check_extremes(table, c, naive.angles_to_mean(c.W))


@twin_of("tokens.hubs")
def check_hubs(table, c, _found):
    counts = naive.occurrences(c.W, 10)
    assert [row[2] for row in table.rows] == np.sort(counts.round(3))[::-1][:10].tolist()
    for row, token, count in table.rows:
        assert token == c.matrix.tokens[row]
        close(count, counts[c.kept.tolist().index(row)], 1e-3)


@twin_of("coordinates.largest")
def check_largest_coordinates(table, c, _found):
    energy, variance = naive.energy_of_coordinates(c.W), c.W.var(axis=0)
    mean = naive.unit(c.W).mean(axis=0)
    first = np.linalg.svd(c.W)[2][0]
    shares = [x / x.sum() for x in (energy, variance, mean**2, first**2)]
    order = np.argsort(-energy, kind="stable")[:10]
    assert [row[0] for row in table.rows] == order.tolist()
    close([row[1:] for row in table.rows], np.array(shares)[:, order].T, 10 * of_products(c))


@twin_of("hidden.weights")
def check_weights(series, c, found):
    """The certificate as a reader of the saved analysis checks it."""
    weights, states = series.y["weight"], c.matrix.hidden.data[series.x.astype(int)]
    assert weights.min() > 0
    close(weights.sum(), 1.0)
    distance = found["hidden.hull_distance"].value
    close(np.linalg.norm(weights @ states), distance, 1e-12 * np.abs(states).max())


@twin_of("hidden.direction")
def check_direction(series, c, found):
    v = series.y["v"]
    close(np.linalg.norm(v), 1.0)
    margin = -(c.matrix.hidden.data @ v).max()
    assert margin > 0
    close(margin, found["hidden.margin"].value)


# Every pair, above and below the number that is kept --------------------------------------------


@pytest.mark.parametrize(
    ("name", "kept_pairs"),
    sample_cases(
        product(["gaussian", "narrow cone", "two-sided", "dirty", "d = 2"], [0, 10**6]), 3
    ),
)
@pytest.mark.slow
def test_all_pairs_on_demand(name, kept_pairs, monkeypatch):
    """``pairs=None`` is exact, whether the cosines are kept or only counted."""
    monkeypatch.setattr("embgeo.metrics.pairs.KEPT_PAIRS", kept_pairs)
    found = analyze_matrix(case(name).matrix, 23, sections=("cosine",), pairs=None)
    exact = naive.pair_cosines(case(name).W)
    for key in ("positive_share", "cone_aperture"):
        scalar = found[f"cosine.{key}"]
        close(scalar.value, twins(name)[scalar.name])
        assert scalar.standard_error is None
    assert found["cosine.histogram"].counts.sum() == len(exact)
    if kept_pairs:
        check_histogram(found["cosine.histogram"], exact)


@pytest.mark.slow
def test_a_sample_of_pairs_as_large_as_all_is_all():
    few = analyze_matrix(case("gaussian").matrix, sections=("cosine",), pairs=1770)
    assert few["cosine.positive_share"].standard_error is None
    assert few["cosine.positive_share"].value == twins("gaussian")["cosine.positive_share"]
    assert analyze_matrix(case("gaussian").matrix, sections=("cosine",), pairs=1769)[
        "cosine.positive_share"
    ].standard_error
