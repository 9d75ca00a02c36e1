"""Groups of near-identical rows among all rows, without the cosines of all pairs.

With p = R·w/‖w‖ for a Gaussian R, ‖p − p'‖² is ‖ŵ − ŵ'‖² times χ² with one degree of freedom for
each axis, whatever the rows are: a tolerance of its quantile misses one pair in 10⁴ at the least
cosine, and fewer nearer ones. A tree on a few of these axes proposes pairs, all axes thin them out,
and exact cosines decide. A clump proposes too many pairs: its rows meet leaders instead, each of
which takes in the rows near it. A common mean cancels in the differences, so nothing is centered.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask, SingleArray, WorkingArray
from embgeo.numerics.sampling import generator

#: Least cosine of near-identical rows.
NEAR = 0.999
#: Length of the difference of two unit rows with that cosine.
RADIUS = float(np.sqrt(2.0 * (1.0 - NEAR)))
#: Number of random axes, and the share of the pairs at `NEAR` that their tolerance misses.
AXES, MISSED = 16, 1e-4
#: Axes of the tree: more part no clump, and cost more than they save.
TREE_AXES = range(4, 9)
#: Pairs that the tree may list, and candidates of a row beyond which leaders take it in.
MOST_PAIRS, MOST_CANDIDATES = 2_000_000, 50
#: Candidates of a row in the tree beyond which they are not listed.
MOST_LISTED = 500
#: Squared norms between these are good in float32.
SINGLE = (1e-30, 1e30)
#: Leaders at once, and entries of rows, or cosines with them, at once.
LEADERS, ENTRIES = 256, 2**22
#: Products that leaders may take: those of two Gram matrices, or 10¹¹.
LEAST_BUDGET = 2e11
#: Above this ratio of `RADIUS` to the usual distance, near-identical rows are ordinary.
ORDINARY = 0.3
#: Pairs that isotropic rows may have by chance.
BY_CHANCE = 0.05
#: Random rows, at least, and groups that are looked at for a gap around near-identical rows, and
#: the products and cosines that more random rows may take.
LOOKED_AT, LOOKED_PRODUCTS, LOOKED_COSINES = 128, 1e10, 1e8
#: Share and number of other rows within twice the radius of one another that are no chance.
ORDINARY_SHARE, FEW_NEAR = 0.1, 5
#: Groups up to this size may be the nearest of many rows by chance, where this many times as many
#: others are within twice the radius: of points with a density in k dimensions 2^k − 1 times.
SMALL, MORE_OTHERS = 3, 1.5

#: Reads rows by position, in float32 or float64.
Take = Callable[[IntArray], WorkingArray]


class NearGroups(NamedTuple):
    """Near-identical rows by position, ascending, and the number of the group of each."""

    rows: IntArray
    group: IntArray
    #: Whether all were looked for; if not, there are at least these.
    complete: bool


def explain_ordinary(mean_cosine: float, n: int, d: int) -> str:
    """Explain why near-identical rows are ordinary in a matrix; empty if they are not.

    A cap of the angle θ holds ½·I_{sin²θ}((d − 1)/2, ½) of the sphere.
    """
    from scipy.special import betainc

    cap = 0.5 * float(betainc((d - 1) / 2.0, 0.5, 1.0 - NEAR**2)) if d > 1 else 0.5
    if 0.5 * n * n * cap > BY_CHANCE:
        return f"chance makes rows near-identical in {d} dimension{'' if d == 1 else 's'}"
    if ORDINARY * np.sqrt(2.0 * max(1.0 - mean_cosine, 0.0)) < RADIUS:
        return f"near-identical rows are ordinary in a cone of mean cosine {mean_cosine:.4g}"
    return ""


def draw_axes(d: int) -> FloatArray:
    """Draw the random axes, shape (d, AXES); the same for all matrices of d columns."""
    return generator(0, "near-identical rows").standard_normal((d, AXES))


def find_near_groups(take: Take, projected: SingleArray, d: int) -> NearGroups:
    """Find groups of near-identical rows that stand apart from all others.

    Parameters
    ----------
    take : callable
        Reads rows by position, in float32 or float64, shape (k, d).
    projected : float32 array, shape (M, AXES)
        Unit rows times `draw_axes`; rows are distinct.
    d : int

    Returns
    -------
    NearGroups
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(projected)
    if n < 2:
        return NearGroups(np.zeros(0, np.int64), np.zeros(0, np.int64), complete=True)
    links, complete = link_rows(take, along_own_axes(projected), d)
    graph = coo_array((np.ones(len(links), np.int8), links.T), shape=(n, n))
    labels = connected_components(graph, directed=False)[1]
    sizes = np.bincount(labels)
    rows = np.flatnonzero(sizes[labels] > 1)
    order = np.argsort(labels[rows], kind="stable")
    groups = np.split(rows[order], np.cumsum(np.bincount(labels[rows])[np.unique(labels[rows])]))
    apart = keep_apart(take, [group for group in groups if len(group)], n, d)
    if not apart:
        return NearGroups(np.zeros(0, np.int64), np.zeros(0, np.int64), complete)
    found = np.concatenate(apart)
    number = np.repeat(np.arange(len(apart)), [len(group) for group in apart])
    order = np.argsort(found)
    return NearGroups(found[order], number[order], complete)


