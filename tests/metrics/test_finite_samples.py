"""What is drawn stands for what there is: uniform pairs, scaled tables of hubs, third moments."""

from functools import cache
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.numbers import Z_95
from embgeo.core.values import Scalar, Table
from embgeo.metrics import dimension
from embgeo.metrics.dimension import find_bound, find_error, measure_two_nn, sum_dependent
from embgeo.metrics.hubs import chance_of_twin
from embgeo.metrics.neighbors import influence_of_tokens
from embgeo.metrics.pairs import draw_pairs
from embgeo.numerics.hubness import SampledPlaces, share_among_equals
from embgeo.numerics.sampling import generator, sample_rows
from embgeo.numerics.scores import error_of, mean_influence
from tests.support import naive


def test_every_ordered_pair_is_drawn_alike() -> None:
    """Of four rows each of the twelve pairs, within five deviations; no row with itself."""
    facts: Any = SimpleNamespace(m=4, generator=lambda purpose: generator(0, purpose))
    first, second = draw_pairs(facts, 12_000)
    counts = np.zeros((4, 4), dtype=int)
    np.add.at(counts, (first, second), 1)
    assert np.diagonal(counts).tolist() == [0] * 4
    off = counts[~np.eye(4, dtype=bool)]
    assert np.abs(off - 1000).max() < 5 * np.sqrt(1000 * 11 / 12)


