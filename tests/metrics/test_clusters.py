"""Clusters and wide groups of directions: how many, from which share on, and what is none."""

import numpy as np
import numpy.typing as npt
import pytest

import embgeo
from embgeo.metrics import clusters
from embgeo.numerics.clusters import join_without_gap
from embgeo.numerics.sampling import generator
from tests.support import naive
from tests.support.sampling import each_value

Rows = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


def wide(count: int, inside: float, between: float, n: int = 600, d: int = 128) -> Rows:
    """Unit rows in groups with these mean cosines inside and between them."""
    g = np.random.default_rng(count)
    own = naive.unit(g.standard_normal((n, d)))
    common, *frame = np.linalg.qr(g.standard_normal((d, count + 1)))[0].T
    side = np.array(frame)[np.arange(n) % count]
    return naive.unit(
        np.sqrt(1 - inside) * own + np.sqrt(between) * common + np.sqrt(inside - between) * side
    )


def find(unit: Rows) -> Labels:
    return clusters.find_loose_groups(unit, generator(0, "groups"))


@each_value
@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize("between", [0.0, 0.2])
def test_wide_groups_are_counted(count: int, between: float) -> None:
    found = find(wide(count, 0.5, between))
    assert len(np.unique(found)) == count
    planted = np.arange(600) % count
    pairs = {(int(a), int(b)) for a, b in zip(planted, found, strict=True)}
    assert len(pairs) == count


def test_one_cone_has_no_groups() -> None:
    for inside in (0.0, 0.3, 0.6):
        assert find(wide(1, inside, inside)).max() == 0


def test_parts_of_a_small_sphere_are_no_groups() -> None:
    for d in (2, 3, 4):
        unit = naive.unit(np.random.default_rng(d).standard_normal((600, d)))
        assert find(unit).max() == 0
        turned = unit @ np.linalg.qr(np.random.default_rng(9).standard_normal((64, d)))[0].T
        assert find(turned).max() == 0


def trace(name: str) -> Rows:
    """Smooth curves: an arc, a ring, position tables, and a walk; no part of them is a cluster."""
    t, g = np.arange(1000.0), np.random.default_rng(4)
    if name in ("sinusoidal", "rotary"):
        angles = t[:, None] / 10_000.0 ** (np.arange(32) / 32)
        pairs = np.stack([np.sin(angles), np.cos(angles)], axis=2)
        return (
            np.concatenate([pairs[..., 0], pairs[..., 1]], axis=1)
            if name[0] == "s"
            else (pairs.reshape(1000, 64))
        )
    if name == "walk":
        return np.cumsum(g.standard_normal((1000, 16)), axis=0) + 10.0
    angle = t * (2.5 if name == "arc" else 2.0 * np.pi) / 1000.0
    return np.c_[np.cos(angle), np.sin(angle), np.zeros((1000, 6))] + 0.01 * g.standard_normal(
        (1000, 8)
    )


@pytest.mark.slow
def test_a_curve_has_clusters_only_with_a_gap() -> None:
    """An arc seen on a chord has two modes; without its middle it is two clusters."""
    for name in ("arc", "ring", "sinusoidal", "rotary", "walk"):
        rows = trace(name)
        found = embgeo.analyze(rows, sections=["cosine"], pairs=10, reference=False)
        assert found["cosine.clusters"] == 1
        if name == "arc":
            cut = embgeo.analyze(
                np.delete(rows, slice(300, 700), axis=0),
                sections=["cosine"],
                pairs=10,
                reference=False,
            )
            assert cut["cosine.clusters"] == 2


def test_clusters_without_a_gap_are_joined() -> None:
    """Two pieces of a line that are cut, or set apart by thirty times what neighbors are."""
    for gap, count in ((0.0, 1), (0.01, 1), (0.3, 2)):
        at = np.arange(200) / 100.0
        at[100:] += gap
        labels = np.arange(200) // 50
        labels[100:] += 3  # any numbers
        joined = join_without_gap(np.abs(at[:, None] - at), labels)
        assert len(np.unique(joined)) == count
        assert set(joined) == set(range(count))
        assert joined[0] == joined[99]
        assert bool(joined[99] == joined[100]) is (count == 1)


