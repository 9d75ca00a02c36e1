"""The law of every statistic: however the rows are cut and joined, the answer is the same."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import embgeo.stats
from embgeo.stats import (
    STATISTICS,
    AngleAfterRemoval,
    AngleTo,
    Census,
    CloserRows,
    DistanceTo,
    GroupSquares,
    GroupSums,
    HalfAngles,
    LogPartition,
    Moments,
    NearestDistances,
    Norms,
    OutputNorms,
    PairedSums,
    PairHistogram,
    PairSample,
    Projection2,
    RowHashes,
    RowSums,
    StackedQR,
    SumWithout,
    TopNeighbors,
    TreatedRows,
    UnitProjections,
    WeightedSum,
)
from embgeo.stats.block import Block
from tests.support import naive
from tests.support.matrices import gaussian, narrow_cone, rng

N, D = 40, 6
DIRECTIONS = np.linalg.qr(rng(1).standard_normal((D, D)))[0]
QUERIES = naive.unit(gaussian(21, n=5))
OUTPUT = gaussian(22, n=N, d=3)
LABELS = np.arange(N) % 4 - 1
GROUPED = np.arange(N) % 16
WEIGHTS = np.arange(N) % 5 / N

ROWS = {
    "plain": lambda: gaussian(23, n=N),
    "negative": lambda: -np.abs(gaussian(24, n=N)),
    "narrow cone": lambda: narrow_cone()[:N],
    "large norms": lambda: gaussian(25, n=N) * 1e4,
    "duplicates": lambda: np.repeat(gaussian(26, n=N // 4), 4, axis=0),
    "one row": lambda: gaussian(27, n=1),
    "empty": lambda: np.zeros((0, D)),
}


def near(query, other):
    return CloserRows(
        np.array([0, 1]), QUERIES[:2], np.array([query, other]), np.array([0.1, -0.2])
    )


#: Every statistic as its metrics make it, in each of its modes; fresh ones on every call.
MAKERS = {
    "angles after removal": (
        AngleAfterRemoval,
        lambda: AngleAfterRemoval("mean", DIRECTIONS[0], DIRECTIONS[1]),
    ),
    "angles": (AngleTo, lambda: AngleTo("mean", DIRECTIONS[0])),
    "census": (Census, Census),
    "closer rows": (CloserRows, lambda: near(3, 7)),
    "sums by group": (GroupSums, lambda: GroupSums("bin", LABELS, 3, D)),
    "log Z": (LogPartition, lambda: LogPartition("eigenvectors", DIRECTIONS, scales=(1.0, 0.1))),
    "log Z, by group": (
        LogPartition,
        lambda: LogPartition("groups", DIRECTIONS, unit_rows=True, labels=GROUPED, groups=16),
    ),
    "log Z, by group, bounded": (
        LogPartition,
        lambda: LogPartition(
            "groups, bounded", DIRECTIONS, bound=16.0, unit_rows=True, labels=GROUPED, groups=16
        ),
    ),
    "squares by group": (
        GroupSquares,
        lambda: GroupSquares("centered", DIRECTIONS, GROUPED, np.full(D, 0.3)),
    ),
    "angles by half": (
        HalfAngles,
        lambda: HalfAngles(naive.unit(gaussian(28, n=30)), GROUPED),
    ),
    "log Z, bounded": (
        LogPartition,
        lambda: LogPartition("bounded", DIRECTIONS, scales=(1.0, 1e-4), bound=16.0),
    ),
    "log Z, plain": (
        LogPartition,
        lambda: LogPartition("plain", DIRECTIONS, scales=(1.0, 0.1), bound=300.0, unit_rows=True),
    ),
    "log Z, unit rows": (
        LogPartition,
        lambda: LogPartition("unit rows", DIRECTIONS, scales=(1.0,), unit_rows=True),
    ),
    "log Z, unit rows, bounded": (
        LogPartition,
        lambda: LogPartition(
            "unit rows, bounded", DIRECTIONS, scales=(1e-4,), bound=16.0, unit_rows=True
        ),
    ),
    "distances": (DistanceTo, lambda: DistanceTo("mean", np.full(D, 0.3))),
    "moments": (Moments, lambda: Moments(D)),
    "moments, unit": (Moments, lambda: Moments(D, of="unit")),
    "moments, few rows": (Moments, lambda: Moments(D, few=True)),
    "moments, few rows, unit": (Moments, lambda: Moments(D, of="unit", few=True)),
    "weighted sum": (WeightedSum, lambda: WeightedSum("counts", WEIGHTS, D)),
    "norms": (Norms, Norms),
    "output norms": (OutputNorms, OutputNorms),
    "pair histogram": (PairHistogram, PairHistogram),
    "pair sample": (PairSample, PairSample),
    "projection": (Projection2, lambda: Projection2("svd2", DIRECTIONS[:, :2], np.full(D, 0.1))),
    "sum without a coordinate": (SumWithout, lambda: SumWithout(3, D)),
    "row sums": (RowSums, lambda: RowSums(D)),
    "treated rows": (
        TreatedRows,
        lambda: TreatedRows(
            "",
            np.full(D, 0.1),
            False,
            DIRECTIONS[:, :4],
            (1, 2),
            np.arange(1.0, D + 1.0),
            DIRECTIONS,
            np.arange(1.0, D + 1.0),
        ),
    ),
    "treated unit rows": (
        TreatedRows,
        lambda: TreatedRows("unit", np.full(D, 0.1), True, DIRECTIONS[:, :4], (1, 3), np.ones(D)),
    ),
    "unit projections": (UnitProjections, lambda: UnitProjections("axes", DIRECTIONS[:, :4])),
    "row hashes": (RowHashes, lambda: RowHashes(D)),
    "QR": (StackedQR, lambda: StackedQR("uncentered", D)),
    "QR, centered": (StackedQR, lambda: StackedQR("centered", D, shift=np.full(D, 0.2))),
    "QR, unit": (StackedQR, lambda: StackedQR("unit", D, of="unit")),
    "QR, paired": (StackedQR, lambda: StackedQR("input|output", D + 3, of="paired")),
    "nearest distances": (
        NearestDistances,
        lambda: NearestDistances(np.arange(5), 2.0 * QUERIES, np.arange(N) != 11, 3),
    ),
    "paired sums": (PairedSums, lambda: PairedSums(D // 2)),
    "paired sums, unequal widths": (PairedSums, lambda: PairedSums(D - 2)),
    "neighbors on one side": (
        TopNeighbors,
        lambda: TopNeighbors("after", np.arange(5), naive.unit(QUERIES[:, 2:]), 3, slice(2, None)),
    ),
    "neighbors": (TopNeighbors, lambda: TopNeighbors("queries", np.arange(5), QUERIES, 3)),
}


def in_turn(name, rows):
    """Every statistic on a plain matrix, on a narrow cone and on no rows; on the others in turn."""
    always = rows in ("plain", "narrow cone", "empty")
    return always or (list(MAKERS).index(name) + list(ROWS).index(rows)) % 3 == 0


every = pytest.mark.parametrize("name", MAKERS)
LAWS = []


def law(check):
    """A check of a statistic that is fed some rows, by `test_every_law_holds`."""
    LAWS.append(check)
    return check


def feed(statistic, index, rows):
    """Rows as the passes bring them: in blocks, or as what is derived from the rows."""
    if getattr(statistic, "bounded", False):
        rows = rows * 1e-4  # the largest of all rows keeps within what was promised
    if isinstance(statistic, Census):
        every = np.ones(int(index.max(initial=0)) + 1, dtype=bool)
        statistic.sift(index, rows.max(axis=1), rows.min(axis=1), every)
    elif isinstance(statistic, PairSample | PairHistogram):
        statistic.add(Block(index, rows).unit @ QUERIES.T)
    else:
        statistic.update(Block(index, rows, lambda: OUTPUT[index]))


def seen(name, index, rows):
    statistic = MAKERS[name][1]()
    feed(statistic, index, rows)
    return statistic


def answers(statistic):
    """What the metrics read from a statistic."""
    match statistic:
        case Census():
            return [statistic.zero, statistic.nonfinite, statistic.largest]
        case Moments():
            return [statistic.n, statistic.mean, statistic.scatter, statistic.gram()]
        case GroupSums():
            return [statistic.n, statistic.sums]
        case LogPartition():
            found = [statistic.log_z(scale) for scale in statistic.scales]
            found += [statistic.log_z_of_unit_rows()] if statistic.unit_rows else []
            by_half = statistic.groups > 1
            return [*found, *([statistic.log_z_of_unit_rows_by_half()] if by_half else [])]
        case GroupSquares():
            return [statistic.n, statistic.sums, statistic.squares, statistic.largest]
        case HalfAngles():
            return [statistic.counts]
        case SumWithout():
            return [statistic.n, statistic.total]
        case PairHistogram():
            s = statistic
            return [s.n, s.positive, s.lowest, s.highest, s.counts]
        case StackedQR():
            # R is unique up to the signs of its rows; RᵀR is the Gram matrix of the rows.
            return [statistic.n, statistic.r.T @ statistic.r]
        case CloserRows():
            return [statistic.closer]
        case TopNeighbors():
            return [statistic.neighbors, statistic.cosines]
        case NearestDistances():
            return [statistic.neighbors, statistic.distances]
        case PairedSums():
            s = statistic
            return [s.first, s.second, s.product, s.difference, s.cosines]
        case PairSample():
            return [statistic.values()]
        case WeightedSum():
            return [statistic.total]
        case RowSums():
            return [statistic.n, statistic.rows, statistic.unit]
        case _:
            return [statistic.index(), statistic.values()]


def same(a, b):
    for x, y in zip(answers(a), answers(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape
        if x.dtype.kind in "iu" and y.dtype.kind in "iu":
            np.testing.assert_array_equal(x, y)
        else:
            finite = np.abs(y[np.isfinite(y)])
            scale = finite.max() if finite.size else 0.0
            digits = 1e6 if x.dtype == np.float32 else 1.0
            np.testing.assert_allclose(x, y, rtol=1e-12 * digits, atol=1e-13 * digits * scale)


def cut(rows, size):
    W = ROWS[rows]()
    index = np.arange(len(W))
    return [(index[i : i + size], W[i : i + size]) for i in range(0, max(len(W), 1), size)]


def whole(name, rows):
    return seen(name, *cut(rows, N)[0])


@law
def fold_equals_one_big_block(name, rows):
    for size in (7, 1, N):
        folded = MAKERS[name][1]()
        for index, block in cut(rows, size):
            feed(folded, index, block)
        same(folded, whole(name, rows))


@law
def tree_merge_equals_one_big_block(name, rows):
    for size in (7, 1, N):
        leaves = [seen(name, index, block) for index, block in cut(rows, size)]
        while len(leaves) > 1:
            for left, right in zip(leaves[::2], leaves[1::2], strict=False):
                left.merge(right)
            leaves = leaves[::2]
        same(leaves[0], whole(name, rows))


@law
def parts_may_be_joined_in_any_order(name, rows):
    leaves = [seen(name, index, block) for index, block in cut(rows, 7)]
    joined = leaves.pop()
    for leaf in leaves:
        joined.merge(leaf)
    same(joined, whole(name, rows))


@law
def a_fresh_statistic_is_the_identity(name, rows):
    left = MAKERS[name][1]()
    left.merge(whole(name, rows))
    same(left, whole(name, rows))
    right = whole(name, rows)
    right.merge(MAKERS[name][1]())
    same(right, whole(name, rows))


@law
def merging_is_associative(name, rows):
    parts = cut(rows, 14) * 3
    a, b, c = (seen(name, *part) for part in parts[:3])
    left, right = copy.deepcopy(a), copy.deepcopy(b)
    left.merge(b)
    left.merge(c)
    right.merge(c)
    a.merge(right)
    same(left, a)


@law
def merging_leaves_the_other_as_it_was(name, rows):
    index, block = cut(rows, N)[0]
    mine, other = seen(name, index[:1], block[:1]), seen(name, index[1:], block[1:])
    before = copy.deepcopy(other)
    mine.merge(other)
    feed(mine, index[:1], block[:1])
    same(other, before)


@law
def state_pickles(name, rows):
    """A statistic sent to another machine goes on there as if it had stayed."""
    parts = cut(rows, 14)
    sent = pickle.loads(pickle.dumps(seen(name, *parts[0])))
    same(sent, seen(name, *parts[0]))
    for index, block in parts[1:]:
        feed(sent, index, block)
    same(sent, whole(name, rows))


@every
def test_keys_are_equal_exactly_for_equal_statistics(name):
    _, make = MAKERS[name]
    assert make().key == make().key
    hash(make().key)

    def what(name: str) -> str:  # how it is kept is no part of it
        return name.replace(", few rows", "")

    others = [other().key for n, (_, other) in MAKERS.items() if what(n) != what(name)]
    assert make().key not in others


@law
def a_blank_copy_is_the_identity_and_a_statistic_of_its_own(name, rows):
    used = whole(name, rows)
    blank = used.blank()
    assert blank.key == used.key
    blank.merge(whole(name, rows))
    for index, block in cut(rows, 7):
        feed(blank, index, block)
    same(used, whole(name, rows))
    same(used.blank(), MAKERS[name][1]())


@every
@pytest.mark.slow
def test_every_law_holds(name):
    for check in LAWS:
        for rows in ROWS:
            if in_turn(name, rows):
                check(name, rows)


@every
def test_the_state_is_what_clear_sets(name):
    statistic = MAKERS[name][1]()
    kept = {k: v for k, v in vars(statistic).items() if k not in statistic.STATE}
    for attribute in statistic.STATE:
        delattr(statistic, attribute)
    statistic.clear()
    assert set(vars(statistic)) == set(kept) | set(statistic.STATE)
    assert all(vars(statistic)[k] is v for k, v in kept.items())


def test_every_statistic_is_tested():
    assert {kind for kind, _ in MAKERS.values()} == set(STATISTICS)


def test_every_statistic_is_listed():
    """A class that can be merged, in whatever module of the package, stands in STATISTICS."""
    folder = Path(embgeo.stats.__file__).parent
    mergeable = set()
    for path in folder.glob("[!_]*.py"):
        module = __import__(f"embgeo.stats.{path.stem}", fromlist=["_"])
        mergeable |= {
            kind
            for kind in vars(module).values()
            if isinstance(kind, type)
            and kind.__module__ == module.__name__
            and hasattr(kind, "merge")
            and not getattr(kind, "_is_protocol", False)
        }
    bases = {base for kind in STATISTICS for base in kind.__mro__[1:]}
    assert mergeable - bases == set(STATISTICS)


def test_moments_keep_what_a_narrow_cone_would_lose():
    """Regression: Σx² − nμ² in float32 lost 5% of the variance at mean/std 1e3."""
    W = narrow_cone(length=1000.0)
    moments = Moments(D)
    for i in range(len(W)):
        moments.update(Block(np.array([i]), W[i : i + 1]))
    centered = W - W.mean(axis=0)
    np.testing.assert_allclose(moments.scatter, centered.T @ centered, rtol=1e-9, atol=1e-9)