def test_a_table_of_hubs_counts_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every tenth row as a query each neighbor counts ten times."""
    rows = np.random.default_rng(0).standard_normal((500, 40)) + 0.8
    rows[7] = rows.mean(axis=0)
    monkeypatch.setattr("embgeo.metrics.neighbors.ALL_ROWS", 400)
    monkeypatch.setattr("embgeo.metrics.neighbors.HUB_QUERIES", 50)
    found = embgeo.analyze(rows, sections=["tokens"], reference=False)["tokens.hubs"]
    assert isinstance(found, Table)
    queries = sample_rows(np.arange(500), 50, generator(0, "hubness"))
    cosines = naive.unit(rows) @ naive.unit(rows).T
    np.fill_diagonal(cosines, -np.inf)
    near = np.argsort(-cosines[queries], axis=1)[:, :10]
    counts = 10.0 * np.bincount(near.ravel(), minlength=500)
    shown = np.argsort(-counts, kind="stable")[:10]
    assert [(row[0], row[2]) for row in found.rows] == [(int(i), counts[i]) for i in shown]
    assert shown[0] == 7


def literal_moments(places: SampledPlaces) -> tuple[float, float]:
    """Second and third moments of N over rows, by sums over different queries."""
    m, n = len(places.group_of), len(places.own)
    share = np.zeros((n, m))
    for query, group, part in zip(places.query, places.group, places.share, strict=True):
        share[query, places.group_of == group] = part
    share[np.arange(n), places.own] = 0.0
    two, three = m * (m - 1) / (n * (n - 1)), m * (m - 1) * (m - 2) / (n * (n - 1) * (n - 2))
    squares = m / n * (share**2).sum(axis=0)
    cubes = m / n * (share**3).sum(axis=0)
    for a, b in permutations(range(n), 2):
        squares += two * share[a] * share[b]
        cubes += 3 * two * share[a] ** 2 * share[b]
    for a, b, c in permutations(range(n), 3):
        cubes += three * share[a] * share[b] * share[c]
    return float(squares.mean()), float(cubes.mean())


def test_the_third_moment_of_hubness_is_that_of_different_queries() -> None:
    near = np.random.default_rng(1).integers(1, 30, (9, 4))
    near = (np.arange(9)[:, None] + near) % 30
    group = np.arange(30)
    group[20:24] = 20
    group = np.unique(group, return_inverse=True)[1]
    places = share_among_equals(near, np.arange(9), group)
    k = 4
    squares, cubes = literal_moments(places)
    expected = (cubes - 3 * k * squares + 2 * k**3) / (squares - k**2) ** 1.5
    assert places.skewness(np.ones(9, dtype=bool), k) == pytest.approx(expected, rel=1e-9)


def test_chance_of_a_near_duplicate_is_a_share_of_the_sphere() -> None:
    """In the plane the share 2θ/2π within an angle θ to either side."""
    angle = np.arccos(0.999)
    assert chance_of_twin(2, 2) == pytest.approx(angle / np.pi, rel=1e-9)
    assert chance_of_twin(11, 2) == pytest.approx(1 - (1 - angle / np.pi) ** 10, rel=1e-9)
    assert chance_of_twin(2, 3) == pytest.approx((1 - 0.999) / 2, rel=1e-9)
    assert chance_of_twin(3, 1) == pytest.approx(0.75)


@pytest.mark.parametrize("m", [6, 24])
def test_two_rows_nearest_to_each_other_are_one_draw_of_the_dimension(m: int) -> None:
    """Queries that share a row are dependent; the error of all rows is not one of sampling."""
    near = np.array([1.0, 1.0, 2.0, 2.0, 2.5, 3.0])
    ratios = np.array([1.5, 2.0, 1.2, 1.1, 3.0, 1.3])
    facts: Any = SimpleNamespace(m=m, kept=np.arange(m))
    nearest = np.array([[1, 5], [0, 4], [3, 1], [2, 5], [0, 3], [2, 1]])
    # Third neighbors with which the ratios do not change with the number of rows.
    distances = np.stack([near, near * ratios, near * ratios**1.5], axis=1)
    found, influence = measure_two_nn(facts, nearest, distances, np.arange(6), m)
    assert isinstance(found, Scalar)
    logs = np.log(ratios)
    value = 5 / logs.sum()
    assert found.value == pytest.approx(value, rel=1e-12)
    parts = -value * (logs / logs.mean() - 1) / np.sqrt(6 * 5)
    np.testing.assert_allclose(influence.values, parts.astype(np.float32))
    rows = [{i, int(row)} for i, row in enumerate(nearest[:, 0])]
    variance = sum(
        parts[i] * parts[j] for i in range(6) for j in range(6) if i == j or rows[i] & rows[j]
    )
    pairs = parts[:4].reshape(2, 2).sum(axis=1)
    tangent = np.sqrt(max(variance, pairs @ pairs + parts[4:] @ parts[4:]))
    error = tangent / (1 - (Z_95 * tangent / value) ** 2)
    assert found.population_error == pytest.approx(error, rel=1e-12)
    drawn = error if m == 6 else np.sqrt((parts @ parts) * (1 - 6 / m))
    assert found.standard_error == pytest.approx(drawn, rel=1e-12)
    assert found.error_kind == ("population" if m == 6 else "monte_carlo")
    assert found.sample == (
        "all 6 queries against 6 rows" if m == 6 else "6 queries against 24 rows"
    )


@cache
def gathered() -> tuple[FloatArray, IntArray, FloatArray]:
    """Rows around fixed centers, some of which have one or two; their ratios without each row."""
    g = np.random.default_rng(1)
    centers = g.standard_normal((100, 3))
    rows = centers[g.integers(0, 100, 300)] + 0.001 * g.standard_normal((300, 3))
    distances = np.linalg.norm(rows[:, None] - rows, axis=2)
    np.fill_diagonal(distances, np.inf)
    order = np.argsort(distances, axis=1)[:, :3]
    return np.take_along_axis(distances, order, 1), order[:, :2], distances


def test_what_the_number_of_rows_binds_is_that_of_ratios_without_each_row() -> None:
    nearest_three, nearest, distances = gathered()
    ratios = np.log(nearest_three[:, 1] / nearest_three[:, 0])
    lost = []
    for row in range(300):
        left = np.delete(np.delete(distances, row, 0), row, 1)
        near = np.sort(left, axis=1)[:, :2]
        lost.append(ratios.sum() - np.log(near[:, 1] / near[:, 0]).sum() - ratios.mean())
    changes = 2 * np.log(nearest_three[:, 2] / nearest_three[:, 1]) - ratios
    assert changes.mean() == pytest.approx(-np.mean(lost), rel=1e-9)
    shared = np.column_stack([np.arange(300), nearest[:, 0]])
    error = np.sqrt(sum_dependent(mean_influence(changes), shared))
    expected = abs(np.mean(lost)) - Z_95 * error
    assert expected > 0.1
    assert find_bound(changes, shared) == pytest.approx((abs(np.mean(lost)), expected), rel=1e-9)
    away = changes - changes.mean()
    for shift, bound in ((0.9, 0.0), (1.1, 0.1), (-1.1, 0.1)):
        _, found = find_bound(away + shift * Z_95 * error, shared)
        assert found == pytest.approx(bound * Z_95 * error, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("rows", [300, 900])
def test_what_the_number_of_rows_binds_is_no_part_of_the_error_of_the_dimension(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    nearest_three, nearest, _ = gathered()
    facts: Any = SimpleNamespace(m=rows, kept=np.arange(rows))
    asked = np.arange(300)
    found, influence = measure_two_nn(facts, nearest, nearest_three, asked, rows)
    assert isinstance(found, Scalar)
    assert found.value is not None
    ratios = np.log(nearest_three[:, 1] / nearest_three[:, 0])
    parts = -found.value / ratios.mean() * mean_influence(ratios)
    np.testing.assert_allclose(influence.values, parts.astype(np.float32))
    three = np.column_stack([asked, nearest])
    joined = np.sqrt(sum_dependent(parts, three[:, :2]))
    changes = 2 * np.log(nearest_three[:, 2] / nearest_three[:, 1]) - ratios
    change, bound = np.array(find_bound(changes, three[:, :2])) * found.value / ratios.mean()
    sets = list(map(set, three.tolist()))
    share = np.array([[bool(one & two) for two in sets] for one in sets])
    tangent = np.sqrt(parts @ share @ parts - bound**2 / rows)
    if rows == 900:
        assert joined < tangent
        tangent = joined
    assert 1.2 * error_of(parts) < tangent <= (0.97 if rows == 300 else 1.0) * joined
    error = tangent / (1 - (Z_95 * tangent / found.value) ** 2)
    assert found.population_error == pytest.approx(error, rel=1e-12)
    unsure = (change**2 - bound**2) / (rows * tangent**2)
    assert unsure > 0.05
    for limit, said in ((0.99 * unsure, ("conservative_error",)), (1.01 * unsure, ())):
        monkeypatch.setattr(dimension, "UNSURE", limit)
        (found, _) = measure_two_nn(facts, nearest, nearest_three, asked, rows)
        assert isinstance(found, Scalar)
        assert found.caveats == said


@pytest.mark.parametrize(("bound", "expected"), [(0.0, 6.0), (1.0, 6.0), (3.0, 5.0), (9.0, 4.0)])
def test_what_is_bound_leaves_at_least_the_variance_of_independent_ratios(
    bound: float, expected: float
) -> None:
    """Four queries in closed form: alone 4, with the nearest row 6, with both rows 8."""
    parts = np.ones(4)
    shared = np.array([[0, 10, 20], [1, 10, 21], [2, 12, 22], [3, 13, 22]])
    found = find_error(parts, shared, bound)
    assert found == pytest.approx(np.sqrt(expected))
    # Of pairs of queries with opposed ratios it is less, and stays so.
    opposed, pairs = np.array([1.0, -1.0, 1.0, -1.0]), np.array([[0, 1, 9], [1, 0, 9]] * 2)
    pairs[2:] += 20
    assert find_error(opposed, pairs, bound) == 0.0


def test_parts_of_neighbors_are_what_their_absence_changes() -> None:
    """The next in line takes the place, also row 0; a place without a next one does not change."""
    is_rare = np.array([True, False, True, False, True, False])
    near = np.array([[1, 2, 0], [3, 4, 5], [0, 5, -1]])  # two neighbors, and the next
    queries, n, k = np.array([3, 0, 2]), 3, 2
    facts: Any = SimpleNamespace(m=6, kept=np.arange(6))
    parts, noise, error = influence_of_tokens(facts, queries, near, is_rare, 0.25)
    expected, signed, squares = np.zeros(6), np.zeros(6), 0.0
    share = np.array([is_rare[row[:k]].mean() for row in near])
    expected[queries] = (share - share.mean()) / np.sqrt(n * (n - 1))
    for place, row in enumerate(near):
        for token in row[:k]:
            following = float(is_rare[row[k]]) if row[k] >= 0 else float(is_rare[token])
            moved = (float(is_rare[token]) - following) / (k * n)
            expected[token] += moved
            signed[token] += (-1) ** place * moved
            squares += moved**2
    expected -= 0.25 * (is_rare - is_rare.mean()) / 6
    np.testing.assert_allclose(parts, expected, atol=1e-15)
    np.testing.assert_allclose(noise, signed, atol=1e-15)
    assert error == pytest.approx(np.sqrt(max(0.0, expected @ expected - squares)), rel=1e-12)


def test_equal_groups_of_duplicates_are_in_the_order_of_their_first_rows() -> None:
    rows = np.random.default_rng(0).standard_normal((30, 4))
    rows[9], rows[2], rows[20:23] = rows[0], rows[1], rows[19]
    found = embgeo.analyze(rows, sections=["tokens"], reference=False)
    table = next(one for one in found.tables if one.name == "tokens.duplicates")
    assert [row[1] for row in table.rows] == ["19, 20, 21, 22", "0, 9", "1, 2"]
