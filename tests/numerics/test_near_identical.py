"""Near-identical rows: the fast search against the cosines of all pairs, and where it says no."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from embgeo.numerics import near_identical
from embgeo.numerics.near_identical import (
    LEAST_BUDGET,
    NEAR,
    draw_axes,
    explain_ordinary,
    find_near_groups,
    unit,
)
from tests.support.matrices import rng


def search(rows):
    projected = (unit(rows) @ draw_axes(rows.shape[1])).astype(np.float32)
    return find_near_groups(lambda at: rows[at], projected, rows.shape[1])


def naive_groups(rows):
    """All cosines, then connected components."""
    u = unit(rows)
    near = u @ u.T > NEAR
    labels = connected_components(coo_array(near), directed=False)[1]
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return {tuple(group.tolist()) for group in members if len(group) > 1}


def groups_of(found):
    return {tuple(found.rows[found.group == number].tolist()) for number in np.unique(found.group)}


def at_cosine(row, cosine, random):
    noise = random.standard_normal(len(row))
    noise -= row * (noise @ row) / (row @ row)
    noise *= np.linalg.norm(row) / np.linalg.norm(noise)
    return cosine * row + np.sqrt(1.0 - cosine**2) * noise


def with_faults(n, d, cone, pairs=40, clump=60):
    """Return rows of a cone with a clump, and pairs on both sides of the limit."""
    random = rng(7)
    rows = random.standard_normal((n, d)) * np.exp(0.2 * random.standard_normal((n, 1)))
    rows += np.sqrt(cone / (1.0 - cone)) * np.ones(d)
    center = rows[0]
    for at in range(1, clump):
        rows[at] = at_cosine(center, 1.0 - random.uniform(1e-5, 4e-4), random)
    for pair in range(pairs):
        at = clump + 2 * pair
        cosine = NEAR + (2e-4 if pair % 2 else -2e-4)
        rows[at + 1] = 3.0 * at_cosine(rows[at], cosine, random)
    return rows


def test_it_finds_the_groups_that_all_cosines_give():
    for cone in (0.0, 0.5, 0.9):
        rows = with_faults(1500, 48, cone)
        found = search(rows)
        assert found.complete
        assert groups_of(found) == naive_groups(rows)
        assert len(np.unique(found.group)) == 21


@pytest.mark.parametrize("planted", [0, 3, 4])
def test_the_nearest_of_points_with_a_density_are_no_group(planted):
    """Features of points in three dimensions: up to three are far nearer than others by chance."""
    random = rng(11)
    points = random.standard_normal((3000, 3))
    rows = np.cos(2.5 * points @ random.standard_normal((3, 256)) + random.uniform(0, 6.28, 256))
    if planted:
        rows[:planted] = rows[0] + 0.01 * random.standard_normal((planted, 256))
    assert groups_of(search(rows)) == ({(0, 1, 2, 3)} if planted == 4 else set())
    assert len(naive_groups(rows)) > 1


@pytest.mark.parametrize(
    "limits", [{"MOST_CANDIDATES": 5, "LEADERS": 8}, {"MOST_PAIRS": 10, "MOST_LISTED": 16}]
)
def test_a_clump_goes_to_leaders_and_a_crowded_tree_is_not_listed(limits, monkeypatch):
    for name, most in limits.items():
        monkeypatch.setattr(near_identical, name, most)
    rows = with_faults(900, 48, 0.0)
    assert groups_of(search(rows)) == naive_groups(rows)


def test_without_a_budget_it_says_that_there_may_be_more(monkeypatch):
    monkeypatch.setattr(near_identical, "MOST_CANDIDATES", 5)
    monkeypatch.setattr(near_identical, "LEADERS", 1)
    monkeypatch.setattr(near_identical, "LEAST_BUDGET", 1.0)
    random = rng(3)
    rows = random.standard_normal((600, 4)) + 20.0
    assert not search(rows).complete
    assert LEAST_BUDGET > 1.0


def test_equal_and_scaled_rows_of_one_cell_are_joined():
    random = rng(4)
    rows = random.standard_normal((4000, 32))
    rows[::2] = rows[0] * np.exp(random.standard_normal((2000, 1)))
    (group,) = groups_of(search(rows))
    assert list(group) == list(range(0, 4000, 2))


def sinusoids():
    angles = 0.1 * np.arange(1500)[:, None] / 10_000 ** (np.arange(64) / 64)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


CONTINUOUS = {
    "a plane": lambda: rng(1).standard_normal((1000, 2)) @ rng(2).standard_normal((2, 20)),
    "three dimensions": lambda: rng(1).standard_normal((1000, 3)) @ np.eye(3, 20),
    "positions": sinusoids,
}


def test_rows_that_are_near_each_other_everywhere_are_no_groups():
    for make in CONTINUOUS.values():
        rows = make()
        assert naive_groups(rows)
        assert not len(search(rows).rows)


def test_few_groups_beside_rows_that_are_near_each_other_stay_ordinary():
    rows = sinusoids()
    apart = rng(5).standard_normal((1500, 128))
    apart[1] = 1.001 * apart[0] + 1e-3 * apart[2]
    assert groups_of(search(apart)) == {(0, 1)}
    assert not len(search(np.concatenate([rows, apart])).rows)


def test_it_says_where_near_rows_are_ordinary():
    for mean_cosine, n, d, is_ordinary in (
        (0.985, 50_000, 768, False),
        (0.99, 50_000, 768, True),
        (0.0, 50_000, 10, False),
        (0.0, 50_000, 5, True),
        (0.0, 60, 4, False),
        (0.0, 100, 4, True),
        (0.0, 2, 1, True),
    ):
        assert bool(explain_ordinary(mean_cosine, n, d)) == is_ordinary


def test_the_largest_of_many_groups_and_some_others_are_looked_at(monkeypatch):
    monkeypatch.setattr(near_identical, "LOOKED_AT", 8)
    random = rng(6)
    rows = random.standard_normal((3000, 64))
    starts = range(0, 240, 20)
    for start in starts:  # four rows with others around them; the last four, of five, have none
        for at in range(start + 1, start + 4 + (start >= 160)):
            rows[at] = at_cosine(rows[start], 0.9999, random)
        for at in range(start + 10, start + 10 + 6 * (start < 160)):
            rows[at] = at_cosine(rows[start], 0.9975, random)
    found = [group[0] for group in groups_of(search(rows))]
    assert len(found) == 8
    assert set(starts[8:]) < set(found) < set(starts)


def test_large_and_tiny_rows_are_searched_alike():
    rows = with_faults(400, 32, 0.0, pairs=10, clump=10)
    expected = groups_of(search(rows))
    assert expected
    for factor in (1e-120, 1e120):
        assert groups_of(search(rows * factor)) == expected
