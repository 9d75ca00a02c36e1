"""What float32 cannot tell apart is settled in float64: near ties, cosines above 1, wide pairs."""

import numpy as np
import numpy.typing as npt
import pytest

from embgeo.numerics.hubness import draw_order
from embgeo.stats import (
    AngleTo,
    CloserRows,
    NearestDistances,
    PairHistogram,
    PairSample,
    TopNeighbors,
)
from embgeo.stats.backend.backend import HOST
from embgeo.stats.block import Block
from embgeo.stats.nearest import MOST, bound_rounding, find_candidates

Rows = npt.NDArray[np.float64]
Single = npt.NDArray[np.float32]
D = 64


def near_rows(count: int, step: float, seed: int = 0) -> Single:
    """Rows around one direction, whose cosines to it differ by about `step`."""
    g = np.random.default_rng(seed)
    axis = np.ones(D) / np.sqrt(D)
    away = g.standard_normal((count, D))
    away -= np.outer(away @ axis, axis)
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    angle = np.arccos(0.9 - step * g.permutation(count))
    rows = np.cos(angle)[:, None] * axis + np.sin(angle)[:, None] * away
    return (rows * np.exp(g.standard_normal((count, 1)))).astype(np.float32)


def unit(rows: npt.NDArray[np.floating]) -> Rows:
    wide = rows.astype(np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))


def blocks(rows: Single, size: int) -> list[Block]:
    index = np.arange(len(rows))
    return [Block(index[at : at + size], rows[at : at + size]) for at in range(0, len(rows), size)]


@pytest.mark.parametrize("size", [60, 13])
def test_neighbors_that_float32_cannot_order_are_those_of_float64(size: int) -> None:
    """Cosines 2e-9 apart: products in float32 are off by 1e-7."""
    rows = near_rows(60, 2e-9)
    query = np.ones((1, D)) / np.sqrt(D)
    found = TopNeighbors("all", np.array([-1]), query, 5)
    for block in blocks(rows, size):
        found.update(block)
    cosines = (unit(rows) @ query.T).ravel()
    order = np.argsort(-np.round(cosines * 2**40), kind="stable")[:5]
    assert found.neighbors[0].tolist() == order.tolist()
    np.testing.assert_allclose(found.cosines[0], cosines[order], atol=1e-12)


@pytest.mark.parametrize("size", [60, 13])
def test_equal_rows_are_ordered_by_chance(size: int) -> None:
    """The same rows in any order and in blocks of any size, and other rows for each query."""
    rows = np.repeat(near_rows(1, 1.0), 60, axis=0)
    rows[::2] *= 3.0  # of any length
    index = np.arange(60)
    found = TopNeighbors("all", index, unit(rows), 5)
    for block in reversed(blocks(rows, size)):
        found.update(block)
    drawn = draw_order(index[:, None], index)
    drawn[index, index] = np.iinfo(np.int64).max
    assert found.neighbors.tolist() == np.argsort(drawn, axis=1)[:, :5].tolist()
    # Each row is a neighbor of five others on average, with a standard deviation of 2.1.
    counts = np.bincount(found.neighbors.ravel(), minlength=60)
    assert counts.max() < 5 + 5 * 2.2


def test_a_rank_does_not_count_what_is_equally_near() -> None:
    """Of rows nearer than the third: two; a copy of the third is not nearer."""
    rows = near_rows(6, 1e-3, seed=1)
    query = np.ones((1, D)) / np.sqrt(D)
    rows = rows[np.argsort(-(unit(rows) @ query.T).ravel())]
    rows = np.vstack([rows, 2.0 * rows[2:3], query.astype(np.float32)])
    cosine = unit(rows)[2] @ query[0]
    found = CloserRows(np.array([7]), query, np.array([2]), np.array([cosine]))
    found.update(Block(np.arange(8), rows))
    assert found.closer.tolist() == [2]


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_distances_that_products_lose_are_those_of_differences(offset: float) -> None:
    """1e-4 apart at a distance of 100 from the origin, where float32 squares are off by 1e-3."""
    g = np.random.default_rng(2)
    rows = (offset + 1e-4 * g.standard_normal((40, D))).astype(np.float32)
    shift = rows.astype(np.float64).mean(axis=0) if offset else None
    found = NearestDistances(
        np.array([0]), rows[:1].astype(np.float64), np.ones(40, dtype=bool), 3, shift
    )
    for block in blocks(rows, 11):
        found.update(block)
    exact = np.linalg.norm(rows.astype(np.float64) - rows[0], axis=1)
    np.testing.assert_allclose(found.distances[0], np.sort(exact)[1:4], rtol=1e-9)
    assert found.neighbors[0].tolist() == np.argsort(exact)[1:4].tolist()