def along_own_axes(projected: SingleArray) -> SingleArray:
    """Rotate the projections so that most rows differ along the first axes.

    A near pair differs alike in all directions.
    """
    some = projected[:: max(1, len(projected) // 20_000)]
    axes = np.linalg.eigh(np.cov(some.T))[1][:, ::-1]
    return np.asarray(projected @ axes.astype(np.float32))


def quantile_of_chi2(freedom: int) -> float:
    """Return the value that χ² exceeds with probability `MISSED`."""
    # scipy.stats.chi2 gives the same number, after an import that takes a second.
    from scipy.special import gammaincinv

    return 2.0 * float(gammaincinv(freedom / 2, 1.0 - MISSED))


def link_rows(take: Take, q: SingleArray, d: int) -> tuple[IntArray, bool]:
    """Find pairs of near-identical rows that join each group, shape (k, 2), and if all are met."""
    from scipy.spatial import cKDTree

    n = len(q)
    links = []
    rows = np.arange(n)
    for shift in (0.0, 0.5):  # one row stands for all that nearly equal it
        pairs = join_cells(take, q, rows, shift, d)
        links.append(pairs)
        rows = np.setdiff1d(rows, pairs[:, 0], assume_unique=True)
    some = generator(0, "rows of a tree").choice(rows, min(1000, len(rows)), replace=False)
    expected = np.inf
    for axes in TREE_AXES:
        radius = RADIUS * math.sqrt(quantile_of_chi2(axes))
        tree = cKDTree(q[rows, :axes], leafsize=24)
        counts = tree.query_ball_point(q[some, :axes], radius, return_length=True)
        last, expected = expected, (float(counts.mean()) - 1.0) / 2.0 * len(rows)
        if expected < MOST_PAIRS or expected > 0.7 * last:
            break
    bound = RADIUS**2 * quantile_of_chi2(AXES)
    crowded = np.zeros(n, dtype=bool)
    if expected < 2 * MOST_PAIRS:
        pairs = rows[tree.query_pairs(radius, output_type="ndarray")].reshape(-1, 2)
    else:
        part = generator(0, "degrees").permutation(rows)[:: MOST_LISTED // 8]
        few = cKDTree(q[part, :axes]).query_ball_point(q[rows, :axes], radius, return_length=True)
        is_crowded = few * (MOST_LISTED // 8) > MOST_LISTED
        crowded[rows[is_crowded]] = True
        own = rows[~is_crowded]
        near = cKDTree(q[own, :axes]).sparse_distance_matrix(tree, radius, output_type="ndarray")
        pairs = np.stack([own[near["i"]], rows[near["j"]]], axis=1)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    pairs = pairs[near_in_all_axes(q, pairs, bound)]
    crowded |= np.bincount(pairs.ravel(), minlength=n) > MOST_CANDIDATES
    pairs = pairs[~crowded[pairs].all(axis=1)]
    links.append(pairs[have_cosine(take, pairs, NEAR, d)])
    met, complete = meet_leaders(take, np.flatnonzero(crowded), n, d)
    return np.concatenate([*links, met]), complete


def join_cells(take: Take, q: SingleArray, rows: IntArray, shift: float, d: int) -> IntArray:
    """Pair rows with the first one in their cell of all axes, if they nearly equal it.

    A hundredth of the distance 1 − cos keeps whatever is near the first row near the others.
    """
    cells = np.floor(q[rows] / RADIUS + shift).astype(np.int64)
    odd = generator(0, "cells").integers(1, 2**62, AXES) | 1
    key = (cells * odd).sum(axis=1)
    order = np.argsort(key, kind="stable")
    starts = np.r_[True, np.diff(key[order]) != 0]
    leader = order[np.flatnonzero(starts)[np.cumsum(starts) - 1]]
    pairs = np.stack([rows[order[~starts]], rows[leader[~starts]]], axis=1)
    return pairs[have_cosine(take, pairs, 1.0 - (1.0 - NEAR) / 100.0, d)]


def near_in_all_axes(q: SingleArray, pairs: IntArray, bound: float) -> Mask:
    near = np.zeros(len(pairs), dtype=bool)
    for at in range(0, len(pairs), 2**20):
        first, second = pairs[at : at + 2**20].T
        near[at : at + 2**20] = np.square(q[first] - q[second]).sum(axis=1) <= bound
    return near


def have_cosine(take: Take, pairs: IntArray, least: float, d: int) -> Mask:
    """Tell which pairs of rows have a larger cosine than this, exactly."""
    step = max(64, ENTRIES // d)
    pairs_near = np.zeros(len(pairs), dtype=bool)
    order = np.argsort(pairs[:, 0], kind="stable")  # rows are read in the order of the file
    for at in range(0, len(pairs), step):
        some = order[at : at + step]
        u, v = (unit(take(rows)) for rows in pairs[some].T)
        # 1 − cos without cancellation.
        pairs_near[some] = 0.5 * np.square(u - v).sum(axis=1) < 1.0 - least
    return pairs_near


def unit(rows: WorkingArray) -> FloatArray:
    """Divide rows by their norms, in float64; squares neither overflow nor vanish."""
    wide = np.asarray(rows, dtype=np.float64)
    wide = wide / np.abs(wide).max(axis=1, keepdims=True)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))


def meet_leaders(take: Take, crowded: IntArray, n: int, d: int) -> tuple[IntArray, bool]:
    """Pair the rows of clumps with leaders near them; a row that one takes in leads no more.

    Products are in float32, good to 1e-6.
    """
    left = generator(0, "leaders").permutation(crowded)
    links = [np.zeros((0, 2), dtype=np.int64)]
    budget, spent = max(4.0 * n * d * d, LEAST_BUDGET), 0.0
    while len(left) and spent < budget:
        leaders = left[:LEADERS]
        taken = [leaders]
        for start, cosines in multiply(take, unit(take(leaders)), crowded, d):
            near = cosines > NEAR
            # Links of leaders among themselves and to some rows; every row to one of them.
            some = [np.flatnonzero(row)[:MOST_CANDIDATES] for row in near]
            first = np.repeat(leaders, [len(second) for second in some])
            met = np.flatnonzero(near.any(axis=0))
            rows = crowded[start + met]
            links.append(np.stack([first, crowded[start + np.concatenate(some)]], axis=1))
            links.append(np.stack([leaders[near[:, met].argmax(axis=0)], rows], axis=1))
            taken.append(rows)
        left = left[~np.isin(left, np.concatenate(taken))]
        spent += 2.0 * len(leaders) * len(crowded) * d
    return np.concatenate(links), not len(left)


def multiply(
    take: Take, directions: FloatArray, rows: IntArray, d: int
) -> Iterator[tuple[int, SingleArray]]:
    """Yield cosines of unit directions with some rows, in float32, and where the rows begin."""
    narrow, step = directions.astype(np.float32), max(64, ENTRIES // max(d, len(directions)))
    for start in range(0, len(rows), step):
        yield start, narrow @ unit_in_single(take(rows[start : start + step])).T


def unit_in_single(rows: WorkingArray) -> SingleArray:
    """Divide rows by their norms, in float32 where squares are good there."""
    if rows.dtype == np.float32:
        with np.errstate(over="ignore"):
            squares = np.einsum("ij,ij->i", rows, rows)
        if SINGLE[0] < squares.min() and squares.max() < SINGLE[1]:
            return np.asarray(rows / np.sqrt(squares)[:, None])
    return unit(rows).astype(np.float32)


def keep_apart(take: Take, groups: list[IntArray], n: int, d: int) -> list[IntArray]:
    """Keep the groups with a gap around them; none where near rows are ordinary.

    In few dimensions and along smooth curves every row has near ones, and these have others: such
    a group ends nowhere. A group is kept if all of it lies within twice the radius of its center,
    and no more other rows than its own lie within twice that of its farthest row, or the radius.
    None is kept if one of ten rows that are in no such group has another one within twice the
    radius, and no small one if these are more than the rows of small groups: the nearest of points
    with a density are far nearer than others are, and the fewer dimensions there are, the more.
    """
    groups = sorted(groups, key=lambda group: (-len(group), int(group[0])))
    centers, kept, radii = [], [], []
    for group in groups:
        rows = unit(take(group[:: max(1, len(group) // 1000)]))
        center = rows.mean(axis=0)
        center /= np.linalg.norm(center)
        radius = float(np.linalg.norm(rows - center, axis=1).max())
        if radius <= 2.0 * RADIUS:
            centers.append(center)
            radii.append(max(radius, RADIUS))
            kept.append(group)
    if not kept:
        return []
    rng = generator(0, "gaps around groups")
    looked = np.arange(len(kept))
    if len(kept) > LOOKED_AT:
        half = LOOKED_AT // 2
        looked = np.r_[looked[:half], half + np.sort(rng.permutation(len(kept) - half)[:half])]
    outside = np.setdiff1d(np.arange(n), np.concatenate(kept))
    count = max(LOOKED_AT, int(min(LOOKED_PRODUCTS / d, LOOKED_COSINES) / n))
    random = np.sort(rng.permutation(outside)[:count])
    asked = np.concatenate([unit(take(random)), np.stack([centers[at] for at in looked])])
    limits = 1.0 - 0.5 * np.square([2.0 * radii[at] for at in looked])
    nearest = np.full(len(random), -1.0)
    around = np.zeros(len(looked))
    for start, cosines in multiply(take, asked, np.arange(n), d):
        inside = (random >= start) & (random < start + cosines.shape[1])
        cosines[np.flatnonzero(inside), random[inside] - start] = -1.0
        nearest = np.maximum(nearest, cosines[: len(random)].max(axis=1))
        around += (cosines[len(random) :] > limits[:, None]).sum(axis=1)
    others = int((nearest > 1.0 - 4.0 * (1.0 - NEAR)).sum())
    if others > max(FEW_NEAR, ORDINARY_SHARE * len(random)):
        return []
    small = {at for at, group in enumerate(kept) if len(group) <= SMALL}
    few = sum(len(kept[at]) for at in small)
    if others <= FEW_NEAR or others * len(outside) <= MORE_OTHERS * few * len(random):
        small = set()
    own = np.array([len(kept[at]) for at in looked])
    crowded = set(looked[around > 2 * own].tolist())
    # Where most groups that were looked at have no gap, the others have none either.
    if 2 * len(crowded) > len(looked):
        return []
    return [group for at, group in enumerate(kept) if at not in crowded | small]
