"""What is drawn stands for what there is: uniform pairs, scaled tables of hubs, third moments."""

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.values import Table
from embgeo.metrics.pairs import draw_pairs
from embgeo.numerics.hubness import SampledPlaces, share_among_equals
from embgeo.numerics.sampling import generator, sample_rows
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
    # Equal rows share the places that a query has left for them.
    rows[:12] = rows[7]
    cosines = np.round(naive.unit(rows)[queries] @ naive.unit(rows).T, 9)
    nearer = (cosines > cosines[:, [0]]).sum(axis=1) - (queries >= 12)  # but for itself
    left = np.maximum(10 - nearer, 0)
    shares = np.minimum(left / (12 - (queries < 12)), 1.0)
    found = embgeo.analyze(rows, sections=["tokens"], reference=False)["tokens.hubs"]
    assert isinstance(found, Table)
    assert 0.0 < shares.mean() < 1.0
    for row, _, count in found.rows:
        assert count == pytest.approx(10.0 * shares[queries != row].sum(), abs=1e-3)


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