def test_the_slack_is_twice_the_rounding_of_a_product() -> None:
    for dtype in (np.float32, np.float64):
        eps = np.finfo(dtype).eps
        rows = np.zeros((1, 16), dtype=dtype)
        assert bound_rounding(HOST, rows) == pytest.approx(8 * eps * 4, rel=1e-12)
    g = np.random.default_rng(3)
    pairs = (g.standard_normal((2, 2000, D)) + 1.0).astype(np.float32)
    pairs /= np.linalg.norm(pairs, axis=2, keepdims=True)
    lost = np.vecdot(*pairs) - np.vecdot(*pairs.astype(np.float64))
    assert np.abs(lost).max() < bound_rounding(HOST, pairs[0]) / 2


def test_candidates_are_all_within_the_slack_unless_they_are_many() -> None:
    scores = np.zeros((2, 100))
    scores[0, [3, 50]] = 1.0, 0.9
    scores[1, 7] = 0.5
    found = find_candidates(HOST, scores, np.array([0.95, 0.5]), 0.05, 1)
    assert found is not None
    assert list(zip(*(part.tolist() for part in found), strict=True)) == [(0, 3), (0, 50), (1, 7)]
    tight = find_candidates(HOST, scores, np.array([0.95, 0.5]), 0.04, 1)
    assert tight is not None
    assert tight[1].tolist() == [3, 7]
    for many, is_found in ((MOST, True), (MOST + 1, False)):
        scores = np.zeros((1, 100))
        scores[0, :many] = 1.0
        assert (find_candidates(HOST, scores, np.array([0.5]), 0.0, 1) is not None) is is_found


def test_cosines_above_one_are_one() -> None:
    sample = PairSample()
    sample.add(np.array([1.0 + 1e-12, -1.0 - 1e-12, 0.5]))
    assert sample.values().tolist() == [-1.0, 0.5, 1.0]
    counted = PairHistogram()
    counted.add(np.array([1.0 + 1e-6, -1.0 - 1e-6, 0.5, 0.0]))
    assert (counted.lowest, counted.highest) == (-1.0, 1.0)
    assert (counted.n, counted.positive) == (4, 2)
    ends = counted.counts[0], counted.counts[-1]
    assert ends == (1, 1)
    row = near_rows(1, 1.0)
    same = PairHistogram()
    block = Block(np.arange(9), np.repeat(row, 9, axis=0))
    same.add_pairs(block, block)
    assert same.n == 36
    assert same.highest <= 1.0


def test_the_widest_pair_is_settled_in_float64() -> None:
    """Cosines 1e-9 apart in float32: the lowest of the block is one of them, to all digits."""
    rows = np.vstack([np.ones((1, D)), -near_rows(30, 1e-9)]).astype(np.float32)
    counted = PairHistogram()
    for left, right in ((0, 0), (0, 1), (1, 1)):
        parts = blocks(rows, 16)
        counted.add_pairs(parts[left], parts[right] if left != right else parts[left])
    exact = (unit(rows) @ unit(rows).T)[np.triu_indices(31, 1)]
    assert counted.lowest == pytest.approx(exact.min(), abs=2e-7)
    assert np.abs(counted.lowest - exact).min() < 1e-15
    assert (counted.n, counted.positive) == (465, 435)


def test_angles_are_those_of_rows_of_any_norm() -> None:
    """Also near 0 and 180 degrees, where an arccos would lose digits."""
    g = np.random.default_rng(4)
    axis = unit(g.standard_normal((1, 8)))[0]
    away = g.standard_normal((6, 8))
    away -= np.outer(away @ axis, axis)
    away = unit(away)
    angle = np.array([1e-9, 0.3, 1.0, 2.0, 3.0, np.pi - 1e-9])
    rows = np.cos(angle)[:, None] * axis + np.sin(angle)[:, None] * away
    norms = np.array([1e-3, 0.5, 2.0, 7.0, 1e3, 40.0])[:, None]
    found = AngleTo("axis", axis)
    found.update(Block(np.arange(6), norms * rows))
    np.testing.assert_allclose(found.values(), angle, rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize("norm", [1e-32, 1e30])
def test_unit_rows_in_float32_survive_norms_that_cannot_be_inverted(norm: float) -> None:
    rows = near_rows(5, 1e-2)
    rows[2] *= np.float32(norm)
    found = Block(np.arange(5), rows).stored_unit
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, unit(rows), rtol=1e-5, atol=1e-7)