def test_rows_belong_to_the_nearest_center_however_long_it_is() -> None:
    """A narrow group has a longer center than a wide one; cosines with it alone would mislead."""
    g = np.random.default_rng(0)
    side = np.arange(600) % 2
    inside = np.where(side == 0, 0.9, 0.25)[:, None]
    frame = np.linalg.qr(g.standard_normal((128, 2)))[0].T
    own = naive.unit(g.standard_normal((600, 128)))
    found = find(naive.unit(np.sqrt(1 - inside) * own + np.sqrt(inside) * frame[side]))
    assert len(np.unique(found)) == 2
    assert len({(int(a), int(b)) for a, b in zip(side, found, strict=True)}) == 2


def test_the_two_ends_of_many_dimensions_are_no_groups() -> None:
    """Their pairs have a mean cosine below −0.1: a line, not groups around a center."""
    g = np.random.default_rng(0)
    rows = g.standard_normal((600, 64)) / 8
    rows[:, 0] += np.where(np.arange(600) % 2, 0.8, -0.8)
    assert find(naive.unit(rows)).max() == 0


def test_too_few_rows_and_equal_rows_have_no_groups() -> None:
    unit = wide(2, 0.5, 0.2)
    assert find(unit[:199]).max() == 0
    assert find(unit[:200]).max() == 1
    assert find(np.repeat(unit[:100], 6, axis=0)).max() == 0


def test_rows_are_apart_only_with_two_modes_between_every_two_centers() -> None:
    g = np.random.default_rng(1)
    labels = np.arange(300) % 3
    centers = 3.0 * np.eye(3)
    rows = centers[labels] + 0.3 * g.standard_normal((300, 3))
    assert clusters.are_apart(rows, labels, centers)
    joined = rows.copy()
    joined[labels == 2] += centers[1] - centers[2]
    assert not clusters.are_apart(joined, labels, centers)
    assert not clusters.are_apart(rows[:2], labels[:2], centers)


def tight(sizes: list[int], d: int = 64) -> Rows:
    g = np.random.default_rng(2)
    axes = np.linalg.qr(g.standard_normal((d, len(sizes))))[0].T
    return np.repeat(axes, sizes, axis=0) + 0.02 * g.standard_normal((sum(sizes), d))


def test_clusters_of_less_than_a_twentieth_make_nothing() -> None:
    for sizes, count in (
        ([300, 300], 2),
        ([571, 29], 1),
        ([569, 31], 2),
        ([300, 270, 30], 3),
        ([300, 271, 29], 2),
    ):
        found = embgeo.analyze(tight(sizes), sections=["cosine"], pairs=10, reference=False)
        assert found["cosine.clusters"] == count
        assert (found["cosine.mean_between_clusters"].value is None) is (count == 1)


def test_numbers_that_are_tried_are_found() -> None:
    for count, expected in ((2, 2), (3, 3), (12, 12), (16, 16), (17, 17), (20, 20)):
        unit = naive.unit(tight([8] * count))
        labels, _ = clusters.choose_clusters(unit, generator(0, "centers"))
        assert len(np.unique(labels)) == expected


@pytest.mark.slow
def test_many_clusters_have_smaller_even_shares() -> None:
    """Of more than 20 the number is near, as not every one is tried."""
    for count, slack in ((12, 0), (20, 0), (32, 6)):
        found = embgeo.analyze(tight([20] * count), sections=["cosine"], pairs=10, reference=False)
        assert abs(found["cosine.clusters"].value - count) <= slack
        assert found["cosine.silhouette"].value > 0.7
        assert abs(found["cosine.mean_between_clusters"].value) < 0.02


def test_twenty_rows_are_clustered() -> None:
    for n, d, known in ((19, 4, False), (20, 4, True), (20, 1, False), (20, 2, True)):
        rows = np.random.default_rng(3).standard_normal((n, d))
        found = embgeo.analyze(rows, sections=["cosine"], pairs=10, reference=False)
        assert (found["cosine.silhouette"].value is not None) is known
